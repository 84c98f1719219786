//! What names stand for, as far as that shows without running anything: constants, parameters in a call, and imports
//! within the project.

use std::rc::Rc;

use karat_core::registry::ToolPlace;

use super::members::{Receiver, is_receiver};
use super::project::{ModuleId, Project, submodule};
use super::syntax::{
    Call, ClassId, Definition, Export, Expr, FunctionId, Imported, Kind, Language, Module, Owner, ScopeId, Statement,
};

/// How many names, members and calls are followed one after the other.
pub(super) const MAX_STEPS: usize = 60;

/// An expression and where its names are looked up.
#[derive(Clone)]
pub(crate) struct Located<'p> {
    pub(crate) module: ModuleId,
    pub(crate) scope: ScopeId,
    pub(crate) expr: &'p Expr,
    pub(super) frame: Option<Rc<Frame<'p>>>,
}

/// What a function's parameters are in one call of it.
pub(super) struct Frame<'p> {
    pub(super) module: ModuleId,
    pub(super) function: Option<FunctionId>,
    pub(super) arguments: Vec<(&'p str, Located<'p>)>,
    /// What `self`, `cls` or `this` is.
    pub(super) receiver: Option<Receiver<'p>>,
    pub(super) parent: Option<Rc<Frame<'p>>>,
}

/// What an expression means.
#[derive(Clone)]
pub(crate) enum Meaning<'p> {
    /// A literal, a call, or anything else that is not a name.
    Expr(Located<'p>),
    Function(ModuleId, FunctionId),
    Class(ModuleId, ClassId),
    Module(ModuleId),
    /// Something of a package or of the language, by its dotted name.
    Foreign(String),
    Unknown(Why),
}

/// Why a value is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Why {
    pub(crate) place: ToolPlace,
    /// A lower-case fragment.
    pub(crate) why: String,
}

impl<'p> Located<'p> {
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

    pub(crate) fn place(&self, located: &Located<'_>) -> ToolPlace {
        self.module(located.module).place(located.expr.at)
    }

    pub(crate) fn why(&self, located: &Located<'_>, why: impl Into<String>) -> Why {
        Why { place: self.place(located), why: why.into() }
    }

    /// Follows names, members and constants to what they stand for.
    pub(crate) fn meaning<'p>(&'p self, located: &Located<'p>) -> Meaning<'p> {
        self.follow(located, 0)
    }

    /// Returns the expression behind names; none where they mean something else or nothing that is known.
    pub(crate) fn resolve<'p>(&'p self, located: &Located<'p>) -> Option<Located<'p>> {
        match self.meaning(located) {
            Meaning::Expr(located) => Some(located),
            _ => None,
        }
    }

    /// Returns the dotted name of what comes from a package, such as `mcp.server.fastmcp.FastMCP`.
    pub(crate) fn foreign_name<'p>(&'p self, located: &Located<'p>) -> Option<String> {
        match self.meaning(located) {
            Meaning::Foreign(name) => Some(name),
            _ => None,
        }
    }

    pub(super) fn follow<'p>(&'p self, located: &Located<'p>, steps: usize) -> Meaning<'p> {
        if steps > MAX_STEPS || !self.step() {
            return Meaning::Unknown(self.why(located, "it is defined through too many others"));
        }
        match &located.expr.kind {
            Kind::Name(name) => self.name(located, name, steps),
            Kind::Member(object, name) => self.member(located, object, name, steps),
            Kind::Index(object, key) => self.index(located, object, key, steps),
            Kind::Function(id) => Meaning::Function(located.module, *id),
            Kind::Class(id) => Meaning::Class(located.module, *id),
            Kind::Call(call) => self.called(located, call, steps),
            _ => Meaning::Expr(located.clone()),
        }
    }

    fn name<'p>(&'p self, located: &Located<'p>, name: &str, steps: usize) -> Meaning<'p> {
        let module = self.module(located.module);
        let mut scope = Some(located.scope);
        let mut is_innermost = true;
        while let Some(id) = scope {
            let current = &module.scopes[id];
            scope = current.parent;
            // A class's names are not seen by its methods.
            let is_hidden = matches!(current.owner, Owner::Class(_)) && !is_innermost;
            is_innermost = false;
            if is_hidden {
                continue;
            }
            if let Some(meaning) = self.bound(located, id, name, steps) {
                return meaning;
            }
            if let Owner::Function(function) = current.owner
                && let Some(meaning) = self.parameter(located, function, name, steps)
            {
                return meaning;
            }
        }
        self.star_import(located, name, steps).unwrap_or_else(|| Meaning::Foreign(name.to_owned()))
    }

    /// Returns what a scope itself binds a name to.
    pub(super) fn bound<'p>(
        &'p self,
        located: &Located<'p>,
        scope: ScopeId,
        name: &str,
        steps: usize,
    ) -> Option<Meaning<'p>> {
        let here = |expr: &'p Expr| Located { scope, expr, ..located.clone() };
        let mut found: Vec<Meaning<'p>> = Vec::new();
        let (mut assigned, mut rebound) = (0, false);
        for statement in self.module(located.module).scopes[scope].binding(name) {
            match statement {
                Statement::Assign { value: Some(value), .. } => {
                    assigned += 1;
                    // `x = x or y` and the like would never end.
                    let mut is_own = false;
                    value.walk(&mut |inner| is_own |= matches!(&inner.kind, Kind::Name(own) if own == name));
                    if is_own {
                        rebound = true;
                    } else {
                        found.push(self.follow(&here(value), steps + 1));
                    }
                }
                Statement::Rebind { .. } => rebound = true,
                Statement::Define { defined, .. } => {
                    // A later definition replaces an earlier one.
                    found.retain(|meaning| !matches!(meaning, Meaning::Function(..) | Meaning::Class(..)));
                    found.push(match defined {
                        Definition::Function(id) => Meaning::Function(located.module, *id),
                        Definition::Class(id) => Meaning::Class(located.module, *id),
                    });
                }
                Statement::Import(import) => {
                    let meaning = self.import(located.module, import.level, &import.from, &import.what, name, steps);
                    found.push(meaning);
                }
                _ => {}
            }
        }
        if found.is_empty() && !rebound {
            return None;
        }
        // `try: import a … except ImportError: a = None`.
        if found.len() > 1 {
            found.retain(|meaning| {
                !matches!(meaning, Meaning::Expr(Located { expr: Expr { kind: Kind::Null, .. }, .. }))
            });
        }
        if rebound || (assigned > 1 && found.len() > 1) {
            return Some(Meaning::Unknown(self.why(located, format!("'{name}' gets several values"))));
        }
        found.into_iter().next()
    }

    fn parameter<'p>(
        &'p self,
        located: &Located<'p>,
        function: FunctionId,
        name: &str,
        steps: usize,
    ) -> Option<Meaning<'p>> {
        let definition = &self.module(located.module).functions[function];
        definition.parameters.iter().find(|parameter| parameter.name == name)?;
        let mut frame = located.frame.as_ref();
        while let Some(current) = frame {
            if current.module == located.module && current.function == Some(function) {
                let argument = current.arguments.iter().find(|(parameter, _)| *parameter == name);
                if let Some((_, argument)) = argument {
                    return Some(self.follow(argument, steps + 1));
                }
            }
            frame = current.parent.as_ref();
        }
        if let Some(receiver) = self.receiver(located).filter(|_| is_receiver(name)) {
            return Some(Meaning::Class(receiver.module, receiver.class));
        }
        let shown = if name.starts_with('{') { "it".to_owned() } else { format!("'{name}'") };
        Some(Meaning::Unknown(self.why(located, format!("{shown} is a parameter"))))
    }

    fn star_import<'p>(&'p self, located: &Located<'p>, name: &str, steps: usize) -> Option<Meaning<'p>> {
        let statements = &self.module(located.module).scopes[0].statements;
        statements.iter().find_map(|statement| match statement {
            Statement::Import(import) if import.what == Imported::All => {
                let home = self.imported(located.module, import.level, &import.from)?;
                self.exported(home, name, steps + 1)
            }
            _ => None,
        })
    }

    fn import<'p>(
        &'p self,
        module: ModuleId,
        level: u32,
        from: &str,
        what: &Imported,
        local: &str,
        steps: usize,
    ) -> Meaning<'p> {
        let home = self.imported(module, level, from);
        let is_python = self.module(module).language == Language::Python;
        match (what, home) {
            // `import a.b` binds `a`.
            (Imported::Module, _) if is_python && from.starts_with(&format!("{local}.")) => {
                Meaning::Foreign(local.to_owned())
            }
            (Imported::Module, Some(home)) => Meaning::Module(home),
            (Imported::Name(name), home) => {
                if let Some(meaning) = home.and_then(|home| self.exported(home, name, steps + 1)) {
                    return meaning;
                }
                let module = self.imported(module, level, &submodule(from, name)).filter(|_| is_python);
                module.map_or_else(|| Meaning::Foreign(format!("{from}.{name}")), Meaning::Module)
            }
            (Imported::Module | Imported::All, _) => Meaning::Foreign(from.to_owned()),
        }
    }

    /// Returns what a module has under a name.
    pub(crate) fn exported<'p>(&'p self, id: ModuleId, name: &str, steps: usize) -> Option<Meaning<'p>> {
        if steps > MAX_STEPS {
            return None;
        }
        let module = self.module(id);
        if module.language == Language::Python {
            // Any expression will do: only the module and the scope count.
            let anywhere = Located::new(id, 0, ANYWHERE);
            let bound = self.bound(&anywhere, 0, name, steps);
            return bound.or_else(|| self.star_import(&anywhere, name, steps));
        }
        for export in &module.exports {
            match export {
                Export::Local { name: exported, value } if exported == name => {
                    return Some(self.follow(&Located::new(id, 0, value), steps + 1));
                }
                Export::From { name: exported, imported, specifier } if exported == name => {
                    return Some(self.import(id, 0, specifier, imported, name, steps + 1));
                }
                _ => {}
            }
        }
        module.exports.iter().find_map(|export| match export {
            Export::All { specifier } => self.exported(self.imported(id, 0, specifier)?, name, steps + 1),
            _ => None,
        })
    }
}

/// Stands in where only the module and the scope count.
pub(super) static ANYWHERE: &Expr = &Expr { at: 0, kind: Kind::Null };
