//! Finds the eval function of a source.

use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr, walk_stmt};
use ruff_python_ast::{Alias, Comprehension, Expr, ExprContext, Identifier, Parameters, Stmt, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange};

use crate::function::{Finding, Rule};
use karat_json::text::snake_case;

const PREFIX: &str = "eval_";

/// The name of the second parameter.
const CONTEXT: &str = "context";

/// Returns the eval function, and the findings about it.
pub(super) fn find(body: &[Stmt]) -> (Option<&StmtFunctionDef>, Vec<Finding>) {
    let mut top = TopLevel::default();
    for stmt in body {
        if let Stmt::FunctionDef(function) = stmt {
            top.add_function(function);
        } else {
            top.visit_stmt(stmt);
        }
    }
    let TopLevel { functions, mut findings } = top;
    let mut rebinding = Rebinding(&mut findings);
    rebinding.visit_body(body);
    for function in &functions {
        check_signature(function, &mut findings);
    }
    match functions.as_slice() {
        [] if findings.is_empty() => findings.push(none_found(body)),
        [] | [_] => {}
        [first, second, ..] => findings.push(several_found(first, second, &functions)),
    }
    (functions.first().copied(), findings)
}

/// Whether the second parameter of a function is the context.
pub(super) fn takes_context(function: &StmtFunctionDef) -> bool {
    let Parameters { posonlyargs, args, .. } = &*function.parameters;
    posonlyargs.iter().chain(args).nth(1).is_some_and(|parameter| parameter.name() == CONTEXT)
}

fn finding(range: TextRange, message: String, help: &str) -> Finding {
    Finding { rule: Rule::Function, message, help: Some(help.to_owned()), range: range.into() }
}

fn none_found(body: &[Stmt]) -> Finding {
    let other = body.iter().find_map(Stmt::as_function_def_stmt).map(|function| function.name.range());
    let message = "no function whose name starts with 'eval_'".to_owned();
    finding(other.unwrap_or_default(), message, "write 'def eval_NAME(trace):' at the top level")
}

fn several_found(first: &StmtFunctionDef, second: &StmtFunctionDef, all: &[&StmtFunctionDef]) -> Finding {
    let message = if all.iter().all(|function| function.name == first.name) {
        format!("'{}' is defined more than once", first.name)
    } else {
        let names: Vec<String> = all.iter().map(|function| format!("'{}'", function.name)).collect();
        format!("more than one eval function: {}", names.join(", "))
    };
    finding(second.name.range(), message, "put each into its own file; name helpers without the prefix 'eval_'")
}

/// Checks that the function can be called with a trace and return a verdict.
fn check_signature(function: &StmtFunctionDef, findings: &mut Vec<Finding>) {
    let name = &function.name;
    if function.is_async {
        let message = format!("'{name}' is async, so it does not return a verdict");
        findings.push(finding(name.range(), message, "write 'def' without 'async'"));
    }
    let parameters = &function.parameters;
    let positional = parameters.posonlyargs.len() + parameters.args.len();
    let has_others = parameters.vararg.is_some() || parameters.kwarg.is_some() || !parameters.kwonlyargs.is_empty();
    let is_known = positional == 1 || (positional == 2 && takes_context(function));
    if !is_known || has_others {
        let message = format!("'{name}' must have the parameters (trace) or (trace, context)");
        let help =
            "the function is called with the trace, and with the context if its second parameter is named 'context'";
        findings.push(finding(parameters.range(), message, help));
    }
    let mut yields = YieldFinder::default();
    yields.visit_body(&function.body);
    if let Some(range) = yields.first {
        let message = format!("'{name}' contains 'yield', so it returns a generator instead of a verdict");
        findings.push(finding(range, message, "return a tuple of a boolean and a string"));
    }
}

/// Rejects code that could rebind the eval function's name at run time.
struct Rebinding<'f>(&'f mut Vec<Finding>);

impl<'a> SourceOrderVisitor<'a> for Rebinding<'_> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        if let Stmt::Global(global) = stmt {
            for name in global.names.iter().filter(|name| name.starts_with(PREFIX)) {
                let message = format!("'{name}' could be rebound to another value");
                self.0.push(finding(name.range(), message, "name global variables without the prefix 'eval_'"));
            }
        }
        walk_stmt(self, stmt);
    }
}

/// Finds the first `yield` of a function, without nested functions.
#[derive(Default)]
struct YieldFinder {
    first: Option<TextRange>,
}

impl<'a> SourceOrderVisitor<'a> for YieldFinder {
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

/// Collects top-level definitions whose name starts with `eval_`.
#[derive(Default)]
struct TopLevel<'a> {
    functions: Vec<&'a StmtFunctionDef>,
    findings: Vec<Finding>,
}

impl<'a> TopLevel<'a> {
    fn add_function(&mut self, function: &'a StmtFunctionDef) {
        if function.name == *PREFIX {
            let message = "a name must follow 'eval_'".to_owned();
            self.findings.push(finding(function.name.range(), message, "name what it judges, for example 'eval_tone'"));
        } else if function.name.starts_with(PREFIX) {
            self.check_case(&function.name);
            self.functions.push(function);
        }
    }

    /// Rejects upper-case letters: names of evals are snake case.
    fn check_case(&mut self, name: &Identifier) {
        if name.chars().any(char::is_uppercase) {
            let message = format!("'{name}' is not in snake case");
            self.findings.push(finding(name.range(), message, &format!("rename it to '{}'", snake_case(name))));
        }
    }

    /// Reports a variable whose name has the prefix.
    fn reject_variable(&mut self, target: &'a Expr) {
        let Some(name) = target.as_name_expr().filter(|name| name.id.starts_with(PREFIX)) else {
            return self.visit_expr(target);
        };
        let id = &name.id;
        let message = format!("the variable '{id}' has the prefix of eval functions");
        let suggestion = id.strip_prefix(PREFIX).filter(|rest| !rest.is_empty()).unwrap_or("value");
        let help =
            format!("rename it, for example to '{suggestion}': only the eval function may start with '{PREFIX}'");
        self.findings.push(finding(name.range(), message, &help));
    }

    /// Reports a name with the prefix that is not a function.
    fn reject_prefix(&mut self, name: &str, range: TextRange) {
        if name.starts_with(PREFIX) {
            let message = format!("'{name}' is not a function defined with 'def'");
            let help = "at the top level, only the eval function's name may start with 'eval_'";
            self.findings.push(finding(range, message, help));
        }
    }
}

/// Whether an expression is a literal: a variable with such a value is not meant to be a function.
fn is_data(value: &Expr) -> bool {
    value.is_literal_expr() || matches!(value, Expr::Dict(_) | Expr::List(_) | Expr::Set(_) | Expr::Tuple(_))
}

impl<'a> SourceOrderVisitor<'a> for TopLevel<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            // Functions directly at the top level are not visited.
            Stmt::FunctionDef(function) if function.name.starts_with(PREFIX) => {
                let message = format!("'{}' is defined conditionally", function.name);
                let help = "define the eval function at the top level, outside of any other statement";
                self.findings.push(finding(function.name.range(), message, help));
            }
            Stmt::FunctionDef(_) => {}
            Stmt::ClassDef(class) => self.reject_prefix(&class.name, class.name.range()),
            Stmt::Assign(assign) if is_data(&assign.value) => {
                assign.targets.iter().for_each(|target| self.reject_variable(target));
            }
            other => walk_stmt(self, other),
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) if name.ctx != ExprContext::Load => self.reject_prefix(&name.id, name.range()),
            Expr::Lambda(_) => {}
            Expr::Attribute(attribute) => self.visit_expr(&attribute.value),
            other => walk_expr(self, other),
        }
    }

    fn visit_comprehension(&mut self, comprehension: &'a Comprehension) {
        // The targets of a comprehension are local to it.
        self.visit_expr(&comprehension.iter);
        for condition in &comprehension.ifs {
            self.visit_expr(condition);
        }
    }

    fn visit_alias(&mut self, alias: &'a Alias) {
        let bound = alias.asname.as_ref().unwrap_or(&alias.name);
        self.reject_prefix(bound, bound.range());
    }

    fn visit_keyword(&mut self, keyword: &'a ruff_python_ast::Keyword) {
        self.visit_expr(&keyword.value);
    }

    fn visit_identifier(&mut self, identifier: &'a Identifier) {
        self.reject_prefix(identifier, identifier.range());
    }
}
