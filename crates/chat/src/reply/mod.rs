//! Reads the reply of an agent: its text and tool calls since the last user message.
//!
//! The protocol is recognised by its content. A reply is one JSON value: an object, a list of messages, or the list of
//! events of a stream in the order of arrival.

mod a2a;
mod adk;
mod ag_ui;
mod ai_sdk;
mod anthropic;
mod detect;
mod dify;
mod flowise;
mod intermediate_steps;
mod langgraph;
mod mastra;
mod message_list;
mod openai_chat;
mod openai_responses;
mod rasa;
mod turn;
mod usage;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use karat_core::trace::{ToolCall, Usage};
use serde_json::{Map, Value};

use crate::lenient::truncate;
use detect::Protocol;
use turn::TurnBuilder;

/// The text and tool calls of an agent since the last user message.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// Name of the protocol that the reply was recognised as, such as `openai-chat`.
    pub protocol: &'static str,
    /// One per message of the model.
    pub steps: Vec<ReplyStep>,
    /// The error that the reply reports.
    pub error: Option<String>,
    /// The decision that the agent waits for.
    pub approval: Option<Approval>,
    /// Index of the event with the first text of the answer, if the reply is a list of events.
    pub first_text_event: Option<usize>,
    /// The agent's id for the conversation: a thread, session, context or chat.
    pub conversation_id: Option<String>,
    /// Whether the agent finished: false for a truncated stream and for a task that still runs.
    pub is_complete: bool,
    /// Whether the reply cannot report calls. It then has none, even if tools were called.
    pub calls_unreported: bool,
    /// The sum over all steps.
    pub usage: Option<Usage>,
    pub model: Option<String>,
    pub stop_reason: Option<String>,
    /// Results of calls that an earlier reply of the same turn made, before an approval.
    pub late_results: Vec<LateResult>,
}

/// A message of the model, with the calls that it made.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReplyStep {
    pub text: String,
    pub reasoning: Option<String>,
    pub calls: Vec<ReplyCall>,
}

/// A call with its id in the protocol.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReplyCall {
    pub id: Option<String>,
    /// `success` is absent if the protocol does not report it.
    pub call: ToolCall,
}

/// A decision that an agent waits for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Approval {
    /// The agent's question; never empty.
    pub question: String,
    /// The id of the request for approval, interrupt or task.
    pub id: Option<String>,
    /// The call that is to be approved.
    pub call_id: Option<String>,
    /// The request for approval in the form of the protocol.
    pub request: Value,
}

/// The result of a call that is not in the reply.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LateResult {
    pub call_id: String,
    pub result: Option<Value>,
    pub success: Option<bool>,
    pub error: Option<String>,
}

/// The reason why a reply cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    #[error("the reply is empty")]
    Empty,
    /// Neither messages nor events nor the reply of a known protocol.
    #[error("no messages or events of a known protocol in the reply: {0}")]
    UnknownShape(String),
    #[error("{0}")]
    Invalid(String),
}

impl Reply {
    /// Returns the answer: the text of the last step.
    pub fn response(&self) -> &str {
        self.steps.last().map_or("", |step| &step.text)
    }

    /// Returns the number of model calls; `None` for protocols whose steps are not those of the model.
    pub fn model_calls(&self) -> Option<u64> {
        let has_model_messages = matches!(self.protocol, "messages" | "langgraph" | "adk");
        has_model_messages.then(|| u64::try_from(self.steps.len()).unwrap_or(u64::MAX))
    }

    /// Returns the calls of all steps in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.steps.iter().flat_map(|step| &step.calls).map(|call| &call.call)
    }

    /// Adds the reply that followed the decision on an approval. Calls that both contain are kept once.
    #[must_use]
    pub fn followed_by(self, later: Self) -> Self {
        let Self { mut steps, mut late_results, .. } = self;
        let later_ids: HashSet<&str> =
            later.steps.iter().flat_map(|step| &step.calls).filter_map(|call| call.id.as_deref()).collect();
        let repeated = |call: &ReplyCall| call.id.as_deref().is_some_and(|id| later_ids.contains(id));
        // The usage of a state is that of all its messages.
        let is_counted_again = matches!(later.protocol, "langgraph" | "messages")
            && steps.iter().flat_map(|step| &step.calls).any(repeated);
        // A reply that repeats the whole turn also repeats the text of steps with calls.
        steps.retain(|step| step.calls.is_empty() || !step.calls.iter().all(repeated));
        for step in &mut steps {
            step.calls.retain(|call| !repeated(call));
        }
        let mut by_id: HashMap<String, &mut ToolCall> = HashMap::new();
        for call in steps.iter_mut().flat_map(|step| &mut step.calls) {
            if let Some(id) = &call.id {
                by_id.insert(id.clone(), &mut call.call);
            }
        }
        for late in later.late_results {
            match by_id.get_mut(&late.call_id) {
                Some(call) => {
                    call.result = late.result;
                    call.success = late.success;
                    call.error = late.error;
                }
                None => late_results.push(late),
            }
        }
        steps.extend(later.steps);
        let usage = match (self.usage.filter(|_| !is_counted_again), later.usage) {
            (Some(first), Some(second)) => {
                let mut sum = Some(first);
                turn::add_usage(&mut sum, &second);
                sum
            }
            (known, None) | (None, known) => known,
        };
        Self {
            steps,
            late_results,
            usage,
            conversation_id: later.conversation_id.or(self.conversation_id),
            model: later.model.or(self.model),
            first_text_event: None,
            calls_unreported: self.calls_unreported && later.calls_unreported,
            ..later
        }
    }
}

/// Reads a reply: an object, a list of messages, or a list of events. An event of a stream with named events is
/// `{"event": NAME, "data": VALUE}` unless its data repeats the name.
pub fn read_reply(value: &Value) -> Result<Reply, ReplyError> {
    if crate::lenient::is_blank(value) {
        return Err(ReplyError::Empty);
    }
    let Some(protocol) = detect::detect(value) else { return read_error(value) };
    let mut turn = TurnBuilder::default();
    match value {
        Value::Array(items) => read_list(protocol, items, &mut turn),
        Value::Object(map) => read_object(protocol, map, value, &mut turn),
        _ => {}
    }
    if let Some(invalid) = turn.invalid.take() {
        return Err(ReplyError::Invalid(invalid));
    }
    let reply = turn.into_reply(protocol.name());
    if reply.is_complete && reply.calls().any(|call| call.name.is_empty()) {
        return Err(ReplyError::Invalid("a call in the reply has no tool name".to_owned()));
    }
    let is_message_list = matches!(protocol, Protocol::Messages | Protocol::LangGraph | Protocol::UiMessages);
    if is_message_list && reply.is_complete && reply.is_empty() {
        return Err(ReplyError::Invalid(
            "the reply has no message from the agent after the last user message".to_owned(),
        ));
    }
    Ok(reply)
}

impl Reply {
    fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.late_results.is_empty() && self.error.is_none() && self.approval.is_none()
    }
}

fn read_list(protocol: Protocol, items: &[Value], turn: &mut TurnBuilder) {
    let is_named = matches!(protocol, Protocol::LangGraph | Protocol::LangServe | Protocol::Flowise);
    let has_names = !is_named && items.iter().any(|item| event_parts(item).0.is_some());
    let items = if has_names {
        Cow::Owned(items.iter().map(|item| event_parts(item).1.clone()).collect())
    } else {
        Cow::Borrowed(items)
    };
    match protocol {
        Protocol::OpenAiChat => openai_chat::read_stream(&items, turn),
        Protocol::OpenAiResponses => openai_responses::read_stream(&items, turn),
        Protocol::Anthropic => anthropic::read_stream(&items, turn),
        Protocol::AiSdk => ai_sdk::read_stream(&items, turn),
        Protocol::AgUi => ag_ui::read_stream(&items, turn),
        Protocol::Adk => adk::read_events(&items, turn),
        Protocol::LangGraph => langgraph::read_stream(&items, turn),
        Protocol::LangServe => intermediate_steps::read_langserve_stream(&items, turn),
        Protocol::A2a => a2a::read(&items, true, turn),
        Protocol::Mastra => mastra::read_stream(&items, turn),
        Protocol::Dify => dify::read_stream(&items, turn),
        Protocol::Flowise => flowise::read_stream(&items, turn),
        Protocol::N8n => intermediate_steps::read_n8n(&items, turn),
        Protocol::N8nStream => intermediate_steps::read_n8n_stream(&items, turn),
        Protocol::Rasa => rasa::read_bot_messages(&items, turn),
        Protocol::RasaTracker => {}
        Protocol::Messages | Protocol::UiMessages => {
            turn.is_complete = true;
            message_list::read(&items, turn);
        }
    }
}

fn read_object(protocol: Protocol, map: &Map<String, Value>, value: &Value, turn: &mut TurnBuilder) {
    match protocol {
        Protocol::OpenAiChat if detect::is_chunk(map) => openai_chat::read_stream(std::slice::from_ref(value), turn),
        Protocol::OpenAiChat => openai_chat::read_completion(map, turn),
        Protocol::OpenAiResponses if map.contains_key("output") => openai_responses::read_response(map, turn),
        Protocol::Anthropic if map.contains_key("content") => anthropic::read_message(map, turn),
        Protocol::LangGraph => langgraph::read_state(map, turn),
        Protocol::LangServe => intermediate_steps::read_langserve(map, turn),
        Protocol::A2a => a2a::read(std::slice::from_ref(value), false, turn),
        Protocol::Mastra if !mastra::is_chunk(map) => mastra::read_result(map, turn),
        Protocol::Flowise if flowise::is_reply(map) => flowise::read_reply(map, turn),
        Protocol::Dify if !detect::is_dify_event(map) => dify::read_reply(map, turn),
        Protocol::Adk if map.contains_key("events") => {
            adk::read_events(map.get("events").and_then(Value::as_array).map_or(&[], Vec::as_slice), turn);
        }
        Protocol::RasaTracker => rasa::read_tracker(map, turn),
        Protocol::Messages | Protocol::UiMessages if map.get("messages").is_some_and(Value::is_array) => {
            langgraph::read_state(map, turn);
        }
        _ => read_list(protocol, std::slice::from_ref(value), turn),
    }
}

/// Reads a value without a known protocol, which may be an error.
fn read_error(value: &Value) -> Result<Reply, ReplyError> {
    let error = match value {
        Value::Array(items) => items.iter().map(|item| event_parts(item).1).find_map(reported_error),
        other => reported_error(other),
    };
    match error {
        Some(error) => Ok(Reply { protocol: "error", error: Some(error), is_complete: true, ..Reply::default() }),
        None => Err(ReplyError::UnknownShape(truncate(&value.to_string()))),
    }
}

/// Returns the error that an object reports.
fn reported_error(value: &Value) -> Option<String> {
    let map = value.as_object()?;
    for name in ["error", "__error__", "detail", "errors", "errorText"] {
        if let Some(error) = map.get(name).filter(|error| !crate::lenient::is_blank(error)) {
            // With a message next to it, the error is only its type.
            let message = map.get("message").filter(|_| name == "error").and_then(Value::as_str);
            return Some(message.map(str::to_owned).or_else(|| error_text(error)).unwrap_or_else(|| error.to_string()));
        }
    }
    let has_code = ["code", "status", "statusCode", "status_code"].iter().any(|name| map.contains_key(*name));
    let is_only_message = map.len() == 1 || has_code || map.get("type").and_then(Value::as_str) == Some("error");
    map.get("message").and_then(Value::as_str).filter(|_| is_only_message).map(str::to_owned)
}

/// Returns the text of an error: a string, an object that contains one, or a list of those.
fn error_text(error: &Value) -> Option<String> {
    const KEYS: [&str; 8] = ["message", "errorText", "errorMessage", "msg", "detail", "error", "cause", "description"];
    const MAX_DEPTH: usize = 4;
    fn find(error: &Value, depth: usize) -> Option<String> {
        match error {
            Value::String(text) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
            Value::Object(map) if depth > 0 => {
                let text = KEYS.iter().find_map(|name| find(map.get(*name)?, depth - 1))?;
                // Validation errors have a location.
                let location = map.get("loc").or_else(|| map.get("path")).and_then(|path| path.as_array()?.last());
                let prefix = |location| format!("{}: {text}", crate::lenient::text_of(location));
                Some(location.map_or_else(|| text.clone(), prefix))
            }
            Value::Array(items) if depth > 0 => {
                let texts: Vec<String> = items.iter().filter_map(|item| find(item, depth - 1)).collect();
                (!texts.is_empty()).then(|| texts.join("; "))
            }
            _ => None,
        }
    }
    find(error, MAX_DEPTH)
}

/// Splits an event into its name and data.
fn event_parts(event: &Value) -> (Option<&str>, &Value) {
    if let Value::Object(map) = event
        && map.len() == 2
        && let (Some(Value::String(name)), Some(data)) = (map.get("event"), map.get("data"))
    {
        return (Some(name), data);
    }
    (None, event)
}
