//! Input and output of a model, an agent or a chain.

use serde_json::{Map, Value};

use super::{event, indexed};
use crate::parts::{LogEvent, Span};
use karat_chat::lenient::{first, is_blank, unpack};
use karat_chat::{self as chat, ParsedMessages, collect_text, plain_message};

/// The input and output of a span.
#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    pub(crate) input: ParsedMessages,
    pub(crate) output: ParsedMessages,
    /// Set if the input does not consist of messages.
    pub(crate) input_value: Option<Value>,
    /// Set if the output does not consist of messages.
    pub(crate) output_value: Option<Value>,
}

impl Content {
    pub(crate) fn is_empty(&self) -> bool {
        self.input.is_empty() && self.output.is_empty() && self.input_value.is_none() && self.output_value.is_none()
    }
}

/// Attributes that hold the input in any shape.
const INPUTS: [&str; 6] = [
    "input.value",
    "traceloop.entity.input",
    "mlflow.spanInputs",
    "langfuse.observation.input",
    "lk.input_text",
    "request_data",
];
/// Attributes that hold the output in any shape.
const OUTPUTS: [&str; 7] = [
    "output.value",
    "traceloop.entity.output",
    "mlflow.spanOutputs",
    "langfuse.observation.output",
    "lk.response.text",
    "response_data",
    "final_result",
];

/// Reads the content of a span, its events and its log records.
pub(crate) fn content(span: &Span, logs: &[&LogEvent]) -> Content {
    let (event_input, event_output) = event::conversation(span, logs);
    let mut content =
        Content { input: input(span, event_input), output: output(span, event_output), ..Content::default() };
    if !content.input.structured {
        let value = values(span.input.as_ref(), span, &INPUTS).next();
        content.input_value =
            value.map(unpack).filter(|value| value.is_object() || value.is_array()).map(std::borrow::Cow::into_owned);
    }
    if !content.output.structured {
        let value = values(span.output.as_ref(), span, &OUTPUTS).next();
        content.output_value = value.map(unpack).filter(|value| !value.is_string()).map(std::borrow::Cow::into_owned);
    }
    content
}

/// Returns the non-blank values of a span's own field and of these attributes.
fn values<'a>(own: Option<&'a Value>, span: &'a Span, names: &'static [&str]) -> impl Iterator<Item = &'a Value> {
    let attributes = names.iter().filter_map(|name| span.attributes.get(*name));
    own.into_iter().chain(attributes).filter(|value| !is_blank(value))
}

fn input(span: &Span, events: ParsedMessages) -> ParsedMessages {
    let attributes = &span.attributes;
    let get = |name: &str| attributes.get(name).filter(|value| !is_blank(value));
    let mut parsed = get("gen_ai.input.messages").and_then(|value| chat::read(value, "user"));
    if parsed.is_none() && !events.messages.is_empty() {
        parsed = Some(events);
    }
    let parsed = parsed
        .or_else(|| indexed_messages(attributes, "gen_ai.prompt", "user"))
        .or_else(|| indexed_messages(attributes, "llm.input_messages", "user"))
        .or_else(|| prompts(attributes))
        .or_else(|| get("ai.prompt.messages").and_then(|value| chat::read(value, "user")))
        .or_else(|| get("ai.prompt").and_then(|value| chat::read_or_text(value, "user")))
        .or_else(|| get("gcp.vertex.agent.llm_request").and_then(|value| chat::read(value, "user")))
        .or_else(|| get("gen_ai.prompt").and_then(|value| chat::read_or_text(value, "user")));
    let parsed = parsed.or_else(|| {
        values(span.input.as_ref(), span, &INPUTS)
            .find_map(|value| chat::read(value, "user"))
            .or_else(|| values(span.input.as_ref(), span, &INPUTS).find_map(|value| chat::read_or_text(value, "user")))
    });
    // An attribute length limit may have truncated the JSON: fall back to its text.
    let truncated = || get("gen_ai.input.messages").and_then(|value| chat::read_or_text(value, "user"));
    let mut parsed = parsed.or_else(truncated).unwrap_or_default();
    mark_failed_results(span, &mut parsed);
    if let Some(instructions) = get("gen_ai.system_instructions") {
        let text = collect_text(&unpack(instructions));
        if !text.is_empty()
            && !parsed.messages.iter().any(|message| message.role == "system" && message.content == text)
        {
            parsed.messages.insert(0, plain_message("system", &text));
        }
    }
    parsed
}

/// Reads the prompts of a completion: strings, in a list or in indexed attributes.
fn prompts(attributes: &Map<String, Value>) -> Option<ParsedMessages> {
    let items = match attributes.get("llm.prompts").map(unpack).as_deref() {
        Some(Value::Array(items)) => items.clone(),
        Some(text @ Value::String(_)) => vec![text.clone()],
        _ => indexed::list(attributes, "llm.prompts"),
    };
    let text = |item: &Value| match item.get("prompt.text").or_else(|| item.get("prompt")?.get("text")) {
        Some(text) => collect_text(text),
        None => collect_text(item),
    };
    let mut parsed = ParsedMessages { structured: true, ..ParsedMessages::default() };
    for text in items.iter().map(text).filter(|text| !text.is_empty()) {
        if let Some(mut prompt) = chat::read_or_text(&Value::String(text), "user") {
            parsed.messages.append(&mut prompt.messages);
        }
    }
    (!parsed.messages.is_empty()).then_some(parsed)
}

/// Marks the tool results that only the raw request marks as errors.
fn mark_failed_results(span: &Span, parsed: &mut ParsedMessages) {
    let Some(raw) = span.attributes.get("input.value").and_then(Value::as_str) else { return };
    let has_results = parsed.messages.iter().any(|message| message.role == "tool");
    if !has_results || !raw.contains("\"is_error\"") {
        return;
    }
    let Some(request) = chat::read(&Value::String(raw.to_owned()), "user") else { return };
    let failed: Vec<_> = request
        .messages
        .iter()
        .filter(|message| message.is_error)
        .filter_map(|message| message.tool_call_id.as_ref())
        .collect();
    for message in parsed.messages.iter_mut().filter(|message| message.role == "tool") {
        message.is_error |= message.tool_call_id.as_ref().is_some_and(|id| failed.contains(&id));
    }
}

fn output(span: &Span, events: ParsedMessages) -> ParsedMessages {
    let attributes = &span.attributes;
    let get = |name: &str| attributes.get(name).filter(|value| !is_blank(value));
    let mut parsed =
        get("gen_ai.output.messages").and_then(|value| chat::read(&chat::first_choice(value), "assistant"));
    if parsed.is_none() && !events.is_empty() {
        parsed = Some(events);
    }
    let parsed = parsed
        .or_else(|| indexed_messages(attributes, "gen_ai.completion", "assistant"))
        .or_else(|| indexed_messages(attributes, "llm.output_messages", "assistant"))
        .or_else(|| vercel_output(attributes))
        .or_else(|| get("gcp.vertex.agent.llm_response").and_then(|value| chat::read(value, "assistant")))
        .or_else(|| get("gen_ai.completion").and_then(|value| chat::read_or_text(value, "assistant")));
    parsed
        .or_else(|| {
            values(span.output.as_ref(), span, &OUTPUTS).find_map(|value| chat::read(value, "assistant")).or_else(
                || {
                    values(span.output.as_ref(), span, &OUTPUTS)
                        .find_map(|value| chat::read_or_text(value, "assistant"))
                },
            )
        })
        .or_else(|| get("gen_ai.output.messages").and_then(|value| chat::read_or_text(value, "assistant")))
        .unwrap_or_default()
}

fn indexed_messages(attributes: &Map<String, Value>, prefix: &str, role: &str) -> Option<ParsedMessages> {
    let items = indexed::list(attributes, prefix);
    if items.is_empty() {
        return None;
    }
    let items = Value::Array(items);
    if role == "assistant" { chat::read(&chat::first_choice(&items), role) } else { chat::read(&items, role) }
}

/// Reads the output of the Vercel AI SDK: text, calls and an object, each in its own attribute.
fn vercel_output(attributes: &Map<String, Value>) -> Option<ParsedMessages> {
    let names = [
        "ai.response.text",
        "ai.response.toolCalls",
        "ai.response.object",
        "ai.response.reasoning",
        "ai.result.text",
        "ai.result.toolCalls",
    ];
    if !names.iter().any(|name| attributes.contains_key(*name)) {
        return None;
    }
    let mut message = Map::new();
    message.insert("role".to_owned(), "assistant".into());
    let text = first(attributes, &["ai.response.text", "ai.result.text", "ai.response.object"]);
    message.insert("content".to_owned(), text.cloned().unwrap_or_default());
    if let Some(calls) = first(attributes, &["ai.response.toolCalls", "ai.result.toolCalls"]) {
        message.insert("tool_calls".to_owned(), calls.clone());
    }
    if let Some(reasoning) = attributes.get("ai.response.reasoning") {
        message.insert("reasoning".to_owned(), reasoning.clone());
    }
    chat::read(&Value::Object(message), "assistant")
}

/// Reads the conversation in an agent's span, if it has one: the new messages, in order.
pub(crate) fn conversation(span: &Span) -> Option<ParsedMessages> {
    let attributes = &span.attributes;
    let all = first(attributes, &["pydantic_ai.all_messages", "all_messages_events", "pydantic_ai.new_messages"])?;
    let all = unpack(all);
    let from = karat_chat::lenient::first_count(attributes, &["pydantic_ai.new_message_index"]).unwrap_or(0);
    let items = all.as_array()?;
    let items = items.get(usize::try_from(from).ok()?..)?;
    chat::read(&Value::Array(items.to_vec()), "user")
}
