//! Writes to fields of tools through names that do not say which tool: aliases, loops, parameters, `this`.

use oxc_ast::AstKind;
use oxc_ast::ast::{
    Argument, CallExpression, Expression, MemberExpression, ObjectPropertyKind, UnaryOperator, VariableDeclarator,
};
use oxc_semantic::{NodeId, Semantic, SymbolId};
use oxc_span::{GetSpan as _, Span};

use super::call::BUILDERS;
use super::declare::REGISTERING;
use super::definition::FUNCTION_KEYS;
use super::syntax::LooseWrite;

/// The fields whose change matters. A `name` is left out: errors and many other things have one that is set.
const FIELDS: [&str; 10] = [
    "description",
    "inputSchema",
    "input_schema",
    "parameters",
    "schema",
    "version",
    "category",
    "requiresConfirmation",
    "status",
    "triggerPhrases",
];

/// Methods that hand the items of a list to a function.
const EACH: [&str; 6] = ["forEach", "map", "flatMap", "filter", "every", "some"];

/// Finds the writes whose tool does not show. They may change any tool that the file can reach.
///
/// What a tool's own function does is left out: it happens when the tool is called, and not when it is listed.
pub(super) fn loose_writes(semantic: &Semantic<'_>) -> Vec<LooseWrite> {
    let mut writes = Vec::new();
    for node in semantic.nodes().iter() {
        let (object, keys) = match node.kind() {
            AstKind::StaticMemberExpression(member) if is_written(semantic, node.id(), member.span) => {
                (&member.object, vec![Some(member.property.name.as_str().to_owned())])
            }
            AstKind::ComputedMemberExpression(member) if is_written(semantic, node.id(), member.span) => {
                let key = match &member.expression {
                    Expression::StringLiteral(key) => Some(key.value.as_str().to_owned()),
                    // An item of a list, and no field.
                    Expression::NumericLiteral(_) => continue,
                    _ => None,
                };
                (&member.object, vec![key])
            }
            AstKind::CallExpression(call) => match written_by_call(call) {
                Some(written) => written,
                None => continue,
            },
            _ => continue,
        };
        let wanted = |key: &Option<String>| key.as_deref().is_none_or(|key| FIELDS.contains(&key));
        let keys: Vec<Option<String>> = keys.into_iter().filter(wanted).collect();
        if keys.is_empty() || is_in_tool_function(semantic, node.id()) {
            continue;
        }
        let Some(reach) = reach(semantic, node.id(), object) else { continue };
        for key in keys {
            // Any key may be meant: only where what is written to is likely a tool.
            if key.is_some() || reach.is_item {
                let offset = node.kind().span().start;
                writes.push(LooseWrite { key, offset, outward: reach.is_parameter });
            }
        }
    }
    writes
}

#[derive(Clone, Copy, Default)]
struct Reach {
    /// It stands for something that exists elsewhere: an item of a list, an import, another variable's value.
    is_item: bool,
    /// It comes from the callers of a function.
    is_parameter: bool,
}

fn is_written(semantic: &Semantic<'_>, node: NodeId, span: Span) -> bool {
    match semantic.nodes().parent_kind(node) {
        AstKind::AssignmentExpression(assignment) => assignment.left.span() == span,
        AstKind::ForOfStatement(statement) => statement.left.span() == span,
        AstKind::ForInStatement(statement) => statement.left.span() == span,
        AstKind::UnaryExpression(unary) => unary.operator == UnaryOperator::Delete,
        AstKind::UpdateExpression(_)
        | AstKind::ArrayAssignmentTarget(_)
        | AstKind::AssignmentTargetPropertyProperty(_)
        | AstKind::AssignmentTargetWithDefault(_)
        | AstKind::AssignmentTargetRest(_) => true,
        _ => false,
    }
}

/// Returns what `Object.assign` and the like write to, and the keys.
fn written_by_call<'b, 'a>(call: &'b CallExpression<'a>) -> Option<(&'b Expression<'a>, Vec<Option<String>>)> {
    let Expression::StaticMemberExpression(callee) = &call.callee else { return None };
    let of = |name: &str| callee.object.is_specific_id(name);
    let target = call.arguments.first()?.as_expression()?;
    let keys = match callee.property.name.as_str() {
        "assign" if of("Object") => match call.arguments.get(1)? {
            Argument::ObjectExpression(object) => {
                let key = |property: &'b ObjectPropertyKind<'a>| match property {
                    ObjectPropertyKind::ObjectProperty(property) => property.key.static_name().map(Into::into),
                    ObjectPropertyKind::SpreadProperty(_) => None,
                };
                object.properties.iter().map(key).collect()
            }
            _ => vec![None],
        },
        "set" | "deleteProperty" | "defineProperty" if of("Reflect") || of("Object") => match call.arguments.get(1)? {
            Argument::StringLiteral(key) => vec![Some(key.value.as_str().to_owned())],
            _ => vec![None],
        },
        _ => return None,
    };
    Some((target, keys))
}

/// Returns what a write may change; none where it shows, or where it is nothing of this project.
fn reach(semantic: &Semantic<'_>, node: NodeId, object: &Expression<'_>) -> Option<Reach> {
    let mut root = object;
    let mut members = 0;
    loop {
        root = match root.get_inner_expression() {
            Expression::StaticMemberExpression(member) => {
                members += 1;
                &member.object
            }
            Expression::ComputedMemberExpression(member) => {
                members += 1;
                &member.object
            }
            other => {
                root = other;
                break;
            }
        };
    }
    match root {
        Expression::Identifier(name) => {
            let reference = name.reference_id.get()?;
            if let Some(symbol) = semantic.scoping().get_reference(reference).symbol_id() {
                return symbol_reach(semantic, symbol, members);
            }
            let exported = match name.name.as_str() {
                "module" => members > 1,
                "exports" => members > 0,
                _ => false,
            };
            exported.then(Reach::default)
        }
        Expression::ThisExpression(_) => is_of_object(semantic, node).then(Reach::default),
        Expression::CallExpression(_) | Expression::ArrayExpression(_) => Some(Reach::default()),
        _ => None,
    }
}

/// Tells whether `this` may be an object that is written out, and not one that a class makes.
fn is_of_object(semantic: &Semantic<'_>, node: NodeId) -> bool {
    let nodes = semantic.nodes();
    let function = nodes.ancestor_ids(node).find(|&id| matches!(nodes.kind(id), AstKind::Function(_)));
    function.is_some_and(|function| matches!(nodes.parent_kind(function), AstKind::ObjectProperty(_)))
}

fn symbol_reach(semantic: &Semantic<'_>, symbol: SymbolId, members: usize) -> Option<Reach> {
    let nodes = semantic.nodes();
    let declaration = semantic.scoping().symbol_declaration(symbol);
    match nodes.kind(declaration) {
        AstKind::VariableDeclarator(variable) => {
            let around = nodes.parent_kind(nodes.parent_id(declaration));
            let is_loop = matches!(around, AstKind::ForOfStatement(_) | AstKind::ForInStatement(_));
            if is_loop { Some(Reach { is_item: true, is_parameter: false }) } else { value_reach(variable, members) }
        }
        AstKind::ImportSpecifier(_) | AstKind::ImportDefaultSpecifier(_) | AstKind::ImportNamespaceSpecifier(_) => {
            let AstKind::ImportDeclaration(import) = nodes.parent_kind(declaration) else { return None };
            import.source.value.starts_with('.').then_some(Reach { is_item: true, is_parameter: false })
        }
        AstKind::FormalParameter(_) | AstKind::FormalParameterRest(_) => {
            let function = nodes
                .ancestor_ids(declaration)
                .find(|&id| matches!(nodes.kind(id), AstKind::Function(_) | AstKind::ArrowFunctionExpression(_)))?;
            match nodes.parent_kind(function) {
                AstKind::CallExpression(call) => {
                    let method = call.callee.as_member_expression().and_then(MemberExpression::static_property_name);
                    let is_item = method.is_some_and(|method| EACH.contains(&method));
                    is_item.then_some(Reach { is_item, is_parameter: false })
                }
                AstKind::MethodDefinition(_) => None,
                _ => Some(Reach { is_item: false, is_parameter: true }),
            }
        }
        _ => None,
    }
}

/// Tells what a variable stands for: something of its own, whose changes are known, or something else.
fn value_reach(variable: &VariableDeclarator<'_>, members: usize) -> Option<Reach> {
    let item = Some(Reach { is_item: true, is_parameter: false });
    let value = variable.init.as_ref()?.get_inner_expression();
    if variable.id.get_binding_identifier().is_none() {
        return if matches!(value, Expression::AwaitExpression(_)) { None } else { item };
    }
    match value {
        Expression::Identifier(_)
        | Expression::StaticMemberExpression(_)
        | Expression::ComputedMemberExpression(_)
        | Expression::ConditionalExpression(_)
        | Expression::LogicalExpression(_) => item,
        Expression::ArrayExpression(_) | Expression::ObjectExpression(_) => (members > 0).then_some(Reach::default()),
        Expression::CallExpression(call) => {
            let is_plain =
                matches!(&call.callee, Expression::Identifier(name) if !BUILDERS.contains(&name.name.as_str()));
            let finds = call.callee.as_member_expression().and_then(MemberExpression::static_property_name);
            let finds = finds.is_some_and(|name| matches!(name, "find" | "at" | "pop" | "shift"));
            (is_plain || finds || members > 0).then_some(Reach::default())
        }
        _ => None,
    }
}

/// Tells whether a node stands in what a tool does when it is called.
fn is_in_tool_function(semantic: &Semantic<'_>, node: NodeId) -> bool {
    let nodes = semantic.nodes();
    nodes.ancestor_ids(node).any(|id| {
        let kind = nodes.kind(id);
        if !matches!(kind, AstKind::Function(_) | AstKind::ArrowFunctionExpression(_)) {
            return false;
        }
        match nodes.parent_kind(id) {
            AstKind::ObjectProperty(property) => {
                property.key.static_name().is_some_and(|name| FUNCTION_KEYS.contains(&name.as_ref()))
            }
            AstKind::CallExpression(call) => {
                let member = call.callee.as_member_expression().and_then(MemberExpression::static_property_name);
                let name = member.or_else(|| call.callee_name());
                name.is_some_and(|name| BUILDERS.contains(&name) || REGISTERING.contains(&name))
            }
            _ => false,
        }
    })
}
