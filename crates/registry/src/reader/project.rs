//! Loads source files and the files that they import.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use karat_cases::registry::{Gap, GapKind, ToolLocation};

use super::imports::{ScriptResolver, find_python_module};
use super::parse_error::ParseError;
use super::syntax::{Export, Import, ImportedItem, Language, Module, Statement};
use super::{javascript, json_module, python};
use crate::files::{display_path, extension, is_script};

pub(super) const MAX_MODULES: usize = 20_000;

/// Larger files are generated bundles.
pub(super) const MAX_FILE_BYTES: u64 = 10 << 20;

/// Stack size of parser threads, sufficient for sources of the maximum nesting depth.
pub(super) const STACK_BYTES: usize = 512 << 20;

pub(crate) type ModuleId = usize;

/// A module as imported: the number of leading dots, and the name or specifier.
type Specifier = (u32, String);

pub(crate) struct Project {
    pub(crate) modules: Vec<Module>,
    /// Number of requested modules; the others are imported by them.
    pub(crate) entry_count: usize,
    /// The first of the modules that [`Self::add_importers`] added.
    pub(crate) first_importer: ModuleId,
    imports: HashMap<(ModuleId, Specifier), Option<ModuleId>>,
    /// Files that cannot be read.
    pub(crate) gaps: Vec<Gap>,
    /// Missing files that modules re-export: they may define tools.
    pub(crate) missing: Vec<(ModuleId, Gap)>,
    /// Remaining evaluation steps, which bound the time for hostile sources.
    steps: Steps,
}

struct Steps {
    total: Cell<usize>,
    statement: Cell<usize>,
}

const MAX_TOTAL_STEPS: usize = 50_000_000;
const MAX_STATEMENT_STEPS: usize = 300_000;

impl Project {
    /// Reads files and, transitively, the files of the project that they import.
    pub(crate) fn load(entries: &[PathBuf], base: &Path) -> Self {
        let mut loader = Loader { base, by_path: HashMap::new(), scripts: ScriptResolver::default() };
        let steps = Steps { total: Cell::new(MAX_TOTAL_STEPS), statement: Cell::new(MAX_STATEMENT_STEPS) };
        let mut project = Self {
            modules: Vec::new(),
            entry_count: 0,
            first_importer: 0,
            imports: HashMap::new(),
            gaps: Vec::new(),
            missing: Vec::new(),
            steps,
        };
        loader.read(&mut project, entries);
        project.entry_count = project.modules.len();
        let mut next = 0;
        while next < project.modules.len() && project.modules.len() < MAX_MODULES {
            let end = project.modules.len();
            let imports: Vec<_> = (next..end).flat_map(|module| loader.imports_of(&project, module)).collect();
            let mut missing: Vec<PathBuf> = imports.iter().filter_map(|(_, path)| path.clone()).collect();
            missing.sort();
            missing.dedup();
            missing.retain(|path| !loader.by_path.contains_key(path));
            loader.read(&mut project, &missing);
            for (key, path) in imports {
                if path.is_none() {
                    project.record_missing(&key);
                }
                let module = path.and_then(|path| loader.by_path.get(&path).copied().flatten());
                project.imports.insert(key, module);
            }
            next = end;
        }
        project.first_importer = project.modules.len();
        project
    }

    /// Reads files that import the loaded modules, without their other imports.
    pub(crate) fn add_importers(&mut self, paths: &[PathBuf], base: &Path) {
        let by_path = self.modules.iter().enumerate().map(|(id, module)| (module.path.clone(), Some(id))).collect();
        let mut loader = Loader { base, by_path, scripts: ScriptResolver::default() };
        let gaps = self.gaps.len();
        loader.read(self, paths);
        // Errors in these files do not affect the tools.
        self.gaps.truncate(gaps);
        for module in self.first_importer..self.modules.len() {
            for (key, path) in loader.imports_of(self, module) {
                let home = path.and_then(|path| loader.by_path.get(&path).copied().flatten());
                self.imports.insert(key, home);
            }
        }
    }

    fn record_missing(&mut self, (module, (_, specifier)): &(ModuleId, Specifier)) {
        let source = &self.modules[*module];
        let is_re_exported = source.exports.iter().any(|export| match export {
            Export::From { specifier: from, .. } | Export::All { specifier: from } => from == specifier,
            Export::Local { .. } => false,
        });
        if is_re_exported && specifier.starts_with('.') {
            let location = ToolLocation { source: source.display_path.clone(), position: None };
            let message = format!("no file found for '{specifier}'");
            self.missing.push((*module, Gap { kind: GapKind::Broken, location, message }));
        }
    }

    /// Consumes an evaluation step. Returns false if none are left.
    pub(super) fn take_step(&self) -> bool {
        let Steps { total, statement } = &self.steps;
        if total.get() == 0 || statement.get() == 0 {
            return false;
        }
        total.set(total.get() - 1);
        statement.set(statement.get() - 1);
        true
    }

    /// Whether the steps for the whole project are used up.
    pub(super) fn is_exhausted(&self) -> bool {
        self.steps.total.get() == 0
    }

    /// Resets the steps for the next statement.
    pub(super) fn reset_statement_steps(&self) {
        self.steps.statement.set(MAX_STATEMENT_STEPS);
    }

    pub(crate) fn imported_module(&self, from: ModuleId, level: u32, name: &str) -> Option<ModuleId> {
        self.imports.get(&(from, (level, name.to_owned()))).copied().flatten()
    }
}

struct Loader<'b> {
    base: &'b Path,
    /// `None` for a file that cannot be read.
    by_path: HashMap<PathBuf, Option<ModuleId>>,
    scripts: ScriptResolver,
}

impl Loader<'_> {
    fn read(&mut self, project: &mut Project, paths: &[PathBuf]) {
        for (path, parsed) in paths.iter().zip(parse_all(paths, self.base)) {
            let module = match parsed {
                Ok(module) => {
                    project.modules.push(module);
                    Some(project.modules.len() - 1)
                }
                Err(ParseError { position, message }) => {
                    let location = ToolLocation { source: display_path(path, self.base), position };
                    project.gaps.push(Gap { kind: GapKind::Broken, location, message });
                    None
                }
            };
            self.by_path.insert(path.clone(), module);
        }
    }

    /// Returns the imports of a module, with their files.
    fn imports_of(&mut self, project: &Project, id: ModuleId) -> Vec<((ModuleId, Specifier), Option<PathBuf>)> {
        let module = &project.modules[id];
        let mut specifiers: Vec<Specifier> = Vec::new();
        for statement in module.scopes.iter().flat_map(|scope| &scope.statements) {
            let Statement::Import(Import { level, from, item, .. }) = statement else { continue };
            specifiers.push((*level, from.clone()));
            if let (Language::Python, ImportedItem::Name(name)) = (module.language, item) {
                // The name may be a submodule of the package.
                specifiers.push((*level, submodule(from, name)));
            }
        }
        for export in &module.exports {
            if let Export::From { specifier, .. } | Export::All { specifier } = export {
                specifiers.push((0, specifier.clone()));
            }
        }
        specifiers.sort();
        specifiers.dedup();
        let (scripts, module) = (&mut self.scripts, &project.modules[id]);
        let resolve = |(level, name): Specifier| {
            let path = match module.language {
                Language::Python => find_python_module(&module.path, level, &name),
                Language::JavaScript => scripts.resolve(&module.path, &name),
            };
            ((id, (level, name)), path.filter(|path| *path != module.path))
        };
        specifiers.into_iter().map(resolve).collect()
    }
}

/// Returns the dotted name of a module in a package.
pub(super) fn submodule(package: &str, name: &str) -> String {
    if package.is_empty() { name.to_owned() } else { format!("{package}.{name}") }
}

/// Parses files on all cores.
fn parse_all(paths: &[PathBuf], base: &Path) -> Vec<Result<Module, ParseError>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = paths.len().div_ceil(cores).max(16);
    let parse_share = move |share: &[PathBuf]| share.iter().map(|path| parse(path, base)).collect::<Vec<_>>();
    std::thread::scope(|scope| {
        let start =
            |share| std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, move || parse_share(share));
        let started: Vec<_> = paths.chunks(share.max(1)).map(|share| (share, start(share))).collect();
        let parsed = started.into_iter().flat_map(|(share, thread)| {
            let parsed = thread.ok().and_then(|thread| thread.join().ok());
            parsed.unwrap_or_else(|| share.iter().map(|_| Err(ParseError::new("the parser failed"))).collect())
        });
        parsed.collect()
    })
}

fn parse(path: &Path, base: &Path) -> Result<Module, ParseError> {
    let parse_error = |error: std::io::Error| ParseError::new(format!("cannot read it: {error}"));
    if std::fs::metadata(path).map_err(parse_error)?.len() > MAX_FILE_BYTES {
        return Err(ParseError::new(format!("it is larger than {} MiB", MAX_FILE_BYTES >> 20)));
    }
    let text = String::from_utf8(std::fs::read(path).map_err(parse_error)?)
        .map_err(|_| ParseError::new("it is not valid UTF-8"))?;
    let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
    let display_path = display_path(path, base);
    match extension(path).as_str() {
        "py" => python::parse(path, &display_path, &text),
        "json" => json_module::parse(path, &display_path, text),
        _ if is_script(path) => javascript::parse(path, &display_path, text),
        _ => Err(ParseError::new("it is not a supported source file")),
    }
}
