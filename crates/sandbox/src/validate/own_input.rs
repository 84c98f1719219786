//! Checks whether a function binds the name `input`, which then is not the built-in function.

use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr, walk_stmt};
use ruff_python_ast::{Comprehension, Expr, ExprContext, Identifier, Parameters, Stmt};

/// The blocked name that may be bound as a parameter or local variable.
pub(super) const INPUT: &str = "input";

/// Whether one of the parameters is named `input`.
pub(super) fn is_parameter(parameters: &Parameters) -> bool {
    parameters.iter().any(|parameter| parameter.name() == INPUT)
}

/// Whether one of the targets of a comprehension is named `input`.
pub(super) fn is_target(generators: &[Comprehension]) -> bool {
    let mut binding = Binding::default();
    for generator in generators {
        binding.visit_expr(&generator.target);
    }
    binding.is_bound
}

/// Whether `input` is a local variable of a function with this body.
pub(super) fn is_local(body: &[Stmt]) -> bool {
    let mut binding = Binding::default();
    binding.visit_body(body);
    binding.is_bound && !binding.is_outer
}

/// Looks for bindings in one scope.
#[derive(Default)]
struct Binding {
    is_bound: bool,
    /// Whether `global` or `nonlocal` declares that it belongs to another scope.
    is_outer: bool,
}

impl<'a> SourceOrderVisitor<'a> for Binding {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::FunctionDef(function) => self.is_bound |= function.name == *INPUT,
            Stmt::ClassDef(class) => self.is_bound |= class.name == *INPUT,
            Stmt::Global(global) => self.is_outer |= global.names.iter().any(|name| name == INPUT),
            Stmt::Nonlocal(nonlocal) => self.is_outer |= nonlocal.names.iter().any(|name| name == INPUT),
            other => walk_stmt(self, other),
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) => self.is_bound |= name.ctx == ExprContext::Store && name.id == INPUT,
            // Lambdas and comprehensions have their own scope.
            Expr::Lambda(_) | Expr::ListComp(_) | Expr::SetComp(_) | Expr::DictComp(_) | Expr::Generator(_) => {}
            Expr::Attribute(attribute) => self.visit_expr(&attribute.value),
            other => walk_expr(self, other),
        }
    }

    fn visit_keyword(&mut self, keyword: &'a ruff_python_ast::Keyword) {
        self.visit_expr(&keyword.value);
    }

    fn visit_identifier(&mut self, identifier: &'a Identifier) {
        self.is_bound |= *identifier == *INPUT;
    }
}
