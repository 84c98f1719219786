//! What an evaluator reads of its arguments, as far as its author must know.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr};
use ruff_python_ast::{Expr, ExprCall, Stmt};

use super::framework::Framework;

#[derive(Default)]
pub(super) struct Reads<'a> {
    /// Whether it reads the variables of promptfoo's context.
    vars: bool,
    /// Keys of the output that are read with a default.
    defaults: BTreeSet<&'a str>,
}

impl<'a> Reads<'a> {
    pub(super) fn of(statements: &[&'a Stmt]) -> Self {
        let mut reads = Self::default();
        for stmt in statements {
            reads.visit_stmt(stmt);
        }
        reads
    }

    pub(super) fn notes(&self, framework: Framework) -> Vec<String> {
        let mut notes = Vec::new();
        if framework == Framework::Promptfoo && self.vars {
            notes.push("context[\"vars\"] is filled from the 'params' of the entry in 'expect.evals'".to_owned());
        }
        if framework == Framework::Langsmith && !self.defaults.is_empty() {
            let keys: Vec<String> = self.defaults.iter().map(|key| format!("'{key}'")).collect();
            notes.push(format!(
                "it reads {} of the output with a default, which counts without the key",
                keys.join(", ")
            ));
        }
        notes
    }

    fn visit_call(&mut self, call: &'a ExprCall) {
        let Some(attribute) = call.func.as_attribute_expr().filter(|attribute| attribute.attr == *"get") else {
            return;
        };
        let mut arguments = call.arguments.args.iter();
        let Some(key) = arguments.next().and_then(text) else { return };
        self.vars |= key == "vars";
        let of_output = match &*attribute.value {
            Expr::Name(name) => name.id == *"outputs",
            Expr::Attribute(attribute) => attribute.attr == *"outputs",
            _ => false,
        };
        if of_output && arguments.next().is_some() {
            self.defaults.insert(key);
        }
    }
}

impl<'a> SourceOrderVisitor<'a> for Reads<'a> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Subscript(subscript) => self.vars |= text(&subscript.slice) == Some("vars"),
            Expr::Call(call) => self.visit_call(call),
            _ => {}
        }
        walk_expr(self, expr);
    }
}

fn text(expr: &Expr) -> Option<&str> {
    expr.as_string_literal_expr().map(|literal| literal.value.to_str())
}
