//! Which tools a single file brings with it: its own, and those that it imports or whose definitions it calls.

use std::collections::BTreeSet;

use super::evaluate::{ANYWHERE, Located, Meaning};
use super::found::Found;
use super::project::{self, ModuleId, Project};
use super::syntax::{Definition, Export, Expr, Imported, Kind, Language, ScopeId, Statement};

pub(super) struct Reached<'p> {
    project: &'p Project,
    /// Modules that count with all their tools and imports.
    pub(super) whole: BTreeSet<ModuleId>,
    /// Functions, classes and variables that are used.
    named: BTreeSet<(ModuleId, String)>,
    open_modules: Vec<ModuleId>,
    open_names: Vec<(ModuleId, String)>,
}

impl<'p> Reached<'p> {
    /// Follows what the first module imports, and what that uses in its turn.
    pub(super) fn from(project: &'p Project) -> Self {
        let mut reached = Self {
            project,
            whole: BTreeSet::from([0]),
            named: BTreeSet::new(),
            open_modules: vec![0],
            open_names: Vec::new(),
        };
        loop {
            project.next_statement();
            if let Some(module) = reached.open_modules.pop() {
                for (home, name) in imports(project, module) {
                    reached.take(home, name.as_deref());
                }
            } else if let Some((module, name)) = reached.open_names.pop() {
                reached.follow(module, &name);
            } else {
                return reached;
            }
        }
    }

    pub(super) fn has(&self, found: &Found) -> bool {
        let module = found.origin.0;
        self.whole.contains(&module)
            || found.symbols.iter().any(|symbol| self.named.contains(&(module, symbol.clone())))
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
        for used in self.project.used_names(module, exprs, scopes) {
            let mut is_imported = false;
            for (home, local, imported) in local_imports(self.project, module) {
                if local == Some(&used) {
                    is_imported = true;
                    self.take(home, imported);
                }
            }
            let anywhere = Located::new(module, 0, ANYWHERE);
            if !is_imported && used != name && self.project.bound(&anywhere, 0, &used, 0).is_some() {
                self.name(module, &used);
            }
        }
    }
}

impl Project {
    /// Returns the names that expressions and everything in scopes use.
    fn used_names<'p>(
        &'p self,
        module: ModuleId,
        mut exprs: Vec<&'p Expr>,
        mut scopes: Vec<ScopeId>,
    ) -> BTreeSet<String> {
        let source = self.module(module);
        let mut names = BTreeSet::new();
        let mut seen: BTreeSet<ScopeId> = BTreeSet::new();
        loop {
            while let Some(expr) = exprs.pop() {
                expr.walk(&mut |inner| match &inner.kind {
                    Kind::Name(name) => {
                        names.insert(name.clone());
                    }
                    Kind::Function(id) => scopes.push(source.functions[*id].scope),
                    Kind::Class(id) => scopes.push(source.classes[*id].scope),
                    _ => {}
                });
            }
            let Some(scope) = scopes.pop() else { return names };
            if !seen.insert(scope) {
                continue;
            }
            let inner = source.scopes.iter().enumerate().filter(|(_, inner)| inner.parent == Some(scope));
            scopes.extend(inner.map(|(id, _)| id));
            for statement in &source.scopes[scope].statements {
                exprs.extend(statement.expressions());
                if let Statement::Import(import) = statement {
                    names.extend(import.local.clone());
                }
            }
        }
    }
}

/// Returns the imports of a module from the project: where from, the local name, and the name there.
fn local_imports(project: &Project, module: ModuleId) -> Vec<(ModuleId, Option<&String>, Option<&str>)> {
    let source = project.module(module);
    let mut found = Vec::new();
    for statement in source.scopes.iter().flat_map(|scope| &scope.statements) {
        let Statement::Import(import) = statement else { continue };
        let name = match &import.what {
            Imported::Name(name) => Some(name.as_str()),
            Imported::Module | Imported::All => None,
        };
        if let Some(home) = project.imported(module, import.level, &import.from) {
            found.push((home, import.local.as_ref(), name));
        }
        if let (Language::Python, Some(name)) = (source.language, name)
            && let Some(home) = project.imported(module, import.level, &project::submodule(&import.from, name))
        {
            found.push((home, import.local.as_ref(), None));
        }
    }
    found
}

/// Returns the modules that a module imports or passes on, with the name that it takes of each.
fn imports(project: &Project, module: ModuleId) -> Vec<(ModuleId, Option<String>)> {
    let local = local_imports(project, module).into_iter();
    let mut found: Vec<_> = local.map(|(home, _, name)| (home, name.map(str::to_owned))).collect();
    for export in &project.module(module).exports {
        let (specifier, name) = match export {
            Export::From { specifier, imported: Imported::Name(name), .. } => (specifier, Some(name.clone())),
            Export::From { specifier, .. } | Export::All { specifier } => (specifier, None),
            Export::Local { .. } => continue,
        };
        found.extend(project.imported(module, 0, specifier).map(|home| (home, name)));
    }
    found
}
