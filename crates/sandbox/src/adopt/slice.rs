//! The statements of a module that a definition needs.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, ExprContext, Identifier, ModModule, Stmt};

/// The statements, in the order of the module.
pub(super) struct Slice<'a> {
    pub(super) statements: Vec<&'a Stmt>,
    /// The names that the statements refer to.
    pub(super) names: BTreeSet<&'a str>,
    /// Whether a statement binds a name with the prefix of eval functions.
    pub(super) has_eval_name: bool,
}

impl<'a> Slice<'a> {
    /// Returns the top-level statements that bind a name, and those that bind the names that they use.
    pub(super) fn of(module: &'a ModModule, name: &'a str) -> Self {
        let names: Vec<Names<'a>> = module.body.iter().map(Names::of).collect();
        let mut wanted = BTreeSet::from([name]);
        let mut is_kept = vec![false; names.len()];
        loop {
            let next = names.iter().zip(&is_kept).position(|(stmt, is_kept)| {
                !is_kept && (stmt.binds.iter().any(|bound| wanted.contains(bound)) || stmt.is_future)
            });
            let Some(index) = next else { break };
            is_kept[index] = true;
            wanted.extend(&names[index].uses);
        }
        let kept = || names.iter().zip(&is_kept).filter(|(_, is_kept)| **is_kept);
        let has_eval_name = kept().any(|(stmt, _)| stmt.binds.iter().any(|bound| bound.starts_with("eval_")));
        let statements = module.body.iter().zip(&is_kept).filter(|(_, is_kept)| **is_kept).map(|(stmt, _)| stmt);
        Self { statements: statements.collect(), names: wanted, has_eval_name }
    }
}

/// The names that a statement binds at the top level, and those that it uses.
#[derive(Default)]
struct Names<'a> {
    binds: BTreeSet<&'a str>,
    uses: BTreeSet<&'a str>,
    is_future: bool,
    /// Number of enclosing functions and classes.
    depth: usize,
}

impl<'a> Names<'a> {
    fn of(stmt: &'a Stmt) -> Self {
        let mut names = Self::default();
        names.visit_stmt(stmt);
        // An augmented assignment or a method call changes what the name is bound to.
        if let Stmt::Expr(statement) = stmt
            && let Expr::Call(call) = &*statement.value
            && let Expr::Attribute(attribute) = &*call.func
            && let Some(name) = attribute.value.as_name_expr()
        {
            names.binds.insert(&name.id);
        }
        names
    }
}

impl<'a> SourceOrderVisitor<'a> for Names<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        let bound = match stmt {
            Stmt::FunctionDef(function) => Some(&function.name),
            Stmt::ClassDef(class) => Some(&class.name),
            _ => None,
        };
        match stmt {
            Stmt::Import(import) if self.depth == 0 => {
                let name = |alias: &'a ruff_python_ast::Alias| match &alias.asname {
                    Some(asname) => asname.as_str(),
                    None => alias.name.split('.').next().unwrap_or_default(),
                };
                self.binds.extend(import.names.iter().map(name));
            }
            Stmt::ImportFrom(import) if self.depth == 0 => {
                self.is_future |= import.module.as_deref() == Some("__future__");
                self.binds
                    .extend(import.names.iter().map(|alias| alias.asname.as_ref().unwrap_or(&alias.name).as_str()));
            }
            _ => {}
        }
        let Some(bound) = bound else { return walk_stmt(self, stmt) };
        if self.depth == 0 {
            self.binds.insert(bound);
        }
        self.depth += 1;
        walk_stmt(self, stmt);
        self.depth -= 1;
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Name(name) = expr {
            if name.ctx == ExprContext::Load || self.depth > 0 {
                self.uses.insert(&name.id);
            } else {
                self.binds.insert(&name.id);
            }
        }
        walk_expr(self, expr);
    }

    fn visit_identifier(&mut self, _: &'a Identifier) {}
}
