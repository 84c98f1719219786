//! Finds errors that the parser does not, such as a `return` outside a function or a duplicate parameter.

use std::cell::RefCell;

use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_body, walk_expr, walk_stmt};
use ruff_python_ast::{Comprehension, Expr, PythonVersion, Stmt};
use ruff_python_parser::semantic_errors::{
    LazyImportContext, SemanticSyntaxChecker, SemanticSyntaxContext, SemanticSyntaxError,
};
use ruff_text_size::TextRange;

/// Returns the semantic syntax errors of parsed statements.
pub(super) fn check(body: &[Stmt], source: &str, version: PythonVersion) -> Vec<(String, TextRange)> {
    let mut checker = SemanticSyntaxChecker::new();
    let context = Context { source, version, scopes: vec![Scope::Module], loops: 0, errors: RefCell::default() };
    let mut visitor = SemanticVisitor { checker: &mut checker, context };
    visitor.visit_body(body);
    let errors = visitor.context.errors.into_inner();
    errors.into_iter().map(|error| (error.to_string(), error.range)).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Scope {
    Module,
    Class,
    Function { is_async: bool },
    Lambda,
    Comprehension,
    Generator,
}

/// The current position of the visitor.
struct Context<'s> {
    source: &'s str,
    version: PythonVersion,
    scopes: Vec<Scope>,
    /// Number of enclosing loops in the same function.
    loops: usize,
    errors: RefCell<Vec<SemanticSyntaxError>>,
}

impl Context<'_> {
    fn scope(&self) -> Scope {
        self.scopes.last().copied().unwrap_or(Scope::Module)
    }

    /// Returns the nearest scope that is not a comprehension.
    fn outer(&self) -> Scope {
        let is_outer = |scope: &&Scope| !matches!(scope, Scope::Comprehension | Scope::Generator);
        self.scopes.iter().rev().find(is_outer).copied().unwrap_or(Scope::Module)
    }
}

impl SemanticSyntaxContext for Context<'_> {
    fn future_annotations_or_stub(&self) -> bool {
        false
    }

    fn lazy_import_context(&self) -> Option<LazyImportContext> {
        None
    }

    fn python_version(&self) -> PythonVersion {
        self.version
    }

    fn source(&self) -> &str {
        self.source
    }

    // Python itself checks the names of `global` and `nonlocal`.
    fn global(&self, _: &str) -> Option<TextRange> {
        None
    }

    fn has_nonlocal_binding(&self, _: &str) -> bool {
        true
    }

    fn is_bound_parameter(&self, _: &str) -> bool {
        false
    }

    fn in_async_context(&self) -> bool {
        self.outer() == Scope::Function { is_async: true }
    }

    fn in_await_allowed_context(&self) -> bool {
        matches!(self.outer(), Scope::Function { .. } | Scope::Lambda)
    }

    fn in_yield_allowed_context(&self) -> bool {
        matches!(self.scope(), Scope::Function { .. } | Scope::Lambda)
    }

    fn in_sync_comprehension(&self) -> bool {
        self.scope() == Scope::Comprehension
    }

    fn in_class_body_comprehension(&self) -> bool {
        self.outer() == Scope::Class
    }

    fn in_module_scope(&self) -> bool {
        self.scope() == Scope::Module
    }

    fn in_function_scope(&self) -> bool {
        matches!(self.scope(), Scope::Function { .. })
    }

    fn in_generator_context(&self) -> bool {
        self.scopes.contains(&Scope::Generator)
    }

    fn in_notebook(&self) -> bool {
        false
    }

    fn in_loop_context(&self) -> bool {
        self.loops > 0
    }

    fn report_semantic_error(&self, error: SemanticSyntaxError) {
        self.errors.borrow_mut().push(error);
    }
}

struct SemanticVisitor<'c, 's> {
    checker: &'c mut SemanticSyntaxChecker,
    context: Context<'s>,
}

impl SemanticVisitor<'_, '_> {
    fn within(&mut self, scope: Scope, visit: impl FnOnce(&mut Self)) {
        let loops = std::mem::take(&mut self.context.loops);
        self.context.scopes.push(scope);
        visit(self);
        self.context.scopes.pop();
        self.context.loops = loops;
    }

    /// Walks a comprehension, whose first iterable belongs to the enclosing scope.
    fn comprehension(&mut self, scope: Scope, parts: [Option<&Expr>; 2], generators: &[Comprehension]) {
        if let Some(first) = generators.first() {
            self.visit_expr(&first.iter);
        }
        self.within(scope, |visitor| {
            parts.into_iter().flatten().for_each(|part| visitor.visit_expr(part));
            for (index, generator) in generators.iter().enumerate() {
                visitor.visit_expr(&generator.target);
                if index > 0 {
                    visitor.visit_expr(&generator.iter);
                }
                generator.ifs.iter().for_each(|condition| visitor.visit_expr(condition));
            }
        });
    }

    fn in_loop(&mut self, body: &[Stmt], orelse: &[Stmt]) {
        self.context.loops += 1;
        walk_body(self, body);
        self.context.loops -= 1;
        walk_body(self, orelse);
    }
}

impl<'a> SourceOrderVisitor<'a> for SemanticVisitor<'_, '_> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        self.checker.visit_stmt(stmt, &self.context);
        match stmt {
            Stmt::FunctionDef(function) => {
                for decorator in &function.decorator_list {
                    self.visit_decorator(decorator);
                }
                self.visit_parameters(&function.parameters);
                let scope = Scope::Function { is_async: function.is_async };
                self.within(scope, |visitor| walk_body(visitor, &function.body));
            }
            Stmt::ClassDef(class) => {
                for decorator in &class.decorator_list {
                    self.visit_decorator(decorator);
                }
                if let Some(arguments) = &class.arguments {
                    self.visit_arguments(arguments);
                }
                self.within(Scope::Class, |visitor| walk_body(visitor, &class.body));
            }
            Stmt::For(statement) => {
                self.visit_expr(&statement.target);
                self.visit_expr(&statement.iter);
                self.in_loop(&statement.body, &statement.orelse);
            }
            Stmt::While(statement) => {
                self.visit_expr(&statement.test);
                self.in_loop(&statement.body, &statement.orelse);
            }
            other => walk_stmt(self, other),
        }
    }

    fn visit_annotation(&mut self, _: &'a Expr) {
        // The checker visits annotations itself.
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        self.checker.visit_expr(expr, &self.context);
        match expr {
            Expr::Lambda(lambda) => {
                if let Some(parameters) = &lambda.parameters {
                    self.visit_parameters(parameters);
                }
                self.within(Scope::Lambda, |visitor| visitor.visit_expr(&lambda.body));
            }
            Expr::ListComp(list) => self.comprehension(Scope::Comprehension, [Some(&list.elt), None], &list.generators),
            Expr::SetComp(set) => self.comprehension(Scope::Comprehension, [Some(&set.elt), None], &set.generators),
            Expr::DictComp(dict) => {
                let parts = [dict.key.as_deref(), Some(&*dict.value)];
                self.comprehension(Scope::Comprehension, parts, &dict.generators);
            }
            Expr::Generator(generator) => {
                self.comprehension(Scope::Generator, [Some(&generator.elt), None], &generator.generators);
            }
            other => walk_expr(self, other),
        }
    }
}
