//! What a tool's span says.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::chat::{arguments_of, result_of};
use crate::json::{first, first_text, is_blank};
use crate::parts::Span;

/// One execution of a tool.
#[derive(Debug, Clone, Default)]
pub(crate) struct Execution {
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    pub(crate) arguments: Option<Value>,
    pub(crate) result: Option<Value>,
}

const NAMES: [&str; 6] =
    ["gen_ai.tool.name", "tool.name", "ai.toolCall.name", "tool_name", "mcp.tool.name", "traceloop.entity.name"];
const IDS: [&str; 5] = ["gen_ai.tool.call.id", "ai.toolCall.id", "tool_call.id", "tool_call_id", "tool.id"];
const ARGUMENTS: [&str; 4] =
    ["gen_ai.tool.call.arguments", "ai.toolCall.args", "gcp.vertex.agent.tool_call_args", "tool_arguments"];
const INPUTS: [&str; 5] =
    ["input.value", "traceloop.entity.input", "mlflow.spanInputs", "langfuse.observation.input", "tool.parameters"];
const RESULTS: [&str; 4] =
    ["gen_ai.tool.call.result", "ai.toolCall.result", "gcp.vertex.agent.tool_response", "tool_response"];
const OUTPUTS: [&str; 4] =
    ["output.value", "traceloop.entity.output", "mlflow.spanOutputs", "langfuse.observation.output"];

pub(crate) fn execution(span: &Span) -> Execution {
    let attributes = &span.attributes;
    let name = first_text(attributes, &NAMES).unwrap_or_else(|| {
        let beginnings = ["execute_tool ", "running tool: ", "tool.", "Tool: "];
        beginnings.iter().find_map(|beginning| span.name.strip_prefix(beginning)).unwrap_or(&span.name)
    });
    let arguments = first(attributes, &ARGUMENTS).map(|value| arguments_of(Some(value))).or_else(|| {
        given(span.input.as_ref(), attributes, &INPUTS).map(|value| bare_arguments(arguments_of(Some(value))))
    });
    let result = first(attributes, &RESULTS).map(|value| result_of(&unquoted(value))).or_else(|| {
        given(span.output.as_ref(), attributes, &OUTPUTS).map(|value| bare_result(result_of(&unquoted(value))))
    });
    Execution { name: name.to_owned(), id: first_text(attributes, &IDS).map(str::to_owned), arguments, result }
}

/// Takes off the quotes of a text that was written as JSON.
fn unquoted(value: &Value) -> Cow<'_, Value> {
    match value {
        Value::String(text) if text.len() > 1 && text.starts_with('"') && text.ends_with('"') => {
            serde_json::from_str(text).map_or(Cow::Borrowed(value), |text| Cow::Owned(Value::String(text)))
        }
        other => Cow::Borrowed(other),
    }
}

fn given<'a>(own: Option<&'a Value>, attributes: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    own.filter(|value| !is_blank(value))
        .or_else(|| first(attributes, names).filter(|value| !is_blank(value)))
        .or(own.filter(|value| !value.is_null()))
}

/// Takes off what frameworks put around the arguments.
fn bare_arguments(value: Value) -> Value {
    let Value::Object(map) = &value else { return value };
    if let Some(inner @ Value::Object(_)) = map.get("inputs").filter(|_| map.contains_key("tags") || map.len() == 1) {
        return inner.clone();
    }
    if let Some(inner @ Value::Object(kwargs)) = map.get("kwargs")
        && (map.len() == 1 || map.len() == 2 && map.get("args").is_some_and(is_blank))
        && !kwargs.is_empty()
    {
        return inner.clone();
    }
    if let Some(inner) = map.get("input").filter(|_| map.len() == 1)
        && let inner = crate::json::unpacked(inner)
        && inner.is_object()
    {
        return inner.into_owned();
    }
    value
}

/// Takes off what frameworks put around the result.
fn bare_result(value: Value) -> Value {
    let Value::Object(map) = &value else { return value };
    if map.len() == 1
        && let Some(inner) = map.get("output")
    {
        // LangChain gives the tool's message back.
        if let Some(content) =
            inner.as_object().and_then(|inner| inner.get("content")).filter(|_| is_tool_message(inner))
        {
            return result_of(content);
        }
        return result_of(inner);
    }
    if is_tool_message(&value)
        && let Some(content) = map.get("content")
    {
        return result_of(content);
    }
    value
}

fn is_tool_message(value: &Value) -> bool {
    value.get("tool_call_id").is_some() || value.get("type").and_then(Value::as_str) == Some("tool")
}
