//! Reads tools from Python, TypeScript and JavaScript sources, which are parsed and never run.
//!
//! Both languages become the same [`syntax`]; [`evaluate`] finds out what names and expressions stand for, and
//! `find_python` and `find_javascript` know the forms in which libraries let people define tools. Names, descriptions and
//! parameters are read as far as they are ordinary: a type that is not allows everything. Unknown is only what is really
//! made at run time.

mod annotation;
mod evaluate;
mod find_javascript;
mod find_python;
mod found;
mod imports;
mod javascript;
mod json_module;
mod json_schema;
mod library;
mod nesting;
mod project;
mod python;
mod syntax;
mod text;
mod unreadable;
mod zod;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use karat_core::registry::{Gap, GapKind, Registry};

use self::evaluate::Meaning;
use self::found::{Findings, Found};
pub(crate) use self::imports::is_script;
use self::project::{ModuleId, Project, STACK_BYTES};
use self::syntax::{Export, Imported, Kind, Language, Statement};
use crate::json::RegistryError;

/// Reads the tools that files define, in their order; places are named relative to `base`.
///
/// Of a single file, the tools that it imports count too.
pub(crate) fn read_sources(paths: &[PathBuf], base: &Path) -> Result<Registry, RegistryError> {
    std::thread::scope(|scope| {
        let read = || read(paths, base);
        let started = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, read);
        let thread = started.map_err(|error| RegistryError::File(format!("cannot start a thread: {error}")))?;
        thread.join().map_err(|_| RegistryError::File("the reader failed; please report this".to_owned()))
    })
}

fn read(paths: &[PathBuf], base: &Path) -> Registry {
    let project = Project::load(paths, base);
    let is_single = paths.len() == 1 && project.entries == 1;
    let modules = if is_single { 0..project.modules.len() } else { 0..project.entries };
    let mut findings = Findings::default();
    let has_scripts = project.modules.iter().any(|module| module.language == Language::JavaScript);
    let keys = if has_scripts { project.keys() } else { HashMap::new() };
    for module in modules {
        match project.module(module).language {
            Language::Python => project.find_in_python(module, &mut findings),
            Language::JavaScript => project.find_in_javascript(module, &keys, &mut findings),
        }
    }
    if is_single {
        project.hidden_tools(0, &mut findings);
    }
    let mut tools = findings.tools;
    let mut gaps: Vec<Gap> = project.gaps.clone();
    if is_single {
        let reached = Reached::from(&project, &tools);
        tools.retain(|found| reached.has(found));
        gaps.extend(findings.gaps.into_iter().filter(|(module, _)| reached.whole.contains(module)).map(|(_, gap)| gap));
    } else {
        gaps.extend(findings.gaps.into_iter().map(|(_, gap)| gap));
    }
    tools.sort_by_key(|found| found.origin);
    collect(tools, gaps)
}

fn collect(tools: Vec<Found>, gaps: Vec<Gap>) -> Registry {
    let mut registry = Registry::default();
    for Found { tool, .. } in tools {
        let (name, place) = (tool.name.clone(), tool.place.clone());
        let facts = (tool.description.clone(), tool.input_schema.clone());
        if let (Err(first), Some(place)) = (registry.add(tool), place) {
            if (&first.description, &first.input_schema) == (&facts.0, &facts.1) {
                continue;
            }
            let at = first.place.as_ref().map_or_else(String::new, |place| format!(" ({place})"));
            let what = format!("another tool has the name '{name}' too{at}; this one is left out");
            registry.add_gap(Gap { kind: GapKind::Broken, place, what });
        }
    }
    for gap in gaps {
        registry.add_gap(gap);
    }
    registry
}

/// What a single file brings with it: its own tools, those that it imports by name, and all of a module that it imports
/// as a whole, or takes a server or a list of tools from.
struct Reached {
    whole: BTreeSet<ModuleId>,
    named: BTreeSet<(ModuleId, String)>,
    /// Modules whose own imports count too.
    open: Vec<ModuleId>,
    seen: BTreeSet<ModuleId>,
}

impl Reached {
    fn from(project: &Project, tools: &[Found]) -> Self {
        let (whole, seen) = (BTreeSet::from([0]), BTreeSet::from([0]));
        let mut reached = Self { whole, named: BTreeSet::new(), open: vec![0], seen };
        while let Some(module) = reached.open.pop() {
            for (home, name) in imports(project, module) {
                project.next_statement();
                match name {
                    Some(name) => reached.take(project, tools, home, &name),
                    None => reached.add(home),
                }
            }
        }
        reached
    }

    fn take(&mut self, project: &Project, tools: &[Found], home: ModuleId, name: &str) {
        let symbol = match project.exported(home, name, 0) {
            Some(Meaning::Function(module, id)) => (module, project.module(module).functions[id].name.clone()),
            Some(Meaning::Class(module, id)) => (module, project.module(module).classes[id].name.clone()),
            Some(Meaning::Expr(found)) => {
                let is_constant =
                    matches!(found.expr.kind, Kind::Text(_) | Kind::Number(_) | Kind::Bool(_) | Kind::Null);
                let is_tool = tools.iter().any(|tool| tool.origin == (found.module, found.expr.at));
                match (is_constant, is_tool) {
                    (true, _) => return,
                    (false, true) => (home, name.to_owned()),
                    (false, false) => return self.add(found.module),
                }
            }
            Some(Meaning::Module(module)) => return self.add(module),
            _ => return self.add(home),
        };
        let has_symbol = |found: &Found| found.origin.0 == symbol.0 && found.symbols.contains(&symbol.1);
        if tools.iter().any(has_symbol) {
            self.named.insert(symbol.clone());
        }
        // A function may hand on what other modules define.
        self.follow(symbol.0);
    }

    fn add(&mut self, module: ModuleId) {
        self.whole.insert(module);
        self.follow(module);
    }

    fn follow(&mut self, module: ModuleId) {
        if self.seen.insert(module) {
            self.open.push(module);
        }
    }

    fn has(&self, found: &Found) -> bool {
        let module = found.origin.0;
        self.whole.contains(&module)
            || found.symbols.iter().any(|symbol| self.named.contains(&(module, symbol.clone())))
    }
}

/// Returns the modules that a module imports, with the name that it takes of each.
fn imports(project: &Project, module: ModuleId) -> Vec<(ModuleId, Option<String>)> {
    let mut found = Vec::new();
    let source = project.module(module);
    for statement in source.scopes.iter().flat_map(|scope| &scope.statements) {
        let Statement::Import(import) = statement else { continue };
        let name = match &import.what {
            Imported::Name(name) => Some(name.clone()),
            Imported::Module | Imported::All => None,
        };
        if let Some(home) = project.imported(module, import.level, &import.from) {
            found.push((home, name.clone()));
        }
        if let (Language::Python, Some(name)) = (source.language, &name)
            && let Some(home) = project.imported(module, import.level, &project::submodule(&import.from, name))
        {
            found.push((home, None));
        }
    }
    for export in &source.exports {
        let (specifier, name) = match export {
            Export::From { specifier, imported: Imported::Name(name), .. } => (specifier, Some(name.clone())),
            Export::From { specifier, .. } | Export::All { specifier } => (specifier, None),
            Export::Local { .. } => continue,
        };
        found.extend(project.imported(module, 0, specifier).map(|home| (home, name)));
    }
    found
}
