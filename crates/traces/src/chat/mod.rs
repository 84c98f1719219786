//! Reads messages, in whichever of the shapes that models' interfaces and frameworks write them.
//!
//! The shapes: `OpenAI`'s chat messages and responses, Anthropic's content blocks, Gemini's contents, OpenTelemetry's and
//! `OpenInference`'s messages, the Vercel AI SDK's and `LangChain`'s. They are told apart by their fields, one message at a
//! time, because frameworks mix them.

mod call;
mod message;
mod part;

use std::borrow::Cow;

use karat_core::document::Message;
use serde_json::{Map, Value};

use crate::json::{first_text, is_blank, parsed, text_of};

pub(crate) use call::arguments_of;

/// How far containers within containers are followed.
const DEPTH: usize = 10;

/// What was said.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Said {
    pub(crate) messages: Vec<Message>,
    pub(crate) reasoning: Option<String>,
    pub(crate) stop_reason: Option<String>,
    /// The source had messages; false where a bare text was taken for one.
    pub(crate) structured: bool,
    /// A text is a text, also where it is the JSON of something else.
    pub(crate) literal: bool,
}

impl Said {
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.reasoning.is_none()
    }

    /// A bare text, said by one who has a role.
    pub(crate) fn text(role: &str, text: &str) -> Self {
        Self { messages: vec![plain(role, text)], ..Self::default() }
    }

    pub(crate) fn push_reasoning(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        match &mut self.reasoning {
            Some(known) => {
                known.push('\n');
                known.push_str(text);
            }
            none => *none = Some(text.to_owned()),
        }
    }
}

pub(crate) fn plain(role: &str, text: &str) -> Message {
    Message { role: role.to_owned(), content: text.to_owned(), ..Message::default() }
}

/// Reads messages out of a value. `role` is who speaks where a message does not say. Returns nothing where the value is
/// none of the known shapes.
pub(crate) fn read(value: &Value, role: &str) -> Option<Said> {
    let mut said = Said { structured: true, ..Said::default() };
    (gather(value, role, DEPTH, &mut said) && !said.is_empty()).then_some(said)
}

/// Reads the messages of a model's API, which has names of its own for calls and parts: whatever somebody said in a text,
/// they said. Others hand calls and parts on as the text of a message.
pub(crate) fn read_literal(value: &Value, role: &str) -> Option<Said> {
    let mut said = Said { structured: true, literal: true, ..Said::default() };
    (gather(value, role, DEPTH, &mut said) && !said.is_empty()).then_some(said)
}

/// Reads messages out of a value, and takes a bare text for one message.
pub(crate) fn read_or_text(value: &Value, role: &str) -> Option<Said> {
    if let Some(said) = read(value, role) {
        return Some(said);
    }
    match value {
        Value::String(text) if !text.trim().is_empty() && parsed(text).is_none() => {
            Some(by_lines(text).filter(|_| role == "user").unwrap_or_else(|| Said::text(role, text)))
        }
        _ => None,
    }
}

/// Returns the first of several answers of which each says why it ended: they are choices, of which one is the answer. What
/// calls tools is none, because some write each call as an answer of its own.
pub(crate) fn first_choice(answers: &Value) -> Cow<'_, Value> {
    let unpacked = crate::json::unpacked(answers);
    let Value::Array(items) = unpacked.as_ref() else { return unpacked };
    let calls = |item: &Value| {
        let listed =
            ["tool_calls", "function_call"].iter().any(|name| item.get(*name).is_some_and(|call| !is_blank(call)));
        let parts = ["parts", "content"].iter().filter_map(|name| item.get(*name)?.as_array()).flatten();
        let mut parts = parts.filter_map(Value::as_object);
        let written =
            item.get("content").and_then(Value::as_str).is_some_and(|text| call::calls_of_text(text).is_some());
        listed || written || parts.any(|part| matches!(part::read(&Value::Object(part.clone())), part::Part::Call(_)))
    };
    let is_choice = |item: &Value| {
        item.get("finish_reason").is_some_and(Value::is_string)
            && item.get("role").is_none_or(|role| role == "assistant")
            && !calls(item)
    };
    if items.len() > 1 && items.iter().all(is_choice) {
        return Cow::Owned(Value::Array(items[..1].to_vec()));
    }
    unpacked
}

/// Reads a text that writes a conversation by lines: `system: …`, `user: …`. Some instrumentations give a prompt so.
fn by_lines(text: &str) -> Option<Said> {
    const ROLES: [(&str, &str); 5] = [
        ("system: ", "system"),
        ("developer: ", "system"),
        ("user: ", "user"),
        ("assistant: ", "assistant"),
        ("tool: ", "tool"),
    ];
    let begins =
        |line: &str| ROLES.iter().find_map(|(beginning, role)| Some((*role, line.strip_prefix(beginning)?.len())));
    begins(text)?;
    let mut said = Said::default();
    for line in text.split_inclusive('\n') {
        match (begins(line), said.messages.last_mut()) {
            (Some((role, length)), _) => said.messages.push(plain(role, &line[line.len() - length..])),
            (None, Some(last)) => last.content.push_str(line),
            (None, None) => {}
        }
    }
    for message in &mut said.messages {
        message.content.truncate(message.content.trim_end().len());
    }
    said.messages.iter().any(|message| message.role == "user").then_some(said)
}

/// Adds the messages of a value. Returns whether its shape is known.
fn gather(value: &Value, role: &str, depth: usize, said: &mut Said) -> bool {
    if depth == 0 {
        return false;
    }
    match value {
        Value::String(text) => parsed(text).is_some_and(|inner| gather(&inner, role, depth - 1, said)),
        Value::Array(items) => gather_list(items, role, depth, said),
        Value::Object(map) => gather_object(map, role, depth, said),
        _ => false,
    }
}

fn gather_list(items: &[Value], role: &str, depth: usize, said: &mut Said) -> bool {
    if items.is_empty() {
        return false;
    }
    if items.iter().all(|item| item.as_object().is_some_and(part::is_content)) {
        // Content of one message, without the message around it.
        let mut map = Map::new();
        map.insert("content".to_owned(), Value::Array(items.to_vec()));
        message::push(&map, role, said);
        return true;
    }
    let mut known = false;
    for item in items {
        known |= match item {
            Value::String(text) if parsed(text).is_none() => false,
            item => gather(item, role, depth - 1, said),
        };
    }
    known
}

fn gather_object(map: &Map<String, Value>, role: &str, depth: usize, said: &mut Said) -> bool {
    if message::is_one(map, role) {
        message::push(map, role, said);
        return true;
    }
    if let Some(inner) = map.get("kwargs").and_then(Value::as_object)
        && map.contains_key("lc")
    {
        let kind = map.get("id").and_then(Value::as_array).and_then(|path| path.last()).and_then(Value::as_str);
        let mut inner = inner.clone();
        if let (Some(kind), false) = (kind, inner.contains_key("type")) {
            inner.insert("type".to_owned(), Value::String(kind.to_owned()));
        }
        return gather_object(&inner, role, depth - 1, said);
    }
    // An answer: its message is within.
    if let Some(Value::Array(choices)) = map.get("choices") {
        let mut known = false;
        // Of several choices the first is the answer.
        for choice in choices.iter().filter_map(Value::as_object).take(1) {
            known |= match choice.get("message").or_else(|| choice.get("delta")) {
                Some(inner) => gather(inner, "assistant", depth - 1, said),
                None => choice.get("text").and_then(Value::as_str).is_some_and(|text| {
                    said.messages.push(plain("assistant", text));
                    true
                }),
            };
            note_stop_reason(choice, said);
        }
        return known;
    }
    if let Some(Value::Array(candidates)) = map.get("candidates") {
        return gather_list(&candidates[..candidates.len().min(1)], "assistant", depth - 1, said);
    }
    if let Some(generations) = map.get("generations") {
        return gather(generations, "assistant", depth - 1, said);
    }
    let answers = map.get("object").and_then(Value::as_str) == Some("response")
        || map.get("output").is_some_and(Value::is_array) && !map.contains_key("messages");
    if answers && let Some(output) = map.get("output") {
        return gather(output, "assistant", depth - 1, said);
    }
    gather_request(map, role, depth, said)
}

/// Adds the messages of a request or of a framework's state.
fn gather_request(map: &Map<String, Value>, role: &str, depth: usize, said: &mut Said) -> bool {
    let before = said.messages.len();
    for system in ["system", "system_instruction", "systemInstruction", "instructions"] {
        let here = map.get(system).or_else(|| map.get("config").and_then(|config| config.get(system)));
        if let Some(value) = here
            && let text = text_within(value)
            && !text.is_empty()
        {
            said.messages.push(plain("system", &text));
        }
    }
    for name in
        ["messages", "contents", "input", "new_message", "message", "content", "request_data", "inputs", "outputs"]
    {
        let Some(value) = map.get(name).filter(|value| !is_blank(value)) else { continue };
        if gather(value, role, depth - 1, said) {
            note_stop_reason(map, said);
            return true;
        }
    }
    if let Some(prompt) = first_text(map, &["prompt", "query", "question"]).filter(|_| role == "user") {
        said.messages.push(plain("user", prompt));
        return true;
    }
    if let Some(text) = first_text(map, &["text", "response", "completion", "answer"]).filter(|_| role == "assistant") {
        said.messages.push(plain("assistant", text));
        note_stop_reason(map, said);
        return true;
    }
    said.messages.truncate(before);
    false
}

fn note_stop_reason(map: &Map<String, Value>, said: &mut Said) {
    if said.stop_reason.is_none() {
        said.stop_reason =
            first_text(map, &["finish_reason", "stop_reason", "finishReason", "stopReason"]).map(str::to_owned);
    }
}

/// Returns the text within a value: of texts, of parts of text, of lists of them.
pub(crate) fn text_within(value: &Value) -> String {
    fn add(value: &Value, depth: usize, into: &mut String) {
        let mut text = |text: &str| {
            if !into.is_empty() && !text.is_empty() {
                into.push('\n');
            }
            into.push_str(text);
        };
        match value {
            Value::String(words) => text(words),
            Value::Array(items) if depth > 0 => items.iter().for_each(|item| add(item, depth - 1, into)),
            Value::Object(map) if depth > 0 => {
                if let Some(inner) = ["text", "content", "parts", "value"].iter().find_map(|name| map.get(*name)) {
                    add(inner, depth - 1, into);
                }
            }
            _ => {}
        }
    }
    let mut into = String::new();
    add(value, DEPTH, &mut into);
    into
}

/// Returns what a tool gave back, as a value: the JSON of an object or a list is unpacked, so that eval functions can look
/// into it.
pub(crate) fn result_of(value: &Value) -> Value {
    crate::json::unpacked(value).into_owned()
}

/// Returns the text of what a tool gave back, as a message of the conversation has it.
pub(crate) fn result_text(value: &Value) -> String {
    match value {
        Value::Array(items) if items.iter().all(|item| item.as_object().is_some_and(part::is_content)) => {
            text_within(value)
        }
        other => text_of(other),
    }
}
