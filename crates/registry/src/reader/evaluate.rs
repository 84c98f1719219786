//! Resolves names statically: constants, parameters in a call, and imports within the project.

use std::rc::Rc;

use karat_cases::registry::ToolLocation;

use super::members::{Receiver, is_receiver};
use super::project::{ModuleId, Project, submodule};
use super::syntax::{
    Call, ClassId, Definition, Export, Expr, FunctionId, ImportedItem, Kind, Language, Module, Owner, ScopeId,
    Statement,
};

/// Maximum length of a chain of names, members and calls.
pub(super) const MAX_STEPS: usize = 60;

/// An expression and the scope in which its names are resolved.
#[derive(Clone)]
pub(crate) struct LocatedExpr<'p> {
    pub(crate) module: ModuleId,
    pub(crate) scope: ScopeId,
    pub(crate) expr: &'p Expr,
    pub(super) frame: Option<Rc<Frame<'p>>>,
}

/// The parameters of a function in one call.
pub(super) struct Frame<'p> {
    pub(super) module: ModuleId,
    pub(super) function: Option<FunctionId>,
    pub(super) arguments: Vec<(&'p str, LocatedExpr<'p>)>,
    /// The value of `self`, `cls` or `this`.
    pub(super) receiver: Option<Receiver<'p>>,
    pub(super) parent: Option<Rc<Frame<'p>>>,
}

/// The resolved value of an expression.
#[derive(Clone)]
pub(crate) enum ResolvedValue<'p> {
    /// A literal, a call, or anything else that is not a name.
    Expr(LocatedExpr<'p>),
    Function(ModuleId, FunctionId),
    Class(ModuleId, ClassId),
    Module(ModuleId),
    /// A name from a package or a builtin, as a dotted name.
    Foreign(String),
    Unknown(UnknownReason),
}

/// Why a value is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnknownReason {
    pub(crate) location: ToolLocation,
    /// A lower-case fragment.
    pub(crate) reason: String,
}

impl<'p> LocatedExpr<'p> {
    pub(crate) fn new(module: ModuleId, scope: ScopeId, expr: &'p Expr) -> Self {
        Self { module, scope, expr, frame: None }
    }

    /// Returns another expression of the same scope.
    pub(crate) fn with(&self, expr: &'p Expr) -> Self {
        Self { expr, ..self.clone() }
    }

    pub(crate) fn call(&self) -> Option<&'p Call> {
        match &self.expr.kind {
            Kind::Call(call) => Some(call),
            _ => None,
        }
    }
}

impl Project {
    pub(crate) fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id]
    }

    pub(crate) fn location(&self, located: &LocatedExpr<'_>) -> ToolLocation {
        self.module(located.module).location(located.expr.at)
    }

    pub(crate) fn unknown_reason(&self, located: &LocatedExpr<'_>, reason: impl Into<String>) -> UnknownReason {
        UnknownReason { location: self.location(located), reason: reason.into() }
    }

    /// Resolves names, members and calls.
    pub(crate) fn resolve<'p>(&'p self, located: &LocatedExpr<'p>) -> ResolvedValue<'p> {
        self.resolve_at(located, 0)
    }

    /// Resolves names to an expression. Returns `None` if they resolve to something else or are unknown.
    pub(crate) fn resolve_expr<'p>(&'p self, located: &LocatedExpr<'p>) -> Option<LocatedExpr<'p>> {
        match self.resolve(located) {
            ResolvedValue::Expr(located) => Some(located),
            _ => None,
        }
    }

    /// Returns the dotted name of an import from a package, such as `mcp.server.fastmcp.FastMCP`.
    pub(crate) fn foreign_name<'p>(&'p self, located: &LocatedExpr<'p>) -> Option<String> {
        match self.resolve(located) {
            ResolvedValue::Foreign(name) => Some(name),
            _ => None,
        }
    }

    pub(super) fn resolve_at<'p>(&'p self, located: &LocatedExpr<'p>, steps: usize) -> ResolvedValue<'p> {
        if steps > MAX_STEPS || !self.take_step() {
            return ResolvedValue::Unknown(self.unknown_reason(located, "it is defined through too many references"));
        }
        match &located.expr.kind {
            Kind::Name(name) => self.resolve_name(located, name, steps),
            Kind::Member(object, name) => self.resolve_member(located, object, name, steps),
            Kind::Index(object, key) => self.resolve_index(located, object, key, steps),
            Kind::Function(id) => ResolvedValue::Function(located.module, *id),
            Kind::Class(id) => ResolvedValue::Class(located.module, *id),
            Kind::Call(call) => self.resolve_call(located, call, steps),
            _ => ResolvedValue::Expr(located.clone()),
        }
    }

    fn resolve_name<'p>(&'p self, located: &LocatedExpr<'p>, name: &str, steps: usize) -> ResolvedValue<'p> {
        let module = self.module(located.module);
        let mut scope = Some(located.scope);
        let mut is_innermost = true;
        while let Some(id) = scope {
            let current = &module.scopes[id];
            scope = current.parent;
            // Class-level names are not in the scope of methods.
            let is_hidden = matches!(current.owner, Owner::Class(_)) && !is_innermost;
            is_innermost = false;
            if is_hidden {
                continue;
            }
            if let Some(resolved) = self.resolve_in_scope(located, id, name, steps) {
                return resolved;
            }
            if let Owner::Function(function) = current.owner
                && let Some(resolved) = self.resolve_parameter(located, function, name, steps)
            {
                return resolved;
            }
        }
        self.resolve_star_import(located, name, steps).unwrap_or_else(|| ResolvedValue::Foreign(name.to_owned()))
    }

    /// Resolves a name in one scope, without its parents.
    pub(super) fn resolve_in_scope<'p>(
        &'p self,
        located: &LocatedExpr<'p>,
        scope: ScopeId,
        name: &str,
        steps: usize,
    ) -> Option<ResolvedValue<'p>> {
        let in_scope = |expr: &'p Expr| LocatedExpr { scope, expr, ..located.clone() };
        let mut candidates: Vec<ResolvedValue<'p>> = Vec::new();
        let (mut assigned, mut rebound) = (0, false);
        for statement in self.module(located.module).scopes[scope].binding(name) {
            match statement {
                Statement::Assign { value: Some(value), .. } => {
                    assigned += 1;
                    // `x = x or y` would recurse forever.
                    let mut is_recursive = false;
                    value.walk(&mut |inner| is_recursive |= matches!(&inner.kind, Kind::Name(own) if own == name));
                    if is_recursive {
                        rebound = true;
                    } else {
                        candidates.push(self.resolve_at(&in_scope(value), steps + 1));
                    }
                }
                Statement::Rebind { .. } => rebound = true,
                Statement::Define { defined, .. } => {
                    // A later definition replaces an earlier one.
                    candidates
                        .retain(|resolved| !matches!(resolved, ResolvedValue::Function(..) | ResolvedValue::Class(..)));
                    candidates.push(match defined {
                        Definition::Function(id) => ResolvedValue::Function(located.module, *id),
                        Definition::Class(id) => ResolvedValue::Class(located.module, *id),
                    });
                }
                Statement::Import(import) => {
                    let resolved =
                        self.resolve_import(located.module, import.level, &import.from, &import.item, name, steps);
                    candidates.push(resolved);
                }
                _ => {}
            }
        }
        if candidates.is_empty() && !rebound {
            return None;
        }
        // `try: import a … except ImportError: a = None`.
        if candidates.len() > 1 {
            candidates.retain(|resolved| {
                !matches!(resolved, ResolvedValue::Expr(LocatedExpr { expr: Expr { kind: Kind::Null, .. }, .. }))
            });
        }
        if rebound || (assigned > 1 && candidates.len() > 1) {
            return Some(ResolvedValue::Unknown(
                self.unknown_reason(located, format!("'{name}' is assigned more than once")),
            ));
        }
        candidates.into_iter().next()
    }

    fn resolve_parameter<'p>(
        &'p self,
        located: &LocatedExpr<'p>,
        function: FunctionId,
        name: &str,
        steps: usize,
    ) -> Option<ResolvedValue<'p>> {
        let definition = &self.module(located.module).functions[function];
        definition.parameters.iter().find(|parameter| parameter.name == name)?;
        let mut frame = located.frame.as_ref();
        while let Some(current) = frame {
            if current.module == located.module && current.function == Some(function) {
                let argument = current.arguments.iter().find(|(parameter, _)| *parameter == name);
                if let Some((_, argument)) = argument {
                    return Some(self.resolve_at(argument, steps + 1));
                }
            }
            frame = current.parent.as_ref();
        }
        if let Some(receiver) = self.receiver(located).filter(|_| is_receiver(name)) {
            return Some(ResolvedValue::Class(receiver.module, receiver.class));
        }
        // Destructured parameters have synthetic names.
        let subject = if name.starts_with('{') { "it".to_owned() } else { format!("'{name}'") };
        Some(ResolvedValue::Unknown(self.unknown_reason(located, format!("{subject} is a parameter"))))
    }

    fn resolve_star_import<'p>(
        &'p self,
        located: &LocatedExpr<'p>,
        name: &str,
        steps: usize,
    ) -> Option<ResolvedValue<'p>> {
        let statements = &self.module(located.module).scopes[0].statements;
        statements.iter().find_map(|statement| match statement {
            Statement::Import(import) if import.item == ImportedItem::All => {
                let home = self.imported_module(located.module, import.level, &import.from)?;
                self.resolve_export(home, name, steps + 1)
            }
            _ => None,
        })
    }

    fn resolve_import<'p>(
        &'p self,
        module: ModuleId,
        level: u32,
        from: &str,
        item: &ImportedItem,
        local: &str,
        steps: usize,
    ) -> ResolvedValue<'p> {
        let home = self.imported_module(module, level, from);
        let is_python = self.module(module).language == Language::Python;
        match (item, home) {
            // `import a.b` binds `a`.
            (ImportedItem::Module, _) if is_python && from.starts_with(&format!("{local}.")) => {
                ResolvedValue::Foreign(local.to_owned())
            }
            (ImportedItem::Module, Some(home)) => ResolvedValue::Module(home),
            (ImportedItem::Name(name), home) => {
                if let Some(resolved) = home.and_then(|home| self.resolve_export(home, name, steps + 1)) {
                    return resolved;
                }
                let module = self.imported_module(module, level, &submodule(from, name)).filter(|_| is_python);
                module.map_or_else(|| ResolvedValue::Foreign(format!("{from}.{name}")), ResolvedValue::Module)
            }
            (ImportedItem::Module | ImportedItem::All, _) => ResolvedValue::Foreign(from.to_owned()),
        }
    }

    /// Resolves a name that a module exports.
    pub(crate) fn resolve_export<'p>(&'p self, id: ModuleId, name: &str, steps: usize) -> Option<ResolvedValue<'p>> {
        if steps > MAX_STEPS {
            return None;
        }
        let module = self.module(id);
        if module.language == Language::Python {
            let in_module = LocatedExpr::new(id, 0, PLACEHOLDER);
            let bound = self.resolve_in_scope(&in_module, 0, name, steps);
            return bound.or_else(|| self.resolve_star_import(&in_module, name, steps));
        }
        for export in &module.exports {
            match export {
                Export::Local { name: exported, value } if exported == name => {
                    return Some(self.resolve_at(&LocatedExpr::new(id, 0, value), steps + 1));
                }
                Export::From { name: exported, imported, specifier } if exported == name => {
                    return Some(self.resolve_import(id, 0, specifier, imported, name, steps + 1));
                }
                _ => {}
            }
        }
        module.exports.iter().find_map(|export| match export {
            Export::All { specifier } => self.resolve_export(self.imported_module(id, 0, specifier)?, name, steps + 1),
            _ => None,
        })
    }
}

/// A placeholder where only the module and the scope matter.
pub(super) static PLACEHOLDER: &Expr = &Expr { at: 0, kind: Kind::Null };
