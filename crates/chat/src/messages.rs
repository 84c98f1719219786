//! Parses messages in the shapes that model APIs and frameworks write.
//!
//! The shapes: `OpenAI` chat messages and responses, Anthropic content blocks, Gemini contents, and messages of
//! OpenTelemetry, `OpenInference`, the Vercel AI SDK and `LangChain`. Each message is recognised by its fields, because
//! frameworks mix shapes.

use std::borrow::Cow;

use karat_core::document::Message;
use serde_json::{Map, Value};

use crate::lenient::{first_text, is_blank, parse_nested, text_of};
use crate::{call, message, part};

/// Maximum depth of nested containers.
const MAX_DEPTH: usize = 10;

/// Messages parsed from a value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParsedMessages {
    pub messages: Vec<Message>,
    pub reasoning: Option<String>,
    pub stop_reason: Option<String>,
    /// Whether the source has messages; false if a plain string was read as one.
    pub structured: bool,
    /// Whether text is kept as it is, even if it is the JSON of calls or parts.
    pub literal: bool,
    /// Whether the text parts of a message are joined without a separator.
    pub joins_text_parts: bool,
    /// Entries of `tool_calls` without a tool name.
    pub unread_calls: Vec<Value>,
}

impl ParsedMessages {
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.reasoning.is_none()
    }

    /// Creates a single message from a plain string.
    pub fn from_text(role: &str, text: &str) -> Self {
        Self { messages: vec![plain_message(role, text)], ..Self::default() }
    }

    pub fn push_reasoning(&mut self, text: &str) {
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

pub fn plain_message(role: &str, text: &str) -> Message {
    Message { role: role.to_owned(), content: text.to_owned(), ..Message::default() }
}

/// Parses the messages of a value. `role` is the default role. Returns `None` if the value has an unknown shape.
pub fn read(value: &Value, role: &str) -> Option<ParsedMessages> {
    let mut parsed = ParsedMessages { structured: true, ..ParsedMessages::default() };
    (parse_value(value, role, MAX_DEPTH, &mut parsed) && !parsed.is_empty()).then_some(parsed)
}

/// Parses the messages of a model API. Such an API has separate fields for calls and parts, so text is not parsed.
/// Other sources may encode calls and parts as the text of a message.
pub fn read_literal(value: &Value, role: &str) -> Option<ParsedMessages> {
    let mut parsed = ParsedMessages { structured: true, literal: true, ..ParsedMessages::default() };
    let is_known = parse_value(value, role, MAX_DEPTH, &mut parsed);
    (is_known && (!parsed.is_empty() || !parsed.unread_calls.is_empty())).then_some(parsed)
}

/// Like [`read_literal`], but joins the text parts of a message without a separator, as the SDKs of model APIs do.
pub(crate) fn read_joined(value: &Value, role: &str) -> Option<ParsedMessages> {
    let mut parsed =
        ParsedMessages { structured: true, literal: true, joins_text_parts: true, ..ParsedMessages::default() };
    let is_known = parse_value(value, role, MAX_DEPTH, &mut parsed);
    (is_known && (!parsed.is_empty() || !parsed.unread_calls.is_empty())).then_some(parsed)
}

/// Parses the messages of a value, or reads a plain string as one message.
pub fn read_or_text(value: &Value, role: &str) -> Option<ParsedMessages> {
    if let Some(parsed) = read(value, role) {
        return Some(parsed);
    }
    match value {
        Value::String(text) if !text.trim().is_empty() && parse_nested(text).is_none() => Some(
            parse_transcript(text).filter(|_| role == "user").unwrap_or_else(|| ParsedMessages::from_text(role, text)),
        ),
        _ => None,
    }
}

/// Returns only the first answer if there are several with a finish reason: those are alternative choices. Answers with
/// calls are not, because some sources write each call as a separate answer.
pub fn first_choice(answers: &Value) -> Cow<'_, Value> {
    let unpacked = crate::lenient::unpack(answers);
    let Value::Array(items) = unpacked.as_ref() else { return unpacked };
    let has_calls = |item: &Value| {
        let has_call_fields =
            ["tool_calls", "function_call"].iter().any(|name| item.get(*name).is_some_and(|call| !is_blank(call)));
        let parts = ["parts", "content"].iter().filter_map(|name| item.get(*name)?.as_array()).flatten();
        let mut parts = parts.filter_map(Value::as_object);
        let has_calls_as_text =
            item.get("content").and_then(Value::as_str).is_some_and(|text| call::parse_calls_text(text).is_some());
        has_call_fields
            || has_calls_as_text
            || parts.any(|part| matches!(part::read(&Value::Object(part.clone())), part::Part::Call(_)))
    };
    let is_choice = |item: &Value| {
        item.get("finish_reason").is_some_and(Value::is_string)
            && item.get("role").is_none_or(|role| role == "assistant")
            && !has_calls(item)
    };
    if items.len() > 1 && items.iter().all(is_choice) {
        return Cow::Owned(Value::Array(items[..1].to_vec()));
    }
    unpacked
}

/// Parses a transcript with roles at the start of lines, `system: …` or `user: …`, as some instrumentations write it.
fn parse_transcript(text: &str) -> Option<ParsedMessages> {
    const ROLE_PREFIXES: [(&str, &str); 5] = [
        ("system: ", "system"),
        ("developer: ", "system"),
        ("user: ", "user"),
        ("assistant: ", "assistant"),
        ("tool: ", "tool"),
    ];
    let role_prefix =
        |line: &str| ROLE_PREFIXES.iter().find_map(|(prefix, role)| Some((*role, line.strip_prefix(prefix)?.len())));
    role_prefix(text)?;
    let mut parsed = ParsedMessages::default();
    for line in text.split_inclusive('\n') {
        match (role_prefix(line), parsed.messages.last_mut()) {
            (Some((role, length)), _) => parsed.messages.push(plain_message(role, &line[line.len() - length..])),
            (None, Some(last)) => last.content.push_str(line),
            (None, None) => {}
        }
    }
    for message in &mut parsed.messages {
        message.content.truncate(message.content.trim_end().len());
    }
    parsed.messages.iter().any(|message| message.role == "user").then_some(parsed)
}

/// Adds the messages of a value. Returns whether the shape is known.
fn parse_value(value: &Value, role: &str, depth: usize, parsed: &mut ParsedMessages) -> bool {
    if depth == 0 {
        return false;
    }
    match value {
        Value::String(text) => parse_nested(text).is_some_and(|inner| parse_value(&inner, role, depth - 1, parsed)),
        Value::Array(items) => parse_list(items, role, depth, parsed),
        Value::Object(map) => parse_object(map, role, depth, parsed),
        _ => false,
    }
}

fn parse_list(items: &[Value], role: &str, depth: usize, parsed: &mut ParsedMessages) -> bool {
    if items.is_empty() {
        return false;
    }
    if items.iter().all(|item| item.as_object().is_some_and(part::is_content)) {
        // The content of one message without the message.
        let mut map = Map::new();
        map.insert("content".to_owned(), Value::Array(items.to_vec()));
        message::push(&map, role, parsed);
        return true;
    }
    let mut known = false;
    for item in items {
        known |= match item {
            Value::String(text) if parse_nested(text).is_none() => false,
            item => parse_value(item, role, depth - 1, parsed),
        };
    }
    known
}

fn parse_object(map: &Map<String, Value>, role: &str, depth: usize, parsed: &mut ParsedMessages) -> bool {
    if message::is_message(map, role) {
        message::push(map, role, parsed);
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
        return parse_object(&inner, role, depth - 1, parsed);
    }
    // Responses contain the message.
    if let Some(Value::Array(choices)) = map.get("choices") {
        let mut known = false;
        // The first of several choices is the answer.
        for choice in choices.iter().filter_map(Value::as_object).take(1) {
            known |= match choice.get("message").or_else(|| choice.get("delta")) {
                Some(inner) => parse_value(inner, "assistant", depth - 1, parsed),
                None => choice.get("text").and_then(Value::as_str).is_some_and(|text| {
                    parsed.messages.push(plain_message("assistant", text));
                    true
                }),
            };
            set_stop_reason(choice, parsed);
        }
        return known;
    }
    if let Some(Value::Array(candidates)) = map.get("candidates") {
        return parse_list(&candidates[..candidates.len().min(1)], "assistant", depth - 1, parsed);
    }
    if let Some(generations) = map.get("generations") {
        return parse_value(generations, "assistant", depth - 1, parsed);
    }
    let is_response = map.get("object").and_then(Value::as_str) == Some("response")
        || map.get("output").is_some_and(Value::is_array) && !map.contains_key("messages");
    if is_response && let Some(output) = map.get("output") {
        return parse_value(output, "assistant", depth - 1, parsed);
    }
    parse_request(map, role, depth, parsed)
}

/// Adds the messages of a request or of a framework's state object.
fn parse_request(map: &Map<String, Value>, role: &str, depth: usize, parsed: &mut ParsedMessages) -> bool {
    let before = parsed.messages.len();
    for key in ["system", "system_instruction", "systemInstruction", "instructions"] {
        let value = map.get(key).or_else(|| map.get("config").and_then(|config| config.get(key)));
        if let Some(value) = value
            && let text = collect_text(value)
            && !text.is_empty()
        {
            parsed.messages.push(plain_message("system", &text));
        }
    }
    for name in
        ["messages", "contents", "input", "new_message", "message", "content", "request_data", "inputs", "outputs"]
    {
        let Some(value) = map.get(name).filter(|value| !is_blank(value)) else { continue };
        if parse_value(value, role, depth - 1, parsed) {
            set_stop_reason(map, parsed);
            return true;
        }
    }
    if let Some(prompt) = first_text(map, &["prompt", "query", "question", "input"]).filter(|_| role == "user") {
        parsed.messages.push(plain_message("user", prompt));
        return true;
    }
    if let Some(text) =
        first_text(map, &["text", "response", "completion", "answer", "output"]).filter(|_| role == "assistant")
    {
        parsed.messages.push(plain_message("assistant", text));
        set_stop_reason(map, parsed);
        return true;
    }
    parsed.messages.truncate(before);
    false
}

pub(crate) fn set_stop_reason(map: &Map<String, Value>, parsed: &mut ParsedMessages) {
    if parsed.stop_reason.is_none() {
        parsed.stop_reason =
            first_text(map, &["finish_reason", "stop_reason", "finishReason", "stopReason"]).map(str::to_owned);
    }
}

/// Joins all text in a value: strings, text parts, and lists of them.
pub fn collect_text(value: &Value) -> String {
    fn add(value: &Value, depth: usize, into: &mut String) {
        let mut push = |text: &str| {
            if !into.is_empty() && !text.is_empty() {
                into.push('\n');
            }
            into.push_str(text);
        };
        match value {
            Value::String(text) => push(text),
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
    add(value, MAX_DEPTH, &mut into);
    into
}

/// Parses a tool result: the JSON text of an object or a list becomes a value, so eval functions can inspect it.
pub fn parse_result(value: &Value) -> Value {
    crate::lenient::unpack(value).into_owned()
}

/// Returns a tool result as the text of a message.
pub(crate) fn result_text(value: &Value) -> String {
    match value {
        Value::Array(items) if items.iter().all(|item| item.as_object().is_some_and(part::is_content)) => {
            collect_text(value)
        }
        other => text_of(other),
    }
}
