//! The source files that were read, and how they import each other.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use karat_core::registry::{Gap, GapKind, ToolPlace};

use super::imports::{ScriptResolver, python_module};
use super::syntax::{Export, Import, Imported, Language, Module, Statement};
use super::unreadable::Unreadable;
use super::{javascript, json_module, python};
use crate::files::{extension, is_script, shown};

/// More modules than this are not the tools of one agent.
pub(super) const MAX_MODULES: usize = 20_000;

/// Larger than any source with tools in it; generated bundles are not worth reading.
pub(super) const MAX_FILE_BYTES: u64 = 10 << 20;

/// The stack of a thread that parses: enough for the deepest source that is read at all.
pub(super) const STACK_BYTES: usize = 512 << 20;

pub(crate) type ModuleId = usize;

/// A module's name as another module writes it: dots before it, and the name or specifier.
type Specifier = (u32, String);

pub(crate) struct Project {
    pub(crate) modules: Vec<Module>,
    /// Number of modules that were asked for; the rest is imported by them.
    pub(crate) entries: usize,
    /// Where the modules begin that import others and only give them names.
    pub(crate) importers: ModuleId,
    imports: HashMap<(ModuleId, Specifier), Option<ModuleId>>,
    /// Files that cannot be read.
    pub(crate) gaps: Vec<Gap>,
    /// Files that modules pass on and that are not there: they may define tools.
    pub(crate) missing: Vec<(ModuleId, Gap)>,
    /// Steps of evaluation that are left: a few lines can ask for more than there is time for.
    steps: Steps,
}

struct Steps {
    total: Cell<usize>,
    statement: Cell<usize>,
}

/// Steps for all of a project, and for one statement of it.
const MAX_TOTAL_STEPS: usize = 50_000_000;
const MAX_STATEMENT_STEPS: usize = 300_000;

impl Project {
    /// Reads files and, step by step, the files of the project that they import.
    pub(crate) fn load(entries: &[PathBuf], base: &Path) -> Self {
        let mut loader = Loader { base, by_path: HashMap::new(), scripts: ScriptResolver::default() };
        let steps = Steps { total: Cell::new(MAX_TOTAL_STEPS), statement: Cell::new(MAX_STATEMENT_STEPS) };
        let mut project = Self {
            modules: Vec::new(),
            entries: 0,
            importers: 0,
            imports: HashMap::new(),
            gaps: Vec::new(),
            missing: Vec::new(),
            steps,
        };
        loader.read(&mut project, entries);
        project.entries = project.modules.len();
        let mut next = 0;
        while next < project.modules.len() && project.modules.len() < MAX_MODULES {
            let until = project.modules.len();
            let wanted: Vec<_> = (next..until).flat_map(|module| loader.imported(&project, module)).collect();
            let mut missing: Vec<PathBuf> = wanted.iter().filter_map(|(_, path)| path.clone()).collect();
            missing.sort();
            missing.dedup();
            missing.retain(|path| !loader.by_path.contains_key(path));
            loader.read(&mut project, &missing);
            for (key, path) in wanted {
                if path.is_none() {
                    project.note_missing(&key);
                }
                let module = path.and_then(|path| loader.by_path.get(&path).copied().flatten());
                project.imports.insert(key, module);
            }
            next = until;
        }
        project.importers = project.modules.len();
        project
    }

    /// Reads files that import what was read, with none of their other imports.
    pub(crate) fn add_importers(&mut self, paths: &[PathBuf], base: &Path) {
        let by_path = self.modules.iter().enumerate().map(|(id, module)| (module.path.clone(), Some(id))).collect();
        let mut loader = Loader { base, by_path, scripts: ScriptResolver::default() };
        let gaps = self.gaps.len();
        loader.read(self, paths);
        // What does not matter to the tools may be broken.
        self.gaps.truncate(gaps);
        for module in self.importers..self.modules.len() {
            for (key, path) in loader.imported(self, module) {
                let home = path.and_then(|path| loader.by_path.get(&path).copied().flatten());
                self.imports.insert(key, home);
            }
        }
    }

    fn note_missing(&mut self, (module, (_, specifier)): &(ModuleId, Specifier)) {
        let source = &self.modules[*module];
        let is_passed_on = source.exports.iter().any(|export| match export {
            Export::From { specifier: from, .. } | Export::All { specifier: from } => from == specifier,
            Export::Local { .. } => false,
        });
        if is_passed_on && specifier.starts_with('.') {
            let place = ToolPlace { source: source.shown.clone(), position: None };
            let what = format!("there is no file for '{specifier}'");
            self.missing.push((*module, Gap { kind: GapKind::Broken, place, what }));
        }
    }

    /// Takes a step of evaluation; false when there are none left.
    pub(super) fn step(&self) -> bool {
        let Steps { total, statement } = &self.steps;
        if total.get() == 0 || statement.get() == 0 {
            return false;
        }
        total.set(total.get() - 1);
        statement.set(statement.get() - 1);
        true
    }

    /// Tells whether there are no steps left for the rest of the project.
    pub(super) fn is_exhausted(&self) -> bool {
        self.steps.total.get() == 0
    }

    /// Begins with another statement.
    pub(super) fn next_statement(&self) {
        self.steps.statement.set(MAX_STATEMENT_STEPS);
    }

    pub(crate) fn imported(&self, from: ModuleId, level: u32, name: &str) -> Option<ModuleId> {
        self.imports.get(&(from, (level, name.to_owned()))).copied().flatten()
    }
}

struct Loader<'b> {
    base: &'b Path,
    /// None where a file cannot be read.
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
                Err(Unreadable { position, why }) => {
                    let place = ToolPlace { source: shown(path, self.base), position };
                    project.gaps.push(Gap { kind: GapKind::Broken, place, what: why });
                    None
                }
            };
            self.by_path.insert(path.clone(), module);
        }
    }

    /// Returns what a module imports, with the file of each.
    fn imported(&mut self, project: &Project, id: ModuleId) -> Vec<((ModuleId, Specifier), Option<PathBuf>)> {
        let module = &project.modules[id];
        let mut specifiers: Vec<Specifier> = Vec::new();
        for statement in module.scopes.iter().flat_map(|scope| &scope.statements) {
            let Statement::Import(Import { level, from, what, .. }) = statement else { continue };
            specifiers.push((*level, from.clone()));
            if let (Language::Python, Imported::Name(name)) = (module.language, what) {
                // The name may be a module of the package.
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
                Language::Python => python_module(&module.path, level, &name),
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
fn parse_all(paths: &[PathBuf], base: &Path) -> Vec<Result<Module, Unreadable>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = paths.len().div_ceil(cores).max(16);
    let parse_share = move |share: &[PathBuf]| share.iter().map(|path| parse(path, base)).collect::<Vec<_>>();
    std::thread::scope(|scope| {
        let start =
            |share| std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, move || parse_share(share));
        let started: Vec<_> = paths.chunks(share.max(1)).map(|share| (share, start(share))).collect();
        let parsed = started.into_iter().flat_map(|(share, thread)| {
            let parsed = thread.ok().and_then(|thread| thread.join().ok());
            parsed.unwrap_or_else(|| share.iter().map(|_| Err(Unreadable::whole("the parser failed"))).collect())
        });
        parsed.collect()
    })
}

fn parse(path: &Path, base: &Path) -> Result<Module, Unreadable> {
    let unreadable = |error: std::io::Error| Unreadable::whole(format!("cannot read it: {error}"));
    if std::fs::metadata(path).map_err(unreadable)?.len() > MAX_FILE_BYTES {
        return Err(Unreadable::whole(format!("it is larger than {} MiB", MAX_FILE_BYTES >> 20)));
    }
    let text = String::from_utf8(std::fs::read(path).map_err(unreadable)?)
        .map_err(|_| Unreadable::whole("it is not UTF-8"))?;
    let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
    let shown = shown(path, base);
    match extension(path).as_str() {
        "py" => python::parse(path, &shown, &text),
        "json" => json_module::parse(path, &shown, text),
        _ if is_script(path) => javascript::parse(path, &shown, text),
        _ => Err(Unreadable::whole("it is not a source file that karat reads")),
    }
}
