//! Parameters that a library fills in, so that a model never sees them.

use ruff_python_ast::{Expr, Operator};

use super::annotation::{DEEPEST, parse_quoted};
use super::world::{Meaning, Scope, World};

/// What is given to a function by its library, not by the model.
const INJECTED: [&str; 9] = [
    "Context",
    "RunContext",
    "RunContextWrapper",
    "ToolContext",
    "ToolRuntime",
    "RunnableConfig",
    "CallbackManagerForToolRun",
    "AsyncCallbackManagerForToolRun",
    "InjectedState",
];

/// Tells whether a parameter of this type is given by the library.
pub(super) fn is_injected(world: &World<'_>, scope: Scope<'_>, annotation: &Expr) -> bool {
    names_injected(world, scope, annotation, 0)
}

fn names_injected(world: &World<'_>, scope: Scope<'_>, annotation: &Expr, depth: usize) -> bool {
    if depth > DEEPEST {
        return false;
    }
    let is_injected = |inner: &Expr| names_injected(world, scope, inner, depth + 1);
    match annotation {
        // A class of the project may have the same name.
        Expr::Name(_) if matches!(world.meaning(scope, annotation), Meaning::Class { .. }) => false,
        Expr::Name(name) => is_injected_name(name.id.as_str()),
        Expr::Attribute(attribute) => is_injected_name(attribute.attr.as_str()),
        Expr::Subscript(subscript) => {
            let outer = match &*subscript.value {
                Expr::Name(name) => name.id.as_str(),
                Expr::Attribute(attribute) => attribute.attr.as_str(),
                _ => "",
            };
            let inner = || match &*subscript.slice {
                Expr::Tuple(tuple) => tuple.elts.iter().any(is_injected),
                one => is_injected(one),
            };
            is_injected_name(outer) || matches!(outer, "Optional" | "Union" | "Annotated") && inner()
        }
        Expr::BinOp(operation) if operation.op == Operator::BitOr => {
            is_injected(&operation.right) || is_injected(&operation.left)
        }
        Expr::Call(call) => is_injected(&call.func),
        Expr::StringLiteral(text) => parse_quoted(text.value.to_str()).is_some_and(|parsed| is_injected(&parsed)),
        _ => false,
    }
}

fn is_injected_name(name: &str) -> bool {
    INJECTED.contains(&name) || name.starts_with("Injected") || name == "Depends"
}
