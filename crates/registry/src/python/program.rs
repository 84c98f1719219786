//! The modules of a project that were read, and how they import each other.

use std::cell::RefCell;
use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use karat_core::registry::{Gap, GapKind, ToolPlace};
use karat_core::source::Position;
use ruff_python_ast::visitor::{Visitor, walk_stmt};
use ruff_python_ast::{Alias, Expr, Identifier, ModModule, Stmt, StmtImport, StmtImportFrom};
use ruff_python_parser::{Mode, ParseOptions, Parsed, parse_unchecked};
use ruff_text_size::{Ranged, TextSize};

use super::names::DEEPEST;
use super::version::{DocstringStyle, docstring_style};
use crate::source::shown;

/// More modules than this are no set of tools.
const MOST_MODULES: usize = 20_000;

/// Python refuses brackets that stand in more others than this.
const MOST_BRACKETS: usize = 200;

/// A place in one of the modules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) module: usize,
    pub(super) offset: usize,
}

/// A module's text and what was parsed of it.
pub(super) struct Source {
    path: PathBuf,
    /// As a person names it.
    shown: String,
    pub(super) text: String,
    /// Where each line begins.
    lines: Vec<usize>,
    /// Never dropped: a source may be nested deeper than the stack that this would take.
    parsed: Option<ManuallyDrop<Parsed<ModModule>>>,
    /// Whether Python keeps the indentation of its docstrings, where the project says which Python it is for.
    pub(super) docstrings: Option<DocstringStyle>,
}

impl Source {
    pub(super) fn body(&self) -> &[Stmt] {
        self.parsed.as_ref().map(|parsed| parsed.suite().as_slice()).unwrap_or_default()
    }

    /// Returns what is imported as a whole, and what is imported within functions and conditions.
    pub(super) fn all_imports(&self) -> Vec<Imported<'_>> {
        let mut imports = Imports { found: Vec::new(), depth: 0 };
        self.body().iter().for_each(|statement| imports.visit_stmt(statement));
        imports.found
    }

    pub(super) fn place(&self, offset: usize) -> ToolPlace {
        let line = self.lines.partition_point(|start| *start <= offset).saturating_sub(1);
        let start = self.lines.get(line).copied().unwrap_or_default();
        let column = self.text.get(start..offset).map_or(0, |before| before.chars().count()) + 1;
        ToolPlace { source: self.shown.clone(), position: Some(Position { line: line + 1, column }) }
    }
}

/// Something that a module imports, wherever in it.
#[derive(Clone, Copy)]
pub(super) enum Imported<'p> {
    Module(&'p str),
    Member { level: u32, from: &'p str, original: &'p str },
}

/// Collects imports within anything.
struct Imports<'p> {
    found: Vec<Imported<'p>>,
    depth: usize,
}

impl<'p> Visitor<'p> for Imports<'p> {
    fn visit_stmt(&mut self, statement: &'p Stmt) {
        match statement {
            Stmt::Import(import) => {
                self.found.extend(import.names.iter().map(|name| Imported::Module(name.name.as_str())));
            }
            Stmt::ImportFrom(import) if self.depth > 0 => {
                let from = import.module.as_ref().map(Identifier::as_str).unwrap_or_default();
                let member =
                    |name: &'p Alias| Imported::Member { level: import.level, from, original: name.name.as_str() };
                self.found.extend(import.names.iter().map(member));
            }
            _ if self.depth < DEEPEST => {
                self.depth += 1;
                walk_stmt(self, statement);
                self.depth -= 1;
            }
            _ => {}
        }
    }

    fn visit_expr(&mut self, _expression: &'p Expr) {}
}

/// A folder, the dots of a relative import, and the name behind them.
type ImportedName = (PathBuf, u32, String);

/// All modules that were asked for, and those that they import and the project has.
pub(super) struct Program {
    pub(super) sources: Vec<Source>,
    by_path: HashMap<PathBuf, usize>,
    /// Files that dotted names mean in a folder: the disk is asked once for each.
    files: RefCell<HashMap<ImportedName, Option<PathBuf>>>,
    pub(super) gaps: Vec<Gap>,
}

impl Program {
    /// Reads files, and the project's modules that they import.
    pub(super) fn load(entries: &[PathBuf], base: &Path) -> Self {
        let (by_path, files) = (HashMap::new(), RefCell::default());
        let mut program = Self { sources: Vec::new(), by_path, files, gaps: Vec::new() };
        let mut styles = HashMap::new();
        for entry in entries {
            program.read(entry, base, &mut styles);
        }
        let mut next = 0;
        while next < program.sources.len() {
            let (imported, missing) = program.imports(next);
            for path in imported {
                if !program.by_path.contains_key(&path) && program.sources.len() < MOST_MODULES {
                    program.read(&path, base, &mut styles);
                }
            }
            program.gaps.extend(missing);
            next += 1;
        }
        program
    }

    fn read(&mut self, path: &Path, base: &Path, styles: &mut HashMap<PathBuf, Option<DocstringStyle>>) {
        let shown = shown(path, base);
        let broken = |what: String, position: Option<Position>| Gap {
            kind: GapKind::Broken,
            place: ToolPlace { source: shown.clone(), position },
            what,
        };
        let text = match std::fs::read(path) {
            Ok(bytes) => String::from_utf8(bytes).map_err(|_| "the file is not UTF-8".to_owned()),
            Err(error) => Err(format!("the file cannot be read: {error}")),
        };
        let text = match text {
            Ok(text) => text,
            Err(what) => {
                self.gaps.push(broken(what, None));
                String::new()
            }
        };
        // As Python reads it: without a byte order mark, and every kind of line end is one character.
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text).replace("\r\n", "\n").replace('\r', "\n");
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let mut source = Source {
            path: path.to_path_buf(),
            shown: shown.clone(),
            lines: std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect(),
            text,
            parsed: None,
            docstrings: *styles.entry(folder).or_insert_with_key(|folder| docstring_style(folder)),
        };
        match parse(&source.text) {
            Ok(parsed) => source.parsed = Some(parsed),
            Err((what, offset)) => {
                let position = offset.and_then(|offset| source.place(offset).position);
                self.gaps.push(broken(what, position));
            }
        }
        self.by_path.insert(path.to_path_buf(), self.sources.len());
        self.sources.push(source);
    }

    /// Returns the files that a module imports and the project has, and what of its own package is missing.
    fn imports(&self, module: usize) -> (Vec<PathBuf>, Vec<Gap>) {
        let source = &self.sources[module];
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for statement in source.body() {
            match statement {
                Stmt::Import(StmtImport { names, .. }) => {
                    found.extend(names.iter().filter_map(|name| self.file(&source.path, 0, name.name.as_str())));
                }
                Stmt::ImportFrom(import) => {
                    let files = self.files_of(&source.path, import);
                    if files.is_empty() && import.level > 0 && !may_be_made(&source.path, import) {
                        let what = format!("there is no module '{}'", import_name(import));
                        let place = source.place(import.start().to_usize());
                        missing.push(Gap { kind: GapKind::Broken, place, what });
                    }
                    found.extend(files);
                }
                _ => {}
            }
        }
        for import in source.all_imports() {
            match import {
                Imported::Module(dotted) => found.extend(self.file(&source.path, 0, dotted)),
                Imported::Member { level, from, original } => {
                    let dotted = if from.is_empty() { original.to_owned() } else { format!("{from}.{original}") };
                    found.extend(self.file(&source.path, level, from));
                    found.extend(self.file(&source.path, level, &dotted));
                }
            }
        }
        (found, missing)
    }

    /// Returns the module that a dotted name means in another one, if the project has it.
    pub(super) fn module(&self, from: usize, level: u32, name: &str) -> Option<usize> {
        self.by_path.get(&self.file(&self.sources[from].path, level, name)?).copied()
    }

    /// Returns the file of a module that another file imports; itself is none.
    fn file(&self, path: &Path, level: u32, name: &str) -> Option<PathBuf> {
        let folder = path.parent()?;
        let key = (folder.to_path_buf(), level, name.to_owned());
        let mut files = self.files.borrow_mut();
        let found = files.entry(key).or_insert_with(|| find_module(folder, level, name));
        found.clone().filter(|found| found != path)
    }

    /// Returns the module that names are imported from, and those of the names that are modules themselves.
    fn files_of(&self, path: &Path, import: &StmtImportFrom) -> Vec<PathBuf> {
        let module = import.module.as_ref().map(Identifier::as_str).unwrap_or_default();
        let own = self.file(path, import.level, module);
        let inner = import.names.iter().filter_map(|name| {
            let dotted = if module.is_empty() { name.name.to_string() } else { format!("{module}.{}", name.name) };
            self.file(path, import.level, &dotted)
        });
        own.into_iter().chain(inner).collect()
    }

    pub(super) fn place(&self, spot: Spot) -> ToolPlace {
        self.sources[spot.module].place(spot.offset)
    }
}

/// Tells whether a module that is not there may be one that is made later or is no Python: `._version`, a library beside.
fn may_be_made(path: &Path, import: &StmtImportFrom) -> bool {
    let module = import.module.as_ref().map(Identifier::as_str).unwrap_or_default();
    let last = module.rsplit('.').next().unwrap_or_default();
    let Some(folder) = path.ancestors().nth(import.level as usize) else { return false };
    let target =
        module.split('.').filter(|part| !part.is_empty()).fold(folder.to_path_buf(), |folder, part| folder.join(part));
    let is_library = |entry: std::fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let stem = name.strip_prefix(last).unwrap_or_default();
        stem.starts_with('.') && [".so", ".pyd", ".pyi"].iter().any(|ending| stem.ends_with(ending))
    };
    last.starts_with('_')
        || target.is_dir()
        || target
            .parent()
            .and_then(|folder| folder.read_dir().ok())
            .is_some_and(|mut entries| entries.any(|entry| entry.is_ok_and(is_library)))
}

pub(super) fn spot(module: usize, at: TextSize) -> Spot {
    Spot { module, offset: at.to_usize() }
}

/// Parses a module; what was parsed is never dropped, since that takes a step of the stack for each level.
fn parse(text: &str) -> Result<ManuallyDrop<Parsed<ModModule>>, (String, Option<usize>)> {
    if u32::try_from(text.len()).is_err() {
        return Err(("the file is too large to be read".to_owned(), None));
    }
    if is_nested_too_deeply(text) {
        return Err((format!("not Python: brackets in more than {MOST_BRACKETS} others"), None));
    }
    let parsed = ManuallyDrop::new(parse_unchecked(text, ParseOptions::from(Mode::Module)));
    if let Some(error) = parsed.errors().first() {
        let what = format!("not Python: {}", lower_first(&error.error.to_string()));
        return Err((what, Some(error.location.start().to_usize())));
    }
    let parsed = ManuallyDrop::into_inner(parsed).try_into_module().map(ManuallyDrop::new);
    parsed.ok_or_else(|| ("not Python".to_owned(), None))
}

/// Tells whether brackets stand in more others than Python itself takes; texts and comments do not count.
pub(super) fn is_nested_too_deeply(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'(' | b'[' | b'{' => {
                depth += 1;
                if depth > MOST_BRACKETS {
                    return true;
                }
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'#' => at += bytes[at..].iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len()),
            b'"' | b'\'' => at = end_of_text(bytes, at),
            _ => {}
        }
        at += 1;
    }
    false
}

/// Returns where a text ends that begins here: at its last quote, or the end of the line.
fn end_of_text(bytes: &[u8], start: usize) -> usize {
    let quote = bytes[start];
    let is_triple = bytes[start..].starts_with(&[quote; 3]);
    let mut at = start + if is_triple { 3 } else { 1 };
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            b'\n' if !is_triple => return at,
            byte if *byte == quote && !is_triple => return at,
            byte if *byte == quote && bytes[at..].starts_with(&[quote; 3]) => return at + 2,
            _ => {}
        }
        at += 1;
    }
    at
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

fn import_name(import: &StmtImportFrom) -> String {
    let dots = ".".repeat(import.level as usize);
    format!("{dots}{}", import.module.as_ref().map(ruff_python_ast::Identifier::as_str).unwrap_or_default())
}

/// Finds a module's file: beside the importing one, above its packages, or where the dots of a relative import lead.
fn find_module(folder: &Path, level: u32, name: &str) -> Option<PathBuf> {
    let roots: Vec<PathBuf> = if level == 0 {
        let above = folder.ancestors().find(|folder| !folder.join("__init__.py").is_file());
        [Some(folder), above].into_iter().flatten().map(Path::to_path_buf).collect()
    } else {
        vec![folder.ancestors().nth(level as usize - 1)?.to_path_buf()]
    };
    roots.into_iter().find_map(|root| {
        let target = name.split('.').filter(|part| !part.is_empty()).fold(root, |folder, part| folder.join(part));
        let file = target.with_file_name(format!("{}.py", target.file_name()?.to_string_lossy()));
        let package = target.join("__init__.py");
        if package.is_file() {
            return Some(package);
        }
        (!name.is_empty() && file.is_file()).then_some(file)
    })
}
