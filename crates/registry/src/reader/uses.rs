//! Finds the names that a module uses, apart from those that only its tools use when called.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::project::{ModuleId, Project};
use super::syntax::{Definition, Export, Expr, Kind, Module, Owner, ScopeId, Statement};

/// Scopes of functions and classes that implement tools.
pub(crate) type Handlers = HashSet<(ModuleId, ScopeId)>;

pub(super) struct ModuleNames {
    /// Names used on import and in functions that do not only serve tools.
    pub(super) used: BTreeSet<String>,
    /// All names in the module, including types.
    pub(super) mentioned: BTreeSet<String>,
}

#[derive(Default)]
struct Names {
    used: BTreeSet<String>,
    bound: BTreeSet<String>,
}

impl Project {
    /// Returns the names used in expressions and scopes, without the bodies of tools.
    pub(super) fn used_names<'p>(
        &'p self,
        module: ModuleId,
        exprs: Vec<&'p Expr>,
        scopes: Vec<ScopeId>,
        handlers: &Handlers,
    ) -> BTreeSet<String> {
        names_in(self.module(module), exprs, scopes, &|scope| handlers.contains(&(module, scope))).used
    }

    pub(super) fn module_names(&self, module: ModuleId, handlers: &Handlers) -> ModuleNames {
        let source = self.module(module);
        let is_handler = |scope: ScopeId| handlers.contains(&(module, scope));
        let mut top: BTreeMap<&str, ScopeId> = BTreeMap::new();
        let mut exprs: Vec<&Expr> = Vec::new();
        for statement in &source.scopes[0].statements {
            match statement {
                Statement::Define { name, defined } => {
                    top.insert(name, source.scope_of(*defined));
                    exprs.extend(source.defining_expressions(*defined));
                }
                Statement::Assign { name, value: Some(Expr { kind: Kind::Function(id), .. }), .. } => {
                    top.insert(name, source.functions[*id].scope);
                }
                other => exprs.extend(other.expressions()),
            }
        }
        exprs.extend(source.exports.iter().filter_map(|export| match export {
            Export::Local { value, .. } if !matches!(value.kind, Kind::Name(_)) => Some(value),
            _ => None,
        }));
        let bodies = (0..source.scopes.len()).filter(|scope| is_handler(*scope)).collect();
        let run = names_in(source, Vec::new(), bodies, &|_| false);
        let mut tool_names: BTreeSet<String> = run.used.difference(&run.bound).cloned().collect();
        extend_transitively(&mut tool_names, |name| {
            let scope = top.get(name)?;
            Some(names_in(source, Vec::new(), vec![*scope], &|_| false).used)
        });
        let own = top.iter().filter(|(name, _)| !tool_names.contains(**name)).map(|(_, scope)| *scope);
        let mut used = names_in(source, exprs, own.collect(), &is_handler).used;
        extend_transitively(&mut used, |name| {
            let scope = top.get(name).filter(|_| tool_names.contains(name))?;
            Some(names_in(source, Vec::new(), vec![*scope], &is_handler).used)
        });
        ModuleNames { used, mentioned: mentioned(source) }
    }
}

/// Adds the names that the names use, transitively.
fn extend_transitively(names: &mut BTreeSet<String>, more: impl Fn(&str) -> Option<BTreeSet<String>>) {
    let mut open: Vec<String> = names.iter().cloned().collect();
    while let Some(name) = open.pop() {
        for used in more(&name).unwrap_or_default() {
            if names.insert(used.clone()) {
                open.push(used);
            }
        }
    }
}

/// Collects the names in expressions and scopes, without the excluded scopes.
fn names_in<'m>(
    source: &'m Module,
    mut exprs: Vec<&'m Expr>,
    mut scopes: Vec<ScopeId>,
    is_excluded: &dyn Fn(ScopeId) -> bool,
) -> Names {
    let mut names = Names::default();
    let mut seen: BTreeSet<ScopeId> = BTreeSet::new();
    loop {
        while let Some(expr) = exprs.pop() {
            expr.walk(&mut |inner| match &inner.kind {
                Kind::Name(name) => {
                    names.used.insert(name.clone());
                }
                Kind::Function(id) => scopes.push(source.functions[*id].scope),
                Kind::Class(id) => scopes.push(source.classes[*id].scope),
                _ => {}
            });
        }
        let Some(scope) = scopes.pop() else { return names };
        if is_excluded(scope) || !seen.insert(scope) {
            continue;
        }
        scopes.extend(&source.scopes[scope].inner);
        if let Owner::Function(id) = source.scopes[scope].owner {
            names.bound.extend(source.functions[id].parameters.iter().map(|parameter| parameter.name.clone()));
        }
        for statement in &source.scopes[scope].statements {
            exprs.extend(statement.expressions());
            match statement {
                Statement::Import(import) => names.used.extend(import.local.clone()),
                Statement::Define { defined, .. } => exprs.extend(source.defining_expressions(*defined)),
                Statement::Assign { name, .. } | Statement::Rebind { name } => {
                    names.bound.insert(name.clone());
                }
                _ => {}
            }
        }
    }
}

/// Collects all names in a module, including types.
fn mentioned(source: &Module) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut add = |expr: &Expr, is_type: bool| {
        expr.walk(&mut |inner| match &inner.kind {
            Kind::Name(name) => {
                names.insert(name.clone());
            }
            // A type may be quoted.
            Kind::Text(text) if is_type => {
                names.extend(text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').map(str::to_owned));
            }
            _ => {}
        });
    };
    for function in &source.functions {
        function.returns.iter().for_each(|expr| add(expr, true));
        for parameter in &function.parameters {
            parameter.annotation.iter().for_each(|expr| add(expr, true));
            parameter.default.iter().for_each(|expr| add(expr, false));
        }
    }
    for statement in source.scopes.iter().flat_map(|scope| &scope.statements) {
        statement.expressions().for_each(|expression| add(expression, false));
        match statement {
            Statement::Define { defined, .. } => {
                source.defining_expressions(*defined).for_each(|expr| add(expr, false));
            }
            Statement::Assign { annotation: Some(annotation), .. } => add(annotation, true),
            _ => {}
        }
    }
    names
}

impl Module {
    fn scope_of(&self, defined: Definition) -> ScopeId {
        match defined {
            Definition::Function(id) => self.functions[id].scope,
            Definition::Class(id) => self.classes[id].scope,
        }
    }

    /// Returns the expressions that are evaluated at a definition: decorators and base classes.
    fn defining_expressions(&self, defined: Definition) -> impl Iterator<Item = &Expr> {
        let (decorators, bases): (&[Expr], &[Expr]) = match defined {
            Definition::Function(id) => (&self.functions[id].decorators, &[]),
            Definition::Class(id) => (&self.classes[id].decorators, &self.classes[id].bases),
        };
        decorators.iter().chain(bases)
    }
}
