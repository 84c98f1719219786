//! The attributes of a tool span.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::chat::{parse_arguments, parse_result};
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
        let prefixes = ["execute_tool ", "running tool: ", "tool.", "Tool: "];
        prefixes.iter().find_map(|prefix| span.name.strip_prefix(prefix)).unwrap_or(&span.name)
    });
    let arguments = first(attributes, &ARGUMENTS).map(|value| parse_arguments(Some(value))).or_else(|| {
        first_value(span.input.as_ref(), attributes, &INPUTS)
            .map(|value| unwrap_arguments(parse_arguments(Some(value))))
    });
    let result = first(attributes, &RESULTS).map(|value| parse_result(&unquote(value))).or_else(|| {
        first_value(span.output.as_ref(), attributes, &OUTPUTS)
            .map(|value| unwrap_result(parse_result(&unquote(value))))
    });
    Execution { name: name.to_owned(), id: first_text(attributes, &IDS).map(str::to_owned), arguments, result }
}

/// Decodes a string that was written as JSON.
fn unquote(value: &Value) -> Cow<'_, Value> {
    match value {
        Value::String(text) if text.len() > 1 && text.starts_with('"') && text.ends_with('"') => {
            serde_json::from_str(text).map_or(Cow::Borrowed(value), |text| Cow::Owned(Value::String(text)))
        }
        other => Cow::Borrowed(other),
    }
}

fn first_value<'a>(own: Option<&'a Value>, attributes: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    own.filter(|value| !is_blank(value))
        .or_else(|| first(attributes, names).filter(|value| !is_blank(value)))
        .or(own.filter(|value| !value.is_null()))
}

/// Removes wrappers that frameworks put around the arguments.
fn unwrap_arguments(value: Value) -> Value {
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
        && let inner = crate::json::unpack(inner)
        && inner.is_object()
    {
        return inner.into_owned();
    }
    value
}

/// Removes wrappers that frameworks put around the result.
fn unwrap_result(value: Value) -> Value {
    let Value::Object(map) = &value else { return value };
    if map.len() == 1
        && let Some(inner) = map.get("output")
    {
        // LangChain returns the tool message.
        if let Some(content) =
            inner.as_object().and_then(|inner| inner.get("content")).filter(|_| is_tool_message(inner))
        {
            return parse_result(content);
        }
        return parse_result(inner);
    }
    if is_tool_message(&value)
        && let Some(content) = map.get("content")
    {
        return parse_result(content);
    }
    value
}

fn is_tool_message(value: &Value) -> bool {
    value.get("tool_call_id").is_some() || value.get("type").and_then(Value::as_str) == Some("tool")
}
