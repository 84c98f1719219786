//! The names that a statement binds and uses outside of its own scopes.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::source_order::{
    SourceOrderVisitor, walk_except_handler, walk_expr, walk_pattern, walk_stmt,
};
use ruff_python_ast::{
    Alias, Comprehension, ExceptHandler, Expr, ExprContext, Identifier, Parameters, Pattern, Stmt, StmtFunctionDef,
};

use crate::modules::root;

/// The names of a statement at the top level, or of a function's body.
#[derive(Default)]
pub(super) struct Names<'a> {
    pub(super) binds: BTreeSet<&'a str>,
    /// Those of `binds` that an import binds.
    pub(super) imports: BTreeSet<&'a str>,
    pub(super) uses: BTreeSet<&'a str>,
    /// Names in annotations of functions, which Python evaluates only on request.
    pub(super) annotations: BTreeSet<&'a str>,
}

impl<'a> Names<'a> {
    pub(super) fn of_statement(stmt: &'a Stmt) -> Self {
        let mut visitor = Visitor::new(Kind::Module);
        visitor.visit_stmt(stmt);
        visitor.finish()
    }

    /// Returns the names in the scope of a function: `binds` are its local names.
    pub(super) fn of_function(function: &'a StmtFunctionDef) -> Self {
        let mut visitor = Visitor::new(Kind::Function);
        visitor.bind_parameters(&function.parameters);
        visitor.visit_body(&function.body);
        visitor.finish()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Module,
    Class,
    Function,
    Comprehension,
}

struct Scope<'a> {
    kind: Kind,
    names: Names<'a>,
    /// Names that `global` or `nonlocal` assigns to an outer scope.
    outer: BTreeSet<&'a str>,
}

struct Visitor<'a> {
    /// The scope of the visitor itself comes first.
    first: Scope<'a>,
    inner: Vec<Scope<'a>>,
    /// Whether an annotation is visited that Python does not evaluate.
    is_annotation: bool,
}

impl<'a> Visitor<'a> {
    fn new(kind: Kind) -> Self {
        let first = Scope { kind, names: Names::default(), outer: BTreeSet::new() };
        Self { first, inner: Vec::new(), is_annotation: false }
    }

    fn finish(self) -> Names<'a> {
        self.first.names
    }

    fn scope(&mut self) -> &mut Scope<'a> {
        self.inner.last_mut().unwrap_or(&mut self.first)
    }

    fn bind(&mut self, name: &'a str) {
        let scope = self.scope();
        if !scope.outer.contains(name) {
            scope.names.binds.insert(name);
        }
    }

    fn bind_import(&mut self, name: &'a str) {
        self.bind(name);
        self.scope().names.imports.insert(name);
    }

    fn use_name(&mut self, name: &'a str) {
        let is_annotation = self.is_annotation;
        let scope = self.scope();
        if is_annotation {
            scope.names.annotations.insert(name);
        } else if scope.kind != Kind::Class || !scope.names.binds.contains(name) {
            scope.names.uses.insert(name);
        }
    }

    fn bind_parameters(&mut self, parameters: &'a Parameters) {
        for parameter in parameters {
            self.bind(parameter.name());
        }
    }

    /// Visits defaults and annotations, which belong to the scope around the function.
    fn visit_signature(&mut self, parameters: &'a Parameters) {
        for parameter in parameters {
            if let Some(default) = parameter.default() {
                self.visit_expr(default);
            }
            if let Some(annotation) = parameter.annotation() {
                self.visit_unevaluated(annotation);
            }
        }
    }

    fn visit_unevaluated(&mut self, annotation: &'a Expr) {
        let before = std::mem::replace(&mut self.is_annotation, true);
        self.visit_expr(annotation);
        self.is_annotation = before;
    }

    /// Visits a scope, and gives the names that it does not bind to the scope around it.
    fn within(&mut self, kind: Kind, visit: impl FnOnce(&mut Self)) {
        self.inner.push(Scope { kind, names: Names::default(), outer: BTreeSet::new() });
        visit(self);
        let Some(Scope { kind, names, .. }) = self.inner.pop() else { return };
        let is_free = |name: &&&str| kind == Kind::Class || !names.binds.contains(**name);
        let uses: Vec<&str> = names.uses.iter().filter(is_free).copied().collect();
        let annotations: Vec<&str> = names.annotations.iter().filter(is_free).copied().collect();
        let outer = &mut self.scope().names;
        outer.uses.extend(uses);
        outer.annotations.extend(annotations);
    }

    fn visit_comprehension_of(&mut self, generators: &'a [Comprehension], values: &[Option<&'a Expr>]) {
        // The first iterable belongs to the scope around it.
        if let Some(first) = generators.first() {
            self.visit_expr(&first.iter);
        }
        self.within(Kind::Comprehension, |visitor| {
            for (index, generator) in generators.iter().enumerate() {
                visitor.visit_expr(&generator.target);
                if index > 0 {
                    visitor.visit_expr(&generator.iter);
                }
                generator.ifs.iter().for_each(|condition| visitor.visit_expr(condition));
            }
            values.iter().flatten().for_each(|value| visitor.visit_expr(value));
        });
    }

    fn visit_function(&mut self, function: &'a StmtFunctionDef) {
        function.decorator_list.iter().for_each(|decorator| self.visit_expr(&decorator.expression));
        self.bind(&function.name);
        self.visit_signature(&function.parameters);
        if let Some(returns) = &function.returns {
            self.visit_unevaluated(returns);
        }
        self.within(Kind::Function, |visitor| {
            visitor.bind_parameters(&function.parameters);
            visitor.visit_body(&function.body);
        });
    }
}

/// Returns the name that an import binds.
fn bound_name(alias: &Alias) -> &str {
    alias.asname.as_ref().map_or_else(|| root(&alias.name), Identifier::as_str)
}

impl<'a> SourceOrderVisitor<'a> for Visitor<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::FunctionDef(function) => self.visit_function(function),
            Stmt::ClassDef(class) => {
                class.decorator_list.iter().for_each(|decorator| self.visit_expr(&decorator.expression));
                if let Some(arguments) = &class.arguments {
                    self.visit_arguments(arguments);
                }
                self.bind(&class.name);
                self.within(Kind::Class, |visitor| visitor.visit_body(&class.body));
            }
            Stmt::Import(import) => import.names.iter().for_each(|alias| self.bind_import(bound_name(alias))),
            Stmt::ImportFrom(import) => import.names.iter().for_each(|alias| self.bind_import(bound_name(alias))),
            Stmt::Global(global) => self.scope().outer.extend(global.names.iter().map(Identifier::as_str)),
            Stmt::Nonlocal(nonlocal) => self.scope().outer.extend(nonlocal.names.iter().map(Identifier::as_str)),
            Stmt::AnnAssign(assign) if self.scope().kind == Kind::Function => {
                self.visit_expr(&assign.target);
                self.visit_unevaluated(&assign.annotation);
                if let Some(value) = &assign.value {
                    self.visit_expr(value);
                }
            }
            other => walk_stmt(self, other),
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) if name.ctx == ExprContext::Load => self.use_name(&name.id),
            Expr::Name(name) => {
                // A name that `global` declares is one of the module.
                if self.scope().outer.contains(name.id.as_str()) {
                    self.use_name(&name.id);
                }
                self.bind(&name.id);
            }
            Expr::Named(named) => {
                self.visit_expr(&named.value);
                if let Some(name) = named.target.as_name_expr() {
                    let scope = self.inner.iter_mut().rev().find(|scope| scope.kind != Kind::Comprehension);
                    scope.unwrap_or(&mut self.first).names.binds.insert(&name.id);
                }
            }
            Expr::Lambda(lambda) => {
                if let Some(parameters) = &lambda.parameters {
                    self.visit_signature(parameters);
                }
                self.within(Kind::Function, |visitor| {
                    if let Some(parameters) = &lambda.parameters {
                        visitor.bind_parameters(parameters);
                    }
                    visitor.visit_expr(&lambda.body);
                });
            }
            Expr::ListComp(list) => self.visit_comprehension_of(&list.generators, &[Some(&*list.elt)]),
            Expr::SetComp(set) => self.visit_comprehension_of(&set.generators, &[Some(&*set.elt)]),
            Expr::Generator(generator) => {
                self.visit_comprehension_of(&generator.generators, &[Some(&*generator.elt)]);
            }
            Expr::DictComp(dict) => {
                self.visit_comprehension_of(&dict.generators, &[dict.key.as_deref(), Some(&*dict.value)]);
            }
            other => walk_expr(self, other),
        }
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(inner) = handler;
        if let Some(name) = &inner.name {
            self.bind(name);
        }
        walk_except_handler(self, handler);
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        let bound = match pattern {
            Pattern::MatchAs(pattern) => pattern.name.as_ref(),
            Pattern::MatchStar(pattern) => pattern.name.as_ref(),
            Pattern::MatchMapping(pattern) => pattern.rest.as_ref(),
            _ => None,
        };
        if let Some(name) = bound {
            self.bind(name);
        }
        walk_pattern(self, pattern);
    }

    fn visit_identifier(&mut self, _: &'a Identifier) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::parse;

    fn names(source: &str) -> [String; 3] {
        let parsed = parse(source).unwrap();
        let names = Names::of_statement(&parsed.syntax().body[0]);
        let joined = |names: &BTreeSet<&str>| names.iter().copied().collect::<Vec<_>>().join(" ");
        [joined(&names.binds), joined(&names.uses), joined(&names.annotations)]
    }

    #[rstest::rstest]
    #[case("def f(a, b=C):\n    x = g(a)\n    return [y for y in x if y > z]\n", "f", "C g z", "")]
    #[case("def f(run: Run) -> Result:\n    x: int = 1\n    return x\n", "f", "", "Result Run int")]
    #[case("def f(a):\n    def g(b):\n        return a + b + c\n    return g\n", "f", "c", "")]
    #[case("def f():\n    global n\n    n = 1\n", "f", "n", "")]
    #[case("def f(v):\n    match v:\n        case {'a': x, **rest}:\n            return x, rest\n", "f", "", "")]
    #[case("def f():\n    try:\n        return g()\n    except E as error:\n        return error\n", "f", "E g", "")]
    #[case("class A(B):\n    n: int = 1\n    m = n\n    def g(self):\n        return n\n", "A", "B int n", "")]
    #[case("def f():\n    from a import b\n    return b, (q := 1), q\n", "f", "", "")]
    #[case("for x in y:\n    print(x)\n", "x", "print x y", "")]
    #[case("import a.b, c as d\n", "a d", "", "")]
    fn finds_free_names(#[case] source: &str, #[case] binds: &str, #[case] uses: &str, #[case] annotations: &str) {
        assert_eq!(names(source), [binds, uses, annotations]);
    }
}
