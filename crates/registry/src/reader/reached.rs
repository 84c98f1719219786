//! Which tools a single file brings with it: its own, and those that it imports or whose definitions it calls.

use std::collections::{BTreeSet, HashMap};

use super::evaluate::{ANYWHERE, Located, Meaning};
use super::found::{Found, Origin};
use super::project::{self, ModuleId, Project};
use super::syntax::{Definition, Export, Expr, Imported, Kind, Language, ScopeId, Statement};
use super::uses::Handlers;

pub(super) struct Reached<'p> {
    project: &'p Project,
    handlers: &'p Handlers,
    /// Modules that count with all their tools and imports.
    pub(super) whole: BTreeSet<ModuleId>,
    /// Functions, classes and variables that are used.
    named: BTreeSet<(ModuleId, String)>,
    open_modules: Vec<ModuleId>,
    open_names: Vec<(ModuleId, String)>,
}

impl<'p> Reached<'p> {
    /// Follows what the first module uses of others, and what that uses in its turn. What only the tools use when they run
    /// does not count.
    pub(super) fn from(project: &'p Project, handlers: &'p Handlers) -> Self {
        let mut reached = Self {
            project,
            handlers,
            whole: BTreeSet::from([0]),
            named: BTreeSet::new(),
            open_modules: vec![0],
            open_names: Vec::new(),
        };
        loop {
            project.next_statement();
            if let Some(module) = reached.open_modules.pop() {
                reached.open(module);
            } else if let Some((module, name)) = reached.open_names.pop() {
                reached.follow(module, &name);
            } else {
                return reached;
            }
        }
    }

    /// Tells whether a tool counts; `servers` says which module's server gets it.
    pub(super) fn has(&self, found: &Found, servers: &HashMap<Origin, ModuleId>) -> bool {
        let module = found.origin.0;
        self.whole.contains(&module)
            || servers.get(&found.origin).is_some_and(|server| self.whole.contains(server))
            || found.symbols.iter().any(|symbol| self.named.contains(&(module, symbol.clone())))
    }

    /// Takes what a module passes on, what its own code uses, and what it imports for no use of its own.
    fn open(&mut self, module: ModuleId) {
        let names = self.project.module_names(module, self.handlers);
        for (home, name) in passed_on(self.project, module) {
            self.take(home, name);
        }
        for LocalImport { scope, home, local, name } in local_imports(self.project, module) {
            let is_used = local.is_some_and(|local| names.used.contains(local));
            let is_idle = scope == 0 && local.is_none_or(|local| !names.mentioned.contains(local));
            if is_used || is_idle {
                self.take(home, name);
            }
        }
    }

    fn take(&mut self, home: ModuleId, name: Option<&str>) {
        let Some(name) = name else { return self.add(home) };
        let project = self.project;
        match project.exported(home, name, 0) {
            Some(Meaning::Function(module, id)) => self.name(module, &project.module(module).functions[id].name),
            Some(Meaning::Class(module, id)) => self.name(module, &project.module(module).classes[id].name),
            Some(Meaning::Module(module)) => self.add(module),
            Some(Meaning::Expr(found)) => match &found.expr.kind {
                // Other statements may register tools at a server.
                Kind::Call(call) if project.zod(&found).is_none() => {
                    let is_maker = call.callee.last_name().is_some_and(super::found::makes_tool);
                    if is_maker { self.name(home, name) } else { self.add(found.module) }
                }
                _ => self.name(home, name),
            },
            Some(Meaning::Foreign(_)) => {}
            // A package has the name of this file.
            None if project.module(home).language == Language::Python => {}
            Some(Meaning::Unknown(_)) | None => self.add(home),
        }
    }

    fn add(&mut self, module: ModuleId) {
        if self.whole.insert(module) {
            self.open_modules.push(module);
        }
    }

    fn name(&mut self, module: ModuleId, name: &str) {
        // What has no name of its own is exported as a whole.
        if name.is_empty() {
            return self.add(module);
        }
        if self.named.insert((module, name.to_owned())) {
            self.open_names.push((module, name.to_owned()));
        }
    }

    /// Takes what the definition of a name uses.
    fn follow(&mut self, module: ModuleId, name: &str) {
        let source = self.project.module(module);
        let (mut exprs, mut scopes): (Vec<&Expr>, Vec<ScopeId>) = (Vec::new(), Vec::new());
        for statement in &source.scopes[0].statements {
            match statement {
                Statement::Define { name: defined, defined: Definition::Function(id) } if defined == name => {
                    scopes.push(source.functions[*id].scope);
                }
                Statement::Define { name: defined, defined: Definition::Class(id) } if defined == name => {
                    scopes.push(source.classes[*id].scope);
                    exprs.extend(&source.classes[*id].bases);
                }
                Statement::Assign { name: defined, value: Some(value), .. } if defined == name => exprs.push(value),
                _ => {}
            }
        }
        let exported = source.exports.iter().filter_map(|export| match export {
            Export::Local { name: exported, value } if exported == name => Some(value),
            _ => None,
        });
        exprs.extend(exported);
        let imports = local_imports(self.project, module);
        for used in self.project.used_names(module, exprs, scopes, self.handlers) {
            let mut is_imported = false;
            for LocalImport { home, name, .. } in imports.iter().filter(|import| import.local == Some(&used)) {
                is_imported = true;
                self.take(*home, *name);
            }
            let anywhere = Located::new(module, 0, ANYWHERE);
            if !is_imported && used != name && self.project.bound(&anywhere, 0, &used, 0).is_some() {
                self.name(module, &used);
            }
        }
    }
}

/// An import from the project.
struct LocalImport<'p> {
    scope: ScopeId,
    home: ModuleId,
    local: Option<&'p String>,
    /// The name there; none for the module as a whole.
    name: Option<&'p str>,
}

fn local_imports(project: &Project, module: ModuleId) -> Vec<LocalImport<'_>> {
    let source = project.module(module);
    let mut found = Vec::new();
    for (scope, statement) in
        source.scopes.iter().enumerate().flat_map(|(id, scope)| scope.statements.iter().map(move |one| (id, one)))
    {
        let Statement::Import(import) = statement else { continue };
        let name = match &import.what {
            Imported::Name(name) => Some(name.as_str()),
            Imported::Module | Imported::All => None,
        };
        let local = import.local.as_ref();
        if let Some(home) = project.imported(module, import.level, &import.from) {
            found.push(LocalImport { scope, home, local, name });
        }
        if let (Language::Python, Some(name)) = (source.language, name)
            && let Some(home) = project.imported(module, import.level, &project::submodule(&import.from, name))
        {
            found.push(LocalImport { scope, home, local, name: None });
        }
    }
    found
}

/// Returns the modules that a module passes on, with the name that it takes of each.
fn passed_on(project: &Project, module: ModuleId) -> impl Iterator<Item = (ModuleId, Option<&str>)> {
    project.module(module).exports.iter().filter_map(move |export| {
        let (specifier, name) = match export {
            Export::From { specifier, imported: Imported::Name(name), .. } => (specifier, Some(name.as_str())),
            Export::From { specifier, .. } | Export::All { specifier } => (specifier, None),
            Export::Local { .. } => return None,
        };
        project.imported(module, 0, specifier).map(|home| (home, name))
    })
}
