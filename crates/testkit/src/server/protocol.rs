//! Parses requests and builds replies for each protocol.

use serde_json::{Map, Value, json};

use super::Request;
use super::reply::{self, Reply};
use super::turn::Turn;
use super::{anthropic, openai};

/// The protocols of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// A custom HTTP agent: one message in, one answer out.
    Agent,
    /// `OpenAI` chat completions.
    OpenAi,
    /// Anthropic messages.
    Anthropic,
}

/// The user message of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) message: String,
    /// The number of turns already in the conversation.
    pub(super) turn: usize,
}

/// The error for a request that violates the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) reason: String,
}

impl Refusal {
    pub(super) fn bad(reason: impl Into<String>) -> Self {
        Self { status: 400, reason: reason.into() }
    }
}

impl Protocol {
    pub(super) fn of(path: &str) -> Self {
        let path = path.split('?').next().unwrap_or_default();
        if path.ends_with("/chat/completions") {
            Self::OpenAi
        } else if path.ends_with("/messages") {
            Self::Anthropic
        } else {
            Self::Agent
        }
    }

    /// Parses a request, or returns why a real API would reject it.
    pub(super) fn read(self, request: &Request, needs_key: bool) -> Result<Question, Refusal> {
        match self {
            Self::Agent => {
                let message = request.body.get("message").and_then(Value::as_str).unwrap_or_default();
                Ok(Question { message: message.to_owned(), turn: 0 })
            }
            Self::OpenAi => openai::read(request, needs_key),
            Self::Anthropic => anthropic::read(request, needs_key),
        }
    }

    /// Builds the reply of an entry, or returns why it does not fit the request.
    pub(super) fn answer(
        self,
        entry: &Map<String, Value>,
        request: &Request,
        question: &Question,
    ) -> Result<Reply, Refusal> {
        if self == Self::Agent {
            return Ok(agent_answer(entry));
        }
        let entry = turn_of(entry, question.turn);
        let status = reply::integer(entry, "status").unwrap_or(200);
        if status != 200 && !reply::has_own_body(entry) {
            let reason = entry.get("text").and_then(Value::as_str).unwrap_or("error").to_owned();
            let status = u16::try_from(status).expect("'status' must be an HTTP status");
            return Ok(reply::read(entry, |_| self.error(&Refusal { status, reason })));
        }
        let mut turn = Turn::read(entry);
        if turn.structured.is_some() && !self.requests_structure(&request.body) {
            return Err(Refusal::bad("a structured answer is scripted but was not requested"));
        }
        Ok(reply::read(entry, |text| {
            if let Some(text) = text {
                turn = Turn { text: text.to_owned(), ..Turn::default() };
            }
            match self {
                Self::Anthropic => anthropic::message(&turn, &request.body),
                _ => openai::completion(&turn, &request.body),
            }
        }))
    }

    /// Returns the reply to a message that is not in the script.
    pub(super) fn not_scripted(self) -> Reply {
        match self {
            Self::Agent => Reply::json(404, &json!({"error": "message not scripted"})),
            _ => self.refuse(&Refusal::bad("message not scripted")),
        }
    }

    pub(super) fn refuse(self, refusal: &Refusal) -> Reply {
        Reply::json(refusal.status, &self.error(refusal))
    }

    fn error(self, refusal: &Refusal) -> Value {
        match self {
            Self::Agent => json!({"error": refusal.reason}),
            Self::OpenAi => openai::error(refusal),
            Self::Anthropic => anthropic::error(refusal),
        }
    }

    fn requests_structure(self, body: &Value) -> bool {
        match self {
            Self::Agent => false,
            Self::OpenAi => openai::requests_structure(body),
            Self::Anthropic => anthropic::forced_tool(body).is_some(),
        }
    }
}

/// Whether both providers accept this tool name.
pub(super) fn is_tool_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// Returns the value of a key, or `None` if it is null.
pub(super) fn non_null<'v>(body: &'v Value, key: &str) -> Option<&'v Value> {
    body.get(key).filter(|value| !value.is_null())
}

/// Rejects unknown keys.
pub(super) fn only_keys(part: &Map<String, Value>, known: &[&str], at: &str) -> Result<(), Refusal> {
    match part.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(Refusal::bad(format!("{at}: '{key}' is not permitted"))),
        None => Ok(()),
    }
}

/// Rejects a value that is not a number within these bounds.
pub(super) fn number_within(body: &Value, key: &str, min: f64, max: f64) -> Result<(), Refusal> {
    match non_null(body, key) {
        Some(number) if !number.as_f64().is_some_and(|number| (min..=max).contains(&number)) => {
            Err(Refusal::bad(format!("{key}: {number} is not a number from {min} to {max}")))
        }
        _ => Ok(()),
    }
}

/// Rejects a value that is not a positive integer.
pub(super) fn positive_integer(body: &Value, key: &str) -> Result<(), Refusal> {
    match non_null(body, key) {
        Some(count) if count.as_u64().is_none_or(|count| count == 0) => {
            Err(Refusal::bad(format!("{key}: {count} is not a positive integer")))
        }
        _ => Ok(()),
    }
}

/// Returns the text of content: a string, or the text parts of a list.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// Returns the turn at an index, else the last one. An entry without turns is its own turn.
fn turn_of(entry: &Map<String, Value>, number: usize) -> &Map<String, Value> {
    let turns = entry.get("turns").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    turns.get(number).or_else(|| turns.last()).and_then(Value::as_object).unwrap_or(entry)
}

const OTHER_CALL_KEYS: [&str; 5] = ["tool_calls", "tools", "steps", "intermediate_steps", "intermediateSteps"];

/// Builds an agent's reply, with defaults for missing fields.
fn agent_answer(entry: &Map<String, Value>) -> Reply {
    reply::read(entry, |text| {
        if let Some(text) = text {
            return json!({"response": text, "toolCalls": []});
        }
        if entry.contains_key("status") {
            return json!({});
        }
        let mut wire = entry.clone();
        wire.retain(|key, _| !["delayMs", "truncated", "headers"].contains(&key.as_str()));
        wire.entry("response").or_insert_with(|| json!(""));
        // An agent that calls the list otherwise has no `toolCalls`.
        if !OTHER_CALL_KEYS.iter().any(|key| wire.contains_key(*key)) {
            wire.entry("toolCalls").or_insert_with(|| json!([]));
        }
        Value::Object(wire)
    })
}
