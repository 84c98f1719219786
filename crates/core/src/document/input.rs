//! Finds messages in inputs and outputs of any shape.

use serde_json::Value;

/// Keys of a user's message in a step's input.
const INPUT_KEYS: [&str; 9] =
    ["message", "input", "prompt", "query", "question", "text", "content", "user_message", "user_input"];

/// Keys of the agent's text in a step's output.
const OUTPUT_KEYS: [&str; 9] =
    ["response", "content", "text", "output", "message", "answer", "completion", "value", "parts"];

/// The user messages in a step's input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserInput {
    pub messages: Vec<String>,
    /// Whether the messages have roles.
    pub has_roles: bool,
    /// Whether an agent message precedes the last user message.
    pub has_history: bool,
}

impl UserInput {
    pub(super) fn find(input: &Value) -> Option<Self> {
        match input {
            Value::String(text) => Self::from_text(text),
            Value::Array(list) => Self::from_messages(list),
            Value::Object(object) => {
                if let Some(Value::Array(list)) = object.get("messages") {
                    return Self::from_messages(list);
                }
                if object.contains_key("role") {
                    return Self::from_messages(std::slice::from_ref(input));
                }
                INPUT_KEYS.iter().filter_map(|key| object.get(*key)).find_map(Self::find)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        let has_text = !text.trim().is_empty();
        has_text.then(|| Self { messages: vec![text.to_owned()], has_roles: false, has_history: false })
    }

    fn from_messages(list: &[Value]) -> Option<Self> {
        let mut input = Self { messages: Vec::new(), has_roles: true, has_history: false };
        let mut has_agent_message = false;
        for message in list {
            match role(message)? {
                "user" | "human" => {
                    let text = text_content(message);
                    if !text.trim().is_empty() {
                        input.has_history |= has_agent_message;
                        input.messages.push(text);
                    }
                }
                "assistant" | "ai" | "model" => has_agent_message = true,
                _ => {}
            }
        }
        (!input.messages.is_empty()).then_some(input)
    }
}

fn role(message: &Value) -> Option<&str> {
    message.get("role").or_else(|| message.get("type")).and_then(Value::as_str)
}

/// Returns the text of a message or of a step's output.
pub(super) fn text_content(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) if list.iter().any(|message| message.get("role").is_some()) => {
            let mut agent_messages =
                list.iter().filter(|message| matches!(role(message), Some("assistant" | "ai" | "model")));
            agent_messages.next_back().map_or_else(String::new, text_content)
        }
        // The parts of one message: text, images, calls and their results.
        Value::Array(parts) => {
            let is_text = |part: &&Value| {
                part.is_string() || part.get("type").is_none_or(|kind| kind == "text" || kind == "output_text")
            };
            let texts: Vec<String> =
                parts.iter().filter(is_text).map(text_content).filter(|text| !text.is_empty()).collect();
            texts.join("\n")
        }
        Value::Object(object) => {
            if let Some(list @ Value::Array(_)) = object.get("messages") {
                return text_content(list);
            }
            if let Some(choice) = object.get("choices").and_then(|choices| choices.get(0)) {
                return text_content(choice);
            }
            let texts = OUTPUT_KEYS.iter().filter_map(|key| object.get(*key)).map(text_content);
            texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}
