//! Where a variable, or something inside its value, is changed after it was declared.

use oxc_ast::AstKind;
use oxc_ast::ast::{Argument, Expression, UnaryOperator};
use oxc_semantic::{NodeId, Semantic, SymbolId};
use oxc_span::GetSpan as _;

use super::syntax::Change;

/// Methods that change what they are called on.
const CHANGING: [&str; 13] = [
    "push",
    "unshift",
    "splice",
    "pop",
    "shift",
    "sort",
    "reverse",
    "fill",
    "copyWithin",
    "set",
    "add",
    "delete",
    "clear",
];

/// Methods of `Object` that change their first argument.
const CHANGING_FIRST: [&str; 4] = ["assign", "defineProperty", "defineProperties", "setPrototypeOf"];

/// Returns where a variable gets another value, and where its value is changed inside.
///
/// Only what is plain in the file is found: what a function does with an argument is not.
pub(super) fn changes(semantic: &Semantic<'_>, symbol: SymbolId) -> (Option<u32>, Vec<Change>) {
    let mut reassigned = None;
    let mut changes = Vec::new();
    for reference in semantic.scoping().get_resolved_references(symbol) {
        if reference.is_write() {
            let span = semantic.nodes().kind(reference.node_id()).span();
            reassigned.get_or_insert(span.start);
        } else if reference.is_read() {
            changes.extend(change(semantic, reference.node_id()));
        }
    }
    (reassigned, changes)
}

/// Climbs from a name through its members to what is done with them.
fn change(semantic: &Semantic<'_>, name: NodeId) -> Option<Change> {
    let nodes = semantic.nodes();
    let mut node = name;
    let mut keys: Vec<Option<String>> = Vec::new();
    let offset = nodes.kind(name).span().start;
    let found = |key: Option<Option<String>>| Some(Change { key: key.flatten(), offset });
    loop {
        let inner = nodes.kind(node).span();
        let parent = nodes.parent_id(node);
        match nodes.kind(parent) {
            AstKind::StaticMemberExpression(member) if member.object.span() == inner => {
                keys.push(Some(member.property.name.as_str().to_owned()));
            }
            AstKind::ComputedMemberExpression(member) if member.object.span() == inner => {
                keys.push(match &member.expression {
                    Expression::StringLiteral(key) => Some(key.value.as_str().to_owned()),
                    _ => None,
                });
            }
            AstKind::ParenthesizedExpression(_)
            | AstKind::TSAsExpression(_)
            | AstKind::TSSatisfiesExpression(_)
            | AstKind::TSNonNullExpression(_)
            | AstKind::TSTypeAssertion(_)
            | AstKind::ChainExpression(_) => {}
            AstKind::AssignmentExpression(assignment) if assignment.left.span() == inner && !keys.is_empty() => {
                // What OpenAI's wrapper holds is a definition, whose other fields stay as they are.
                if matches!(keys.as_slice(), [Some(first), Some(_)] if first == "function") {
                    return None;
                }
                return found(keys.into_iter().next());
            }
            AstKind::ForOfStatement(statement) if statement.left.span() == inner && !keys.is_empty() => {
                return found(keys.into_iter().next());
            }
            AstKind::ForInStatement(statement) if statement.left.span() == inner && !keys.is_empty() => {
                return found(keys.into_iter().next());
            }
            AstKind::UpdateExpression(_)
            | AstKind::ArrayAssignmentTarget(_)
            | AstKind::AssignmentTargetPropertyProperty(_)
            | AstKind::AssignmentTargetWithDefault(_)
            | AstKind::AssignmentTargetRest(_)
                if !keys.is_empty() =>
            {
                return found(keys.into_iter().next());
            }
            AstKind::UnaryExpression(unary) if unary.operator == UnaryOperator::Delete && !keys.is_empty() => {
                return found(keys.into_iter().next());
            }
            AstKind::CallExpression(call) => {
                if call.callee.span() == inner {
                    let changing = matches!(keys.pop(), Some(Some(method)) if CHANGING.contains(&method.as_str()));
                    return if changing { found(keys.into_iter().next()) } else { None };
                }
                let is_first = call.arguments.first().is_some_and(|first| first.span() == inner);
                if !is_first || !changes_first(&call.callee) {
                    return None;
                }
                // `Reflect.set(tool, 'description', …)` says which property.
                let named = match call.arguments.get(1) {
                    Some(Argument::StringLiteral(key)) => Some(Some(key.value.as_str().to_owned())),
                    _ => None,
                };
                return found(keys.into_iter().next().or(named));
            }
            _ => return None,
        }
        node = parent;
    }
}

fn changes_first(callee: &Expression<'_>) -> bool {
    let Expression::StaticMemberExpression(member) = callee else { return false };
    let method = member.property.name.as_str();
    member.object.is_specific_id("Object") && CHANGING_FIRST.contains(&method)
        || member.object.is_specific_id("Reflect") && ["set", "defineProperty", "deleteProperty"].contains(&method)
}
