//! What went into a model, an agent or a chain, and what came out.

use serde_json::{Map, Value};

use super::{event, indexed};
use crate::chat::{self, Said, plain, text_within};
use crate::json::{first, is_blank, unpacked};
use crate::parts::{LogEvent, Span};

/// What a span says went in and came out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    pub(crate) input: Said,
    pub(crate) output: Said,
    /// Where it is no messages.
    pub(crate) input_value: Option<Value>,
    pub(crate) output_value: Option<Value>,
}

impl Content {
    pub(crate) fn is_empty(&self) -> bool {
        self.input.is_empty() && self.output.is_empty() && self.input_value.is_none() && self.output_value.is_none()
    }
}

/// Names that hold whatever went in, of any shape.
const INPUTS: [&str; 6] = [
    "input.value",
    "traceloop.entity.input",
    "mlflow.spanInputs",
    "langfuse.observation.input",
    "lk.input_text",
    "request_data",
];
const OUTPUTS: [&str; 7] = [
    "output.value",
    "traceloop.entity.output",
    "mlflow.spanOutputs",
    "langfuse.observation.output",
    "lk.response.text",
    "response_data",
    "final_result",
];

/// Reads what a span, its events and its log records say.
pub(crate) fn content(span: &Span, logs: &[&LogEvent]) -> Content {
    let (event_input, event_output) = event::conversation(span, logs);
    let mut content =
        Content { input: input(span, event_input), output: output(span, event_output), ..Content::default() };
    if !content.input.structured {
        let value = given(span.input.as_ref(), span, &INPUTS).next();
        content.input_value =
            value.map(unpacked).filter(|value| value.is_object() || value.is_array()).map(std::borrow::Cow::into_owned);
    }
    if !content.output.structured {
        let value = given(span.output.as_ref(), span, &OUTPUTS).next();
        content.output_value = value.map(unpacked).filter(|value| !value.is_string()).map(std::borrow::Cow::into_owned);
    }
    content
}

/// Returns what a span has of its own and under any of some names, as far as it says something.
fn given<'a>(own: Option<&'a Value>, span: &'a Span, names: &'static [&str]) -> impl Iterator<Item = &'a Value> {
    let under_names = names.iter().filter_map(|name| span.attributes.get(*name));
    own.into_iter().chain(under_names).filter(|value| !is_blank(value))
}

fn input(span: &Span, events: Said) -> Said {
    let attributes = &span.attributes;
    let get = |name: &str| attributes.get(name).filter(|value| !is_blank(value));
    let mut said = get("gen_ai.input.messages").and_then(|value| chat::read(value, "user"));
    if said.is_none() && !events.messages.is_empty() {
        said = Some(events);
    }
    let said = said
        .or_else(|| indexed(attributes, "gen_ai.prompt", "user"))
        .or_else(|| indexed(attributes, "llm.input_messages", "user"))
        .or_else(|| get("ai.prompt.messages").and_then(|value| chat::read(value, "user")))
        .or_else(|| get("ai.prompt").and_then(|value| chat::read_or_text(value, "user")))
        .or_else(|| get("gcp.vertex.agent.llm_request").and_then(|value| chat::read(value, "user")))
        .or_else(|| get("gen_ai.prompt").and_then(|value| chat::read_or_text(value, "user")));
    let said = said.or_else(|| {
        given(span.input.as_ref(), span, &INPUTS)
            .find_map(|value| chat::read(value, "user"))
            .or_else(|| given(span.input.as_ref(), span, &INPUTS).find_map(|value| chat::read_or_text(value, "user")))
    });
    // A limit on the length of attributes may have cut the JSON: its text is better than nothing.
    let cut = || get("gen_ai.input.messages").and_then(|value| chat::read_or_text(value, "user"));
    let mut said = said.or_else(cut).unwrap_or_default();
    if let Some(instructions) = get("gen_ai.system_instructions") {
        let text = text_within(&unpacked(instructions));
        if !text.is_empty() && !said.messages.iter().any(|message| message.role == "system" && message.content == text)
        {
            said.messages.insert(0, plain("system", &text));
        }
    }
    said
}

fn output(span: &Span, events: Said) -> Said {
    let attributes = &span.attributes;
    let get = |name: &str| attributes.get(name).filter(|value| !is_blank(value));
    let mut said = get("gen_ai.output.messages").and_then(|value| chat::read(&chat::first_choice(value), "assistant"));
    if said.is_none() && !events.is_empty() {
        said = Some(events);
    }
    let said = said
        .or_else(|| indexed(attributes, "gen_ai.completion", "assistant"))
        .or_else(|| indexed(attributes, "llm.output_messages", "assistant"))
        .or_else(|| vercel(attributes))
        .or_else(|| get("gcp.vertex.agent.llm_response").and_then(|value| chat::read(value, "assistant")))
        .or_else(|| get("gen_ai.completion").and_then(|value| chat::read_or_text(value, "assistant")));
    said.or_else(|| {
        given(span.output.as_ref(), span, &OUTPUTS).find_map(|value| chat::read(value, "assistant")).or_else(|| {
            given(span.output.as_ref(), span, &OUTPUTS).find_map(|value| chat::read_or_text(value, "assistant"))
        })
    })
    .or_else(|| get("gen_ai.output.messages").and_then(|value| chat::read_or_text(value, "assistant")))
    .unwrap_or_default()
}

fn indexed(attributes: &Map<String, Value>, beginning: &str, role: &str) -> Option<Said> {
    let items = indexed::list(attributes, beginning);
    if items.is_empty() {
        return None;
    }
    let items = Value::Array(items);
    if role == "assistant" { chat::read(&chat::first_choice(&items), role) } else { chat::read(&items, role) }
}

/// Reads the Vercel AI SDK's answer: text, calls and an object, each under its own name.
fn vercel(attributes: &Map<String, Value>) -> Option<Said> {
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

/// Reads the whole conversation that an agent's span carries, where it does: what was new in it, in order.
pub(crate) fn conversation(span: &Span) -> Option<Said> {
    let attributes = &span.attributes;
    let all = first(attributes, &["pydantic_ai.all_messages", "all_messages_events", "pydantic_ai.new_messages"])?;
    let all = unpacked(all);
    let from = crate::json::first_count(attributes, &["pydantic_ai.new_message_index"]).unwrap_or(0);
    let items = all.as_array()?;
    let items = items.get(usize::try_from(from).ok()?..)?;
    chat::read(&Value::Array(items.to_vec()), "user")
}
