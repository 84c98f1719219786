//! What the names of a module are bound to.

use std::collections::{HashMap, HashSet};

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, Stmt, StmtClassDef, StmtFunctionDef};

use super::changes::{Changes, MODULE};

/// How deep a source is looked into.
pub(super) const DEEPEST: usize = 150;

/// What a name stands for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Binding<'p> {
    Value(&'p Expr),
    Function(&'p StmtFunctionDef),
    Class(&'p StmtClassDef),
    /// `import a.b as name`, or `import a.b`, which binds `a`.
    Module {
        dotted: &'p str,
    },
    /// `from a.b import original as name`
    Member {
        level: u32,
        module: &'p str,
        original: &'p str,
    },
    /// More than one thing, or one that is not always there.
    Unclear,
}

/// The names of a module.
#[derive(Default)]
pub(super) struct Names<'p> {
    bindings: HashMap<&'p str, Binding<'p>>,
    /// Modules of which all names are imported.
    pub(super) stars: Vec<(u32, &'p str)>,
    /// Names that were bound before all names of a module were imported.
    pub(super) before_stars: HashSet<&'p str>,
    /// What is done to lists and dictionaries after they were made.
    pub(super) changes: Changes<'p>,
}

impl<'p> Names<'p> {
    pub(super) fn of(body: &'p [Stmt]) -> Self {
        let mut names = Self::default();
        for statement in body {
            names.bind(statement, false, 0);
        }
        let mut rebinding = Rebinding { names: &mut names, depth: 0 };
        for statement in body {
            rebinding.visit_stmt(statement);
        }
        names.changes = Changes::of(body);
        names
    }

    pub(super) fn get(&self, name: &str) -> Option<Binding<'p>> {
        self.bindings.get(name).copied()
    }

    /// Returns a name as it stands in the source.
    pub(super) fn name(&self, name: &str) -> Option<&'p str> {
        self.bindings.get_key_value(name).map(|(name, _)| *name)
    }

    /// Tells whether a list or dictionary of this name may hold something else than it was made with.
    pub(super) fn is_changed(&self, name: &str) -> bool {
        self.changes.is_touched((MODULE, name))
    }

    /// Returns the names in a fixed order.
    pub(super) fn imported(&self) -> Vec<(&'p str, Binding<'p>)> {
        let is_import = |binding: &Binding<'_>| matches!(binding, Binding::Module { .. } | Binding::Member { .. });
        let mut all: Vec<_> = self.bindings.iter().map(|(name, binding)| (*name, *binding)).collect();
        all.retain(|(_, binding)| is_import(binding));
        all.sort_by_key(|(name, _)| *name);
        all
    }

    fn set(&mut self, name: &'p str, binding: Binding<'p>, is_sure: bool) {
        let binding = if is_sure { binding } else { Binding::Unclear };
        self.bindings.entry(name).and_modify(|known| *known = Binding::Unclear).or_insert(binding);
    }

    /// Takes note of what a statement binds; what stands under a condition is not sure.
    fn bind(&mut self, statement: &'p Stmt, is_conditional: bool, depth: usize) {
        if depth > DEEPEST {
            return;
        }
        let sure = !is_conditional;
        match statement {
            Stmt::FunctionDef(function) => self.set(function.name.as_str(), Binding::Function(function), sure),
            Stmt::ClassDef(class) => self.set(class.name.as_str(), Binding::Class(class), sure),
            Stmt::Assign(assign) => {
                for target in &assign.targets {
                    match target {
                        Expr::Name(name) => self.set(name.id.as_str(), Binding::Value(&assign.value), sure),
                        other => self.unclear(other, depth),
                    }
                }
            }
            Stmt::AnnAssign(assign) => {
                if let (Expr::Name(name), Some(value)) = (&*assign.target, &assign.value) {
                    self.set(name.id.as_str(), Binding::Value(value), sure);
                }
            }
            Stmt::TypeAlias(alias) => {
                if let Expr::Name(name) = &*alias.name {
                    self.set(name.id.as_str(), Binding::Value(&alias.value), sure && alias.type_params.is_none());
                }
            }
            Stmt::AugAssign(assign) => self.unclear(&assign.target, depth),
            Stmt::Delete(delete) => delete.targets.iter().for_each(|target| self.unclear(target, depth)),
            Stmt::Import(import) => {
                for name in &import.names {
                    let dotted = name.name.as_str();
                    if let Some(short) = &name.asname {
                        self.set(short.as_str(), Binding::Module { dotted }, sure);
                    } else {
                        // `import a.b` and `import a.c` both bind `a`, to the same thing.
                        let first = dotted.split('.').next().unwrap_or(dotted);
                        let is_same = matches!(self.get(first), Some(Binding::Module { dotted }) if dotted == first);
                        if !is_same {
                            self.set(first, Binding::Module { dotted: first }, sure);
                        }
                    }
                }
            }
            Stmt::ImportFrom(import) => {
                let module = import.module.as_ref().map(ruff_python_ast::Identifier::as_str).unwrap_or_default();
                for name in &import.names {
                    let original = name.name.as_str();
                    if original == "*" {
                        self.stars.push((import.level, module));
                        // It may bind anew whatever is bound so far.
                        self.before_stars.extend(self.bindings.keys().copied());
                        continue;
                    }
                    let short = name.asname.as_ref().map_or(original, |short| short.as_str());
                    // `try: from a import x; except ImportError: from b import x` leaves open which.
                    self.set(short, Binding::Member { level: import.level, module, original }, sure);
                }
            }
            Stmt::For(each) => {
                self.unclear(&each.target, depth);
                self.bind_all(&each.body, depth);
                self.bind_all(&each.orelse, depth);
            }
            Stmt::While(each) => {
                self.bind_all(&each.body, depth);
                self.bind_all(&each.orelse, depth);
            }
            Stmt::If(branch) => {
                self.bind_all(&branch.body, depth);
                branch.elif_else_clauses.iter().for_each(|clause| self.bind_all(&clause.body, depth));
            }
            Stmt::With(with) => {
                with.items.iter().filter_map(|item| item.optional_vars.as_deref()).for_each(|vars| {
                    self.unclear(vars, depth);
                });
                self.bind_all(&with.body, depth);
            }
            Stmt::Try(attempt) => {
                self.bind_all(&attempt.body, depth);
                for handler in &attempt.handlers {
                    let ruff_python_ast::ExceptHandler::ExceptHandler(handler) = handler;
                    self.bind_all(&handler.body, depth);
                }
                self.bind_all(&attempt.orelse, depth);
                self.bind_all(&attempt.finalbody, depth);
            }
            Stmt::Match(choice) => choice.cases.iter().for_each(|case| self.bind_all(&case.body, depth)),
            _ => {}
        }
    }

    fn bind_all(&mut self, body: &'p [Stmt], depth: usize) {
        for statement in body {
            self.bind(statement, true, depth + 1);
        }
    }

    /// Takes note that something happens to the names of a target.
    fn unclear(&mut self, target: &'p Expr, depth: usize) {
        match target {
            _ if depth > DEEPEST => {}
            Expr::Name(name) => {
                self.bindings.insert(name.id.as_str(), Binding::Unclear);
            }
            Expr::Tuple(tuple) => tuple.elts.iter().for_each(|item| self.unclear(item, depth + 1)),
            Expr::List(list) => list.elts.iter().for_each(|item| self.unclear(item, depth + 1)),
            Expr::Starred(starred) => self.unclear(&starred.value, depth + 1),
            _ => {}
        }
    }
}

/// Looks through the whole module for what rebinds a name from within a function or expression.
struct Rebinding<'n, 'p> {
    names: &'n mut Names<'p>,
    depth: usize,
}

impl<'p> Visitor<'p> for Rebinding<'_, 'p> {
    fn visit_stmt(&mut self, statement: &'p Stmt) {
        if let Stmt::Global(global) = statement {
            for name in &global.names {
                self.names.bindings.insert(name.as_str(), Binding::Unclear);
            }
        }
        if self.depth < DEEPEST {
            self.depth += 1;
            walk_stmt(self, statement);
            self.depth -= 1;
        }
    }

    fn visit_expr(&mut self, expression: &'p Expr) {
        if let Expr::Named(named) = expression {
            self.names.unclear(&named.target, self.depth);
        }
        if self.depth < DEEPEST {
            self.depth += 1;
            walk_expr(self, expression);
            self.depth -= 1;
        }
    }
}
