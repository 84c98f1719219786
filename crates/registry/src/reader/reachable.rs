//! Finds the tools that are reachable from a single file: its own, and those that it imports.

use std::collections::{BTreeSet, HashMap};

use super::discovery::{FoundTool, Origin};
use super::evaluate::{LocatedExpr, PLACEHOLDER, ResolvedValue};
use super::project::{self, ModuleId, Project};
use super::syntax::{Definition, Export, Expr, ImportedItem, Kind, Language, ScopeId, Statement};
use super::uses::Handlers;

pub(super) struct Reachable<'p> {
    project: &'p Project,
    handlers: &'p Handlers,
    /// Modules that are included with all their tools and imports.
    pub(super) modules: BTreeSet<ModuleId>,
    /// Functions, classes and variables that are used, by module.
    names: BTreeSet<(ModuleId, String)>,
    pending_modules: Vec<ModuleId>,
    pending_names: Vec<(ModuleId, String)>,
}

impl<'p> Reachable<'p> {
    /// Follows the uses of the first module transitively, without those that only happen when a tool is called.
    pub(super) fn compute(project: &'p Project, handlers: &'p Handlers) -> Self {
        let mut reachable = Self {
            project,
            handlers,
            modules: BTreeSet::from([0]),
            names: BTreeSet::new(),
            pending_modules: vec![0],
            pending_names: Vec::new(),
        };
        loop {
            project.reset_statement_steps();
            if let Some(module) = reachable.pending_modules.pop() {
                reachable.visit_module(module);
            } else if let Some((module, name)) = reachable.pending_names.pop() {
                reachable.visit_name(module, &name);
            } else {
                return reachable;
            }
        }
    }

    /// Whether a tool is reachable; `servers` maps definitions to the module of their server.
    pub(super) fn contains(&self, candidate: &FoundTool, servers: &HashMap<Origin, ModuleId>) -> bool {
        let module = candidate.origin.0;
        self.modules.contains(&module)
            || servers.get(&candidate.origin).is_some_and(|server| self.modules.contains(server))
            || candidate.symbols.iter().any(|symbol| self.names.contains(&(module, symbol.clone())))
    }

    /// Follows the re-exports of a module, and its imports that are used by its own code or are not used at all.
    fn visit_module(&mut self, module: ModuleId) {
        let names = self.project.module_names(module, self.handlers);
        for (home, name) in re_exports(self.project, module) {
            self.follow_import(home, name);
        }
        for LocalImport { scope, home, local, name } in local_imports(self.project, module) {
            let is_used = local.is_some_and(|local| names.used.contains(local));
            let is_unused = scope == 0 && local.is_none_or(|local| !names.mentioned.contains(local));
            if is_used || is_unused {
                self.follow_import(home, name);
            }
        }
    }

    fn follow_import(&mut self, home: ModuleId, name: Option<&str>) {
        let Some(name) = name else { return self.add_module(home) };
        let project = self.project;
        match project.resolve_export(home, name, 0) {
            Some(ResolvedValue::Function(module, id)) => {
                self.add_name(module, &project.module(module).functions[id].name);
            }
            Some(ResolvedValue::Class(module, id)) => self.add_name(module, &project.module(module).classes[id].name),
            Some(ResolvedValue::Module(module)) => self.add_module(module),
            Some(ResolvedValue::Expr(located)) => match &located.expr.kind {
                // Other statements of the module may register tools at the server.
                Kind::Call(call) if project.zod(&located).is_none() => {
                    let creates_tool = call.callee.last_name().is_some_and(super::discovery::may_create_tool);
                    if creates_tool { self.add_name(home, name) } else { self.add_module(located.module) }
                }
                _ => self.add_name(home, name),
            },
            Some(ResolvedValue::Foreign(_)) => {}
            // A package happens to have the name of this file.
            None if project.module(home).language == Language::Python => {}
            Some(ResolvedValue::Unknown(_)) | None => self.add_module(home),
        }
    }

    fn add_module(&mut self, module: ModuleId) {
        if self.modules.insert(module) {
            self.pending_modules.push(module);
        }
    }

    fn add_name(&mut self, module: ModuleId, name: &str) {
        // Without a name, include the whole module.
        if name.is_empty() {
            return self.add_module(module);
        }
        if self.names.insert((module, name.to_owned())) {
            self.pending_names.push((module, name.to_owned()));
        }
    }

    /// Follows the uses in the definition of a name.
    fn visit_name(&mut self, module: ModuleId, name: &str) {
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
                self.follow_import(*home, *name);
            }
            let in_module = LocatedExpr::new(module, 0, PLACEHOLDER);
            if !is_imported && used != name && self.project.resolve_in_scope(&in_module, 0, &used, 0).is_some() {
                self.add_name(module, &used);
            }
        }
    }
}

/// An import from the project.
struct LocalImport<'p> {
    scope: ScopeId,
    home: ModuleId,
    local: Option<&'p String>,
    /// The imported name; `None` for the whole module.
    name: Option<&'p str>,
}

fn local_imports(project: &Project, module: ModuleId) -> Vec<LocalImport<'_>> {
    let source = project.module(module);
    let mut imports = Vec::new();
    for (scope, statement) in source
        .scopes
        .iter()
        .enumerate()
        .flat_map(|(id, scope)| scope.statements.iter().map(move |statement| (id, statement)))
    {
        let Statement::Import(import) = statement else { continue };
        let name = match &import.item {
            ImportedItem::Name(name) => Some(name.as_str()),
            ImportedItem::Module | ImportedItem::All => None,
        };
        let local = import.local.as_ref();
        if let Some(home) = project.imported_module(module, import.level, &import.from) {
            imports.push(LocalImport { scope, home, local, name });
        }
        if let (Language::Python, Some(name)) = (source.language, name)
            && let Some(home) = project.imported_module(module, import.level, &project::submodule(&import.from, name))
        {
            imports.push(LocalImport { scope, home, local, name: None });
        }
    }
    imports
}

/// Returns the modules that a module re-exports from, with the exported names.
fn re_exports(project: &Project, module: ModuleId) -> impl Iterator<Item = (ModuleId, Option<&str>)> {
    project.module(module).exports.iter().filter_map(move |export| {
        let (specifier, name) = match export {
            Export::From { specifier, imported: ImportedItem::Name(name), .. } => (specifier, Some(name.as_str())),
            Export::From { specifier, .. } | Export::All { specifier } => (specifier, None),
            Export::Local { .. } => return None,
        };
        project.imported_module(module, 0, specifier).map(|home| (home, name))
    })
}
