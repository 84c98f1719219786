//! Recognises the protocol of a reply by its content.

use serde_json::{Map, Value};

use super::{a2a, adk, ai_sdk, dify, event_parts, flowise, langgraph, mastra, rasa};
use crate::lenient::first_text;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    OpenAiChat,
    OpenAiResponses,
    Anthropic,
    AiSdk,
    /// Messages of the AI SDK's user interface.
    UiMessages,
    AgUi,
    Adk,
    LangGraph,
    LangServe,
    A2a,
    Mastra,
    Dify,
    Flowise,
    N8n,
    N8nStream,
    Rasa,
    RasaTracker,
    /// A list of messages of any API.
    Messages,
}

impl Protocol {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::AiSdk | Self::UiMessages => "ai-sdk",
            Self::AgUi => "ag-ui",
            Self::Adk => "adk",
            Self::LangGraph => "langgraph",
            Self::LangServe => "langserve",
            Self::A2a => "a2a",
            Self::Mastra => "mastra",
            Self::Dify => "dify",
            Self::Flowise => "flowise",
            Self::N8n | Self::N8nStream => "n8n",
            Self::Rasa | Self::RasaTracker => "rasa",
            Self::Messages => "messages",
        }
    }
}

/// Returns the protocol of a reply. In a list, the first item that is specific to a protocol determines it.
pub(super) fn detect(value: &Value) -> Option<Protocol> {
    match value {
        Value::Array(items) => {
            items.iter().find_map(detect_item).or_else(|| items.iter().find_map(detect_metadata_event))
        }
        Value::Object(map) => detect_object(map).or_else(|| detect_item(value)),
        _ => None,
    }
}

/// Recognises a whole reply.
fn detect_object(map: &Map<String, Value>) -> Option<Protocol> {
    let is_list = |name: &str| map.get(name).is_some_and(Value::is_array);
    let kind = first_text(map, &["type"]);
    let protocol = if is_list("choices") {
        Protocol::OpenAiChat
    } else if first_text(map, &["object"]) == Some("response") {
        Protocol::OpenAiResponses
    } else if kind == Some("message") && is_list("content") && first_text(map, &["role"]) == Some("assistant") {
        Protocol::Anthropic
    } else if a2a::is_known(map) {
        Protocol::A2a
    } else if mastra::is_result(map) {
        Protocol::Mastra
    } else if dify::is_known(map) {
        Protocol::Dify
    } else if flowise::is_reply(map) {
        Protocol::Flowise
    } else if is_list("events") && map.contains_key("sender_id") {
        Protocol::RasaTracker
    } else if is_list("events") && detect(&map["events"]) == Some(Protocol::Adk) {
        Protocol::Adk
    } else if is_state(map) {
        Protocol::LangGraph
    } else if is_list("messages") {
        detect(&map["messages"]).filter(|protocol| *protocol == Protocol::UiMessages).unwrap_or(Protocol::Messages)
    } else if map.contains_key("output") && !is_n8n(map) {
        Protocol::LangServe
    } else {
        return None;
    };
    Some(protocol)
}

/// Whether an object is the state of a graph or a thread.
fn is_state(map: &Map<String, Value>) -> bool {
    let values = map.get("values").and_then(Value::as_object);
    let messages = values.unwrap_or(map).get("messages").and_then(Value::as_array);
    let is_framework_message = |message: &Value| {
        matches!(message.get("type").and_then(Value::as_str), Some("human" | "ai" | "tool" | "system"))
    };
    map.contains_key("__interrupt__")
        || map.contains_key("__error__")
        || messages.is_some_and(|messages| values.is_some() || messages.iter().any(is_framework_message))
}

/// Whether an object is the last item of an n8n workflow: `LangServe` adds metadata, and its output may be anything.
fn is_n8n(map: &Map<String, Value>) -> bool {
    map.get("output").is_some_and(Value::is_string)
        && !map.contains_key("metadata")
        && !map.contains_key("intermediate_steps")
        || map.contains_key("intermediateSteps")
        || map.len() == 1 && map.get("text").is_some_and(Value::is_string)
}

/// Recognises one item of a list: an event, a message, or an item of a workflow.
fn detect_item(item: &Value) -> Option<Protocol> {
    let (name, data) = event_parts(item);
    match name {
        Some(name) if langgraph::is_mode(name) => return Some(Protocol::LangGraph),
        Some("data") => return Some(Protocol::LangServe),
        Some(name) if flowise::is_event(name, data) => return Some(Protocol::Flowise),
        _ => {}
    }
    let Value::Object(map) = data else {
        // A message of a graph, with its metadata.
        let message = data.as_array().filter(|items| items.len() == 2)?.first()?.as_object()?;
        let is_message = first_text(message, &["type"]).is_some_and(|kind| kind == "ai" || kind.ends_with("Chunk"));
        return is_message.then_some(Protocol::LangGraph);
    };
    if let Some(protocol) = first_text(map, &["type"]).and_then(|kind| detect_kind(kind, map)) {
        return Some(protocol);
    }
    let has_framework_messages = || map.get("messages").is_some_and(Value::is_array);
    Some(if map.get("choices").is_some_and(Value::is_array) {
        Protocol::OpenAiChat
    } else if adk::is_event(map) {
        Protocol::Adk
    } else if a2a::is_known(map) {
        Protocol::A2a
    } else if dify::is_known(map) {
        Protocol::Dify
    } else if rasa::is_bot_message(map) {
        Protocol::Rasa
    } else if ai_sdk::is_ui_message(map) {
        Protocol::UiMessages
    } else if has_framework_messages() || langgraph::is_update(map) {
        Protocol::LangGraph
    } else if is_n8n(map.get("json").and_then(Value::as_object).unwrap_or(map)) {
        Protocol::N8n
    } else if crate::message::is_message(map, "user") || map.contains_key("lc") && map.contains_key("kwargs") {
        Protocol::Messages
    } else {
        return None;
    })
}

/// Recognises an event by its type.
fn detect_kind(kind: &str, map: &Map<String, Value>) -> Option<Protocol> {
    if mastra::is_chunk(map) {
        return Some(Protocol::Mastra);
    }
    match kind {
        "message_start" | "content_block_start" | "content_block_delta" | "content_block_stop" | "message_delta" => {
            Some(Protocol::Anthropic)
        }
        "begin" | "item" | "end" if map.contains_key("metadata") || map.contains_key("content") => {
            Some(Protocol::N8nStream)
        }
        "start"
        | "start-step"
        | "text-start"
        | "text-delta"
        | "reasoning-start"
        | "tool-input-start"
        | "tool-input-available"
        | "tool-output-available"
        | "tool-output-error"
        | "tool-output-denied"
        | "finish-step"
        | "finish" => Some(Protocol::AiSdk),
        _ if kind.starts_with("response.") => Some(Protocol::OpenAiResponses),
        _ if is_ag_ui(kind) => Some(Protocol::AgUi),
        _ => None,
    }
}

fn is_ag_ui(kind: &str) -> bool {
    ["RUN_", "TEXT_MESSAGE_", "TOOL_CALL_", "STEP_", "STATE_", "MESSAGES_SNAPSHOT", "REASONING_", "THINKING_"]
        .iter()
        .any(|prefix| kind.starts_with(prefix))
}

/// Recognises a stream that ends before the answer, because it failed early or was truncated.
fn detect_metadata_event(item: &Value) -> Option<Protocol> {
    matches!(event_parts(item).0, Some("metadata")).then_some(Protocol::LangGraph)
}

/// Whether an object is a chunk of a streamed chat completion.
pub(super) fn is_chunk(map: &Map<String, Value>) -> bool {
    let choice = map.get("choices").and_then(|choices| choices.get(0));
    first_text(map, &["object"]) == Some("chat.completion.chunk")
        || choice.is_some_and(|choice| choice.get("delta").is_some())
}

/// Whether an object is an event of a stream; a blocking reply has the event `message` and a mode.
pub(super) fn is_dify_event(map: &Map<String, Value>) -> bool {
    map.contains_key("event") && !map.contains_key("mode")
}
