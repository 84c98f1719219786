//! Finds the one function that judges a trace.

use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr, walk_stmt};
use ruff_python_ast::{Alias, Comprehension, Expr, ExprContext, Identifier, Stmt, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange};

use crate::function::{Finding, Rule};

const PREFIX: &str = "eval_";

/// Returns the name of the eval function, and what is wrong with it or with its being the only one.
pub(super) fn find(body: &[Stmt]) -> (Option<String>, Vec<Finding>) {
    let mut top = TopLevel::default();
    for stmt in body {
        if let Stmt::FunctionDef(function) = stmt {
            top.function(function);
        } else {
            top.visit_stmt(stmt);
        }
    }
    let TopLevel { functions, mut findings } = top;
    let mut rebinding = Rebinding(&mut findings);
    rebinding.visit_body(body);
    for function in &functions {
        check_form(function, &mut findings);
    }
    match functions.as_slice() {
        [] if findings.is_empty() => findings.push(none_found(body)),
        [] | [_] => {}
        [first, second, ..] => findings.push(several_found(first, second, &functions)),
    }
    (functions.first().map(|function| function.name.to_string()), findings)
}

fn finding(range: TextRange, message: String, help: &str) -> Finding {
    Finding { rule: Rule::Function, message, help: Some(help.to_owned()), range: range.into() }
}

fn none_found(body: &[Stmt]) -> Finding {
    let other = body.iter().find_map(Stmt::as_function_def_stmt).map(|function| function.name.range());
    let message = "there is no function whose name begins with 'eval_'".to_owned();
    finding(other.unwrap_or_default(), message, "write 'def eval_NAME(trace):' at the top level")
}

fn several_found(first: &StmtFunctionDef, second: &StmtFunctionDef, all: &[&StmtFunctionDef]) -> Finding {
    let message = if all.iter().all(|function| function.name == first.name) {
        format!("'{}' is defined more than once", first.name)
    } else {
        let names: Vec<String> = all.iter().map(|function| format!("'{}'", function.name)).collect();
        format!("there is more than one eval function: {}", names.join(", "))
    };
    finding(second.name.range(), message, "put each into a file of its own; a helper's name begins in another way")
}

/// Checks that the function can be called with a trace and return a verdict.
fn check_form(function: &StmtFunctionDef, findings: &mut Vec<Finding>) {
    let name = &function.name;
    if function.is_async {
        let message = format!("'{name}' is async, so a call returns no verdict");
        findings.push(finding(name.range(), message, "write 'def' without 'async'"));
    }
    let parameters = &function.parameters;
    let positional = parameters.posonlyargs.len() + parameters.args.len();
    let are_others = parameters.vararg.is_some() || parameters.kwarg.is_some() || !parameters.kwonlyargs.is_empty();
    if positional != 1 || are_others {
        let message = format!("'{name}' must have exactly one parameter, the trace");
        findings.push(finding(parameters.range(), message, "it is called with the trace and nothing else"));
    }
    let mut yields = Yields::default();
    yields.visit_body(&function.body);
    if let Some(range) = yields.first {
        let message = format!("'{name}' yields, so a call returns a generator and no verdict");
        findings.push(finding(range, message, "return a tuple of a boolean and a string"));
    }
}

/// Refuses what could give the eval function's name another value while it runs.
struct Rebinding<'f>(&'f mut Vec<Finding>);

impl<'a> SourceOrderVisitor<'a> for Rebinding<'_> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        if let Stmt::Global(global) = stmt {
            for name in global.names.iter().filter(|name| name.starts_with(PREFIX)) {
                let message = format!("'{name}' could become something else than the function");
                self.0.push(finding(name.range(), message, "a global variable's name begins in another way"));
            }
        }
        walk_stmt(self, stmt);
    }
}

/// Looks for the first `yield` of a function's own.
#[derive(Default)]
struct Yields {
    first: Option<TextRange>,
}

impl<'a> SourceOrderVisitor<'a> for Yields {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        if !matches!(stmt, Stmt::FunctionDef(_) | Stmt::ClassDef(_)) {
            walk_stmt(self, stmt);
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Yield(_) | Expr::YieldFrom(_) => {
                self.first.get_or_insert(expr.range());
            }
            Expr::Lambda(_) => {}
            other => walk_expr(self, other),
        }
    }
}

/// Collects what is defined at the top level under a name that begins with `eval_`.
#[derive(Default)]
struct TopLevel<'a> {
    functions: Vec<&'a StmtFunctionDef>,
    findings: Vec<Finding>,
}

impl<'a> TopLevel<'a> {
    fn function(&mut self, function: &'a StmtFunctionDef) {
        if function.name == *PREFIX {
            let message = "a name must follow 'eval_'".to_owned();
            self.findings.push(finding(function.name.range(), message, "say what it judges, as 'eval_tone' does"));
        } else if function.name.starts_with(PREFIX) {
            self.functions.push(function);
        }
    }

    /// Refuses a name of which it would not be clear that it is not the function's.
    fn other(&mut self, name: &str, range: TextRange) {
        if name.starts_with(PREFIX) {
            let message = format!("'{name}' is no function made by 'def'");
            let help = "at the top level, only the eval function's name may begin with 'eval_'";
            self.findings.push(finding(range, message, help));
        }
    }
}

impl<'a> SourceOrderVisitor<'a> for TopLevel<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            // One by itself is not visited.
            Stmt::FunctionDef(function) if function.name.starts_with(PREFIX) => {
                let message = format!("'{}' is defined only under a condition", function.name);
                let help = "the eval function stands at the top level, in no other statement";
                self.findings.push(finding(function.name.range(), message, help));
            }
            Stmt::FunctionDef(_) => {}
            Stmt::ClassDef(class) => self.other(&class.name, class.name.range()),
            other => walk_stmt(self, other),
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) if name.ctx != ExprContext::Load => self.other(&name.id, name.range()),
            Expr::Lambda(_) => {}
            Expr::Attribute(attribute) => self.visit_expr(&attribute.value),
            other => walk_expr(self, other),
        }
    }

    fn visit_comprehension(&mut self, comprehension: &'a Comprehension) {
        // Its targets are its own.
        self.visit_expr(&comprehension.iter);
        for condition in &comprehension.ifs {
            self.visit_expr(condition);
        }
    }

    fn visit_alias(&mut self, alias: &'a Alias) {
        let bound = alias.asname.as_ref().unwrap_or(&alias.name);
        self.other(bound, bound.range());
    }

    fn visit_keyword(&mut self, keyword: &'a ruff_python_ast::Keyword) {
        self.visit_expr(&keyword.value);
    }

    fn visit_identifier(&mut self, identifier: &'a Identifier) {
        self.other(identifier, identifier.range());
    }
}
