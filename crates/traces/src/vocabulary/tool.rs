//! The attributes of a tool span.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::parts::Span;
use karat_chat::lenient::{first, first_text, is_blank, text_of};
use karat_chat::{collect_text, parse_arguments, parse_result};

/// One execution of a tool.
#[derive(Debug, Clone, Default)]
pub(crate) struct Execution {
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    pub(crate) arguments: Option<Value>,
    pub(crate) result: Option<Value>,
    /// Why the tool failed, if its result says so.
    pub(crate) error: Option<String>,
}

const NAMES: [&str; 7] = [
    "gen_ai.tool.name",
    "tool.name",
    "ai.toolCall.name",
    "tool_name",
    "mcp.tool.name",
    "traceloop.entity.name",
    "mlflow.spanFunctionName",
];
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
    let parameters = attributes.get("tool.parameters");
    let arguments = first(attributes, &ARGUMENTS).map(|value| parse_arguments(Some(value))).or_else(|| {
        first_value(span.input.as_ref(), attributes, &INPUTS)
            .map(|value| unwrap_arguments(parse_arguments(Some(value)), parameters))
    });
    let output = first_value(span.output.as_ref(), attributes, &OUTPUTS).map(|value| parse_result(&unquote(value)));
    let message = output.as_ref().and_then(|output| tool_message(output.get("output").unwrap_or(output)));
    let id = first_text(attributes, &IDS).or_else(|| first_text(message?, &["tool_call_id"])).map(str::to_owned);
    let failed = message.is_some_and(|message| first_text(message, &["status"]) == Some("error"));
    let result = first(attributes, &RESULTS)
        .map(|value| text_parts(parse_result(&unquote(value))))
        .or_else(|| output.clone().map(unwrap_result));
    let error = result.as_ref().filter(|_| failed).map(text_of);
    Execution { name: name.to_owned(), id, arguments, result, error }
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

/// Removes wrappers that frameworks put around the arguments. `parameters` describes the parameters of the tool.
fn unwrap_arguments(value: Value, parameters: Option<&Value>) -> Value {
    let Value::Object(map) = &value else { return value };
    if let Some(inner @ Value::Object(_)) = map.get("inputs").filter(|_| map.contains_key("tags") || map.len() == 1) {
        return inner.clone();
    }
    // smolagents adds a flag to the arguments of the Python function.
    let is_smolagents = map.contains_key("sanitize_inputs_outputs") && map.contains_key("kwargs");
    if let Some(Value::Object(kwargs)) = map.get("kwargs")
        && (is_smolagents || map.len() == 1 || map.len() == 2 && map.get("args").is_some_and(is_blank))
        && (is_smolagents || !kwargs.is_empty())
    {
        return Value::Object(with_positional(kwargs, map.get("args"), parameters));
    }
    if let Some(inner) = map.get("input").filter(|_| map.len() == 1)
        && let inner = karat_chat::lenient::unpack(inner)
        && inner.is_object()
    {
        return inner.into_owned();
    }
    value
}

/// Adds positional arguments under the names of the tool's parameters, or as `args` if the names are unknown.
fn with_positional(
    kwargs: &Map<String, Value>,
    args: Option<&Value>,
    parameters: Option<&Value>,
) -> Map<String, Value> {
    let mut arguments = kwargs.clone();
    let Some(args) = args.and_then(Value::as_array).filter(|args| !args.is_empty()) else { return arguments };
    let parameters = parameters.map(karat_chat::lenient::unpack_owned).unwrap_or_default();
    let names: Vec<&String> = parameters.as_object().into_iter().flat_map(Map::keys).collect();
    if names.len() < args.len() {
        arguments.insert("args".to_owned(), Value::Array(args.clone()));
        return arguments;
    }
    arguments.extend(names.into_iter().cloned().zip(args.iter().cloned()));
    arguments
}

/// Removes wrappers that frameworks put around the result.
fn unwrap_result(value: Value) -> Value {
    let inner = value.as_object().filter(|map| map.len() == 1).and_then(|map| map.get("output"));
    // LangChain returns the tool message.
    if let Some(content) = tool_message(inner.unwrap_or(&value)).and_then(|message| message.get("content")) {
        return text_parts(parse_result(content));
    }
    match inner {
        Some(inner) => parse_result(inner),
        None => text_parts(value),
    }
}

/// Joins a result that consists only of text parts, `[{"text": …}]`, as Strands writes it.
fn text_parts(value: Value) -> Value {
    let is_text = |item: &Value| {
        item.as_object().is_some_and(|map| map.len() == 1 && map.get("text").is_some_and(Value::is_string))
    };
    match &value {
        Value::Array(items) if !items.is_empty() && items.iter().all(is_text) => {
            parse_result(&Value::String(collect_text(&value)))
        }
        Value::Array(items) if items.len() == 1 => match items[0].as_object() {
            Some(map) if map.len() == 1 && map.contains_key("json") => map["json"].clone(),
            _ => value,
        },
        _ => value,
    }
}

/// Returns the fields of a `LangChain` tool message: a plain object, one with its fields in `data`, or a serialised
/// object (`lc: 1`) with its fields in `kwargs`.
pub(crate) fn tool_message(value: &Value) -> Option<&Map<String, Value>> {
    let map = value.as_object()?;
    if map.contains_key("lc") {
        let class = map.get("id").and_then(Value::as_array).and_then(|path| path.last()).and_then(Value::as_str);
        return map.get("kwargs")?.as_object().filter(|_| class == Some("ToolMessage"));
    }
    let is_tool = first_text(map, &["type", "role"]) == Some("tool");
    if let Some(data) =
        map.get("data").and_then(Value::as_object).filter(|data| is_tool && data.contains_key("content"))
    {
        return Some(data);
    }
    ((is_tool || map.contains_key("tool_call_id")) && map.contains_key("content")).then_some(map)
}
