//! The files of a project that were read, each once.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use karat_core::registry::{Gap, GapKind, ToolPlace};
use karat_core::source;
use serde_json::Value as Json;

use super::lines::LineTable;
use super::parse::{Failure, LARGEST, parse};
use super::resolve::{Resolution, resolve};
use super::syntax::{Export, Expr, ExprKind, Item, LooseWrite, Module, Property, Specifier};
use super::value::{ModuleId, Place};
use crate::source::shown;

/// Files by path, and what is wrong with them.
#[derive(Debug)]
pub(super) struct Modules {
    base: PathBuf,
    list: Vec<Rc<Module>>,
    /// By the path as it was named, and by the real one; none for a file that could not be read, which was said once.
    by_path: HashMap<PathBuf, Option<ModuleId>>,
    pub gaps: Vec<Gap>,
}

/// What an import leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Module(ModuleId),
    Package,
    /// It cannot be read, which was said already, or holds no code.
    Nothing,
}

impl Modules {
    pub(super) fn new(base: &Path) -> Self {
        Self { base: base.to_owned(), list: Vec::new(), by_path: HashMap::new(), gaps: Vec::new() }
    }

    pub(super) fn get(&self, id: ModuleId) -> Rc<Module> {
        Rc::clone(&self.list[id.0 as usize])
    }

    pub(super) fn place(&self, place: Place) -> ToolPlace {
        let module = &self.list[place.module.0 as usize];
        // JSON files have no places in them.
        let position = (!module.lines.is_empty()).then(|| module.lines.position(place.offset as usize));
        ToolPlace { source: module.shown.clone(), position }
    }

    /// Follows an import; what is wrong with it becomes a gap.
    pub(super) fn follow(&mut self, from: ModuleId, specifier: &Specifier) -> Target {
        let path = self.get(from).path.clone();
        match resolve(&path, &specifier.text) {
            Resolution::Package => Target::Package,
            Resolution::Other => Target::Nothing,
            Resolution::Missing => {
                let what = format!("there is no module '{}'", specifier.text);
                self.broken(Place { module: from, offset: specifier.offset }, what);
                Target::Nothing
            }
            Resolution::File(path) => self.load(&path).map_or(Target::Nothing, Target::Module),
            Resolution::Json(path) => self.load_with(&path, read_json).map_or(Target::Nothing, Target::Module),
        }
    }

    /// Returns the files that modules pass on exports of and that nobody has read yet; `from` counts the modules for
    /// which that was asked before.
    pub(super) fn passed_on(&self, from: usize) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        let mut asked = HashSet::new();
        for module in &self.list[from..] {
            for export in &module.exports {
                let (Export::From { specifier, .. } | Export::All { specifier }) = export else { continue };
                if let Resolution::File(path) = resolve(&module.path, &specifier.text)
                    && asked.insert(path.clone())
                    && !self.by_path.contains_key(&path)
                    && !self.by_path.contains_key(&key(&path))
                {
                    paths.push(path);
                }
            }
        }
        paths
    }

    /// Returns the modules that a module imports, of those that were read.
    fn imported(&self, module: &Module) -> Vec<ModuleId> {
        let found = module.imports.iter().filter_map(|specifier| match resolve(&module.path, &specifier.text) {
            Resolution::File(path) => {
                self.by_path.get(&path).or_else(|| self.by_path.get(&key(&path))).copied().flatten()
            }
            _ => None,
        });
        found.collect()
    }

    /// Returns the writes that may change tools, each with the modules whose tools those can be.
    pub(super) fn loose_writes(&self) -> Vec<(Place, LooseWrite, HashSet<ModuleId>)> {
        let mut all = Vec::new();
        let ids = || (0..).map(ModuleId).zip(&self.list);
        for (id, module) in ids().filter(|(_, module)| !module.writes.is_empty()) {
            let mut reached = HashSet::from([id]);
            let mut open = vec![id];
            while let Some(next) = open.pop() {
                let imported = self.imported(&self.list[next.0 as usize]);
                open.extend(imported.into_iter().filter(|&imported| reached.insert(imported)));
            }
            let importers = ids().filter(|(_, other)| self.imported(other).contains(&id)).map(|(other, _)| other);
            let outward: HashSet<ModuleId> = reached.iter().copied().chain(importers).collect();
            for write in &module.writes {
                let reached = if write.outward { outward.clone() } else { reached.clone() };
                all.push((Place { module: id, offset: write.offset }, write.clone(), reached));
            }
        }
        all
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Says that something cannot work; saying it twice does no harm.
    pub(super) fn broken(&mut self, place: Place, what: String) {
        let place = self.place(place);
        self.gaps.push(Gap { kind: GapKind::Broken, place, what });
    }

    /// Reads a file, unless it was read before.
    pub(super) fn load(&mut self, path: &Path) -> Option<ModuleId> {
        self.load_with(path, read_source)
    }

    fn load_with(&mut self, path: &Path, read: fn(&Path, &str) -> Result<Module, Failure>) -> Option<ModuleId> {
        if let Some(&known) = self.by_path.get(path) {
            return known;
        }
        // The same file by another way.
        if let Some(&known) = self.by_path.get(&key(path)) {
            self.by_path.insert(path.to_owned(), known);
            return known;
        }
        let name = shown(path, &self.base);
        self.add(path, read(path, &name))
    }

    /// Takes in a file that somebody else has read.
    pub(super) fn add(&mut self, path: &Path, module: Result<Module, Failure>) -> Option<ModuleId> {
        let id = match module {
            Ok(module) => {
                self.list.push(Rc::new(module));
                u32::try_from(self.list.len() - 1).ok().map(ModuleId)
            }
            Err(failure) => {
                let place = ToolPlace { source: shown(path, &self.base), position: failure.position };
                self.gaps.push(Gap { kind: GapKind::Broken, place, what: failure.what });
                None
            }
        };
        self.by_path.insert(key(path), id);
        self.by_path.insert(path.to_owned(), id);
        id
    }
}

/// Returns what a file is known by, however it is reached.
fn key(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Reads and parses a source file.
pub(super) fn read_source(path: &Path, shown: &str) -> Result<Module, Failure> {
    parse(path, shown, read_text(path)?)
}

fn read_text(path: &Path) -> Result<String, Failure> {
    let failed = |error: std::io::Error| Failure::whole(format!("cannot be read: {error}"));
    if std::fs::metadata(path).map_err(failed)?.len() > LARGEST as u64 {
        return Err(Failure::too_large());
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    String::from_utf8(bytes).map_err(|_| Failure::whole("is not UTF-8"))
}

/// Reads a JSON file, which is a module that exports its value.
fn read_json(path: &Path, shown: &str) -> Result<Module, Failure> {
    let text = read_text(path)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let value = source::parse(text).map_err(|error| Failure {
        position: Some(source::Position::of(text, error.offset)),
        what: format!("not JSON: {}", error.message),
    })?;
    Ok(Module {
        path: path.to_owned(),
        shown: shown.to_owned(),
        lines: LineTable::default(),
        bindings: Vec::new(),
        exports: Vec::new(),
        commonjs: Some(json_expression(&value)),
        registrations: Vec::new(),
        listings: Vec::new(),
        writes: Vec::new(),
        imports: Vec::new(),
        followed: Vec::new(),
    })
}

fn json_expression(value: &Json) -> Expr {
    let kind = match value {
        Json::Null => ExprKind::Null,
        Json::Bool(value) => ExprKind::Bool(*value),
        Json::Number(number) => ExprKind::Number(number.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => ExprKind::Text(text.as_str().into()),
        Json::Array(items) => ExprKind::Array(items.iter().map(|item| Item::Value(json_expression(item))).collect()),
        Json::Object(map) => ExprKind::Object(
            map.iter()
                .map(|(key, value)| Property::Value {
                    key: ExprKind::Text(key.as_str().into()).at(0),
                    value: json_expression(value),
                })
                .collect(),
        ),
    };
    kind.at(0)
}
