//! Checks what a function returns: its form, and `return` statements that always cause an error.

use karat_core::judgement::{RETURN_HELP, ReturnForm};
use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_stmt};
use ruff_python_ast::{Expr, Number, Stmt, StmtFunctionDef, StmtReturn, UnaryOp};
use ruff_text_size::{Ranged as _, TextRange};

use super::project_rules::ProjectRules;
use crate::function::{Finding, Rule};

/// Constants of a file that override the project's settings.
const RETURNS: &str = "KARAT_RETURNS";
const THRESHOLD: &str = "KARAT_THRESHOLD";

/// Returns the threshold of scores if the function's returns are flexible, and the findings about its constants.
pub(super) fn threshold(body: &[Stmt], rules: &ProjectRules<'_>) -> (Option<f64>, Vec<Finding>) {
    let mut findings = Vec::new();
    let (mut form, mut threshold) = (rules.returns, rules.threshold);
    for (name, value) in body.iter().filter_map(constant) {
        match name {
            RETURNS => {
                let word = value.as_string_literal_expr().map(|text| text.value.to_str());
                if let Some(named) = word.and_then(ReturnForm::from_name) {
                    form = named;
                } else {
                    let message = format!("{RETURNS} must be \"contract\" or \"flexible\"");
                    findings.push(finding(value.range(), message, None));
                }
            }
            THRESHOLD => match number(value) {
                Some(number) => threshold = number,
                None => findings.push(finding(value.range(), format!("{THRESHOLD} must be a number"), None)),
            },
            _ => {}
        }
    }
    (Some(threshold).filter(|_| form == ReturnForm::Flexible), findings)
}

/// Returns the name and value of a top-level assignment.
fn constant(stmt: &Stmt) -> Option<(&str, &Expr)> {
    let (target, value) = match stmt {
        Stmt::Assign(assign) => (assign.targets.first()?, &*assign.value),
        Stmt::AnnAssign(assign) => (&*assign.target, assign.value.as_deref()?),
        _ => return None,
    };
    Some((target.as_name_expr()?.id.as_str(), value))
}

fn number(value: &Expr) -> Option<f64> {
    match value {
        Expr::NumberLiteral(number) => match &number.value {
            Number::Int(int) => int.as_i64().and_then(|int| int.to_string().parse().ok()),
            Number::Float(float) => Some(*float).filter(|float| float.is_finite()),
            Number::Complex { .. } => None,
        },
        Expr::UnaryOp(unary) if unary.op == UnaryOp::USub => number(&unary.operand).map(|number| -number),
        _ => None,
    }
}

fn finding(range: TextRange, message: String, help: Option<&str>) -> Finding {
    Finding { rule: Rule::Return, message, help: help.map(str::to_owned), range: range.into() }
}

/// Returns the findings about a function whose `return` statements can never give a verdict.
pub(super) fn find_invalid(function: &StmtFunctionDef, form: ReturnForm) -> Vec<Finding> {
    if !function.decorator_list.is_empty() {
        // A decorator may convert what the function returns.
        return Vec::new();
    }
    let mut returns = Returns::default();
    returns.visit_body(&function.body);
    let help = match form {
        ReturnForm::Contract => RETURN_HELP,
        ReturnForm::Flexible => "return a bool, a number, a dict with 'pass' or 'score', or None",
    };
    let name = &function.name;
    if returns.statements.is_empty() && form == ReturnForm::Contract {
        let message = format!("'{name}' has no 'return', so it never returns a verdict");
        return vec![finding(name.range(), message, Some(help))];
    }
    let reasons: Option<Vec<(TextRange, &str)>> = returns
        .statements
        .iter()
        .map(|stmt| Some((stmt.range(), invalid_value(stmt.value.as_deref(), form)?)))
        .collect();
    let reasons = reasons.unwrap_or_default();
    let describe = |(range, value): (TextRange, &str)| {
        let expected = match form {
            ReturnForm::Contract => "a tuple of a boolean and a string",
            ReturnForm::Flexible => "a verdict",
        };
        finding(range, format!("returns {value} instead of {expected}"), Some(help))
    };
    reasons.into_iter().map(describe).collect()
}

/// The `return` statements of a function, without those of nested functions.
#[derive(Default)]
struct Returns<'a> {
    statements: Vec<&'a StmtReturn>,
}

impl<'a> SourceOrderVisitor<'a> for Returns<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Return(returned) => self.statements.push(returned),
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) => {}
            other => walk_stmt(self, other),
        }
    }
}

/// Describes a value that cannot be a verdict; `None` if it may be one.
fn invalid_value(value: Option<&Expr>, form: ReturnForm) -> Option<&'static str> {
    let is_contract = form == ReturnForm::Contract;
    match value {
        None | Some(Expr::NoneLiteral(_)) => is_contract.then_some("None"),
        Some(Expr::Dict(dict)) => {
            let known = ["pass", "passed", "score"];
            let may_be_known = |key: Option<&Expr>| {
                key.is_none_or(|key| {
                    key.as_string_literal_expr().is_none_or(|text| known.contains(&text.value.to_str()))
                })
            };
            let has_verdict = dict.items.iter().any(|item| may_be_known(item.key.as_ref()));
            match (is_contract, has_verdict) {
                (true, _) => Some("a dict"),
                (false, true) => None,
                (false, false) => Some("a dict without 'pass', 'passed' and 'score'"),
            }
        }
        Some(Expr::Tuple(tuple)) if tuple.iter().all(|item| !item.is_starred_expr()) => match &*tuple.elts {
            [passed, reason] => invalid_pair(passed, reason, is_contract),
            _ => Some("a tuple that does not have two elements"),
        },
        Some(Expr::NumberLiteral(_)) => is_contract.then_some("a number"),
        Some(Expr::BooleanLiteral(_) | Expr::Compare(_)) if is_contract => Some("a boolean without a reason"),
        Some(Expr::UnaryOp(unary)) if unary.op == UnaryOp::Not && is_contract => Some("a boolean without a reason"),
        Some(other) => invalid_type(other),
    }
}

fn invalid_pair(passed: &Expr, reason: &Expr, is_contract: bool) -> Option<&'static str> {
    let is_invalid_verdict = match passed {
        Expr::NumberLiteral(_) | Expr::NoneLiteral(_) => is_contract,
        other => invalid_type(other).is_some() || other.is_dict_expr() || other.is_tuple_expr(),
    };
    let is_invalid_reason = match reason {
        Expr::StringLiteral(_) | Expr::FString(_) => false,
        Expr::NumberLiteral(_) | Expr::NoneLiteral(_) | Expr::BooleanLiteral(_) | Expr::Dict(_) | Expr::Tuple(_) => {
            true
        }
        other => invalid_type(other).is_some(),
    };
    match (is_invalid_verdict, is_invalid_reason) {
        (true, _) => Some("a tuple whose first element is not a boolean"),
        (_, true) => Some("a tuple whose second element is not a string"),
        _ => None,
    }
}

/// Describes a literal of a type that is never a verdict.
fn invalid_type(value: &Expr) -> Option<&'static str> {
    match value {
        Expr::StringLiteral(_) | Expr::FString(_) => Some("a string"),
        Expr::BytesLiteral(_) => Some("bytes"),
        Expr::List(_) | Expr::ListComp(_) => Some("a list"),
        Expr::Set(_) | Expr::SetComp(_) => Some("a set"),
        Expr::Generator(_) => Some("a generator"),
        Expr::Lambda(_) => Some("a function"),
        _ => None,
    }
}
