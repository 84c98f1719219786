//! Finds what was said in inputs and outputs of any shape.

use serde_json::Value;

/// Keys of a user's message in a step's input.
const INPUT_KEYS: [&str; 9] =
    ["message", "input", "prompt", "query", "question", "text", "content", "user_message", "user_input"];

/// Keys of the agent's words in a step's output.
const OUTPUT_KEYS: [&str; 9] =
    ["response", "content", "text", "output", "message", "answer", "completion", "value", "parts"];

/// What of a step's input a user said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserInput {
    pub messages: Vec<String>,
    /// The input says who said what.
    pub has_roles: bool,
    /// The agent had spoken before the user's last words.
    pub has_history: bool,
}

impl UserInput {
    pub(super) fn find(input: &Value) -> Option<Self> {
        match input {
            Value::String(text) => Self::bare(text),
            Value::Array(list) => Self::of_messages(list),
            Value::Object(object) => {
                if let Some(Value::Array(list)) = object.get("messages") {
                    return Self::of_messages(list);
                }
                if object.contains_key("role") {
                    return Self::of_messages(std::slice::from_ref(input));
                }
                INPUT_KEYS.iter().filter_map(|key| object.get(*key)).find_map(Self::find)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        }
    }

    fn bare(text: &str) -> Option<Self> {
        let is_something = !text.trim().is_empty();
        is_something.then(|| Self { messages: vec![text.to_owned()], has_roles: false, has_history: false })
    }

    fn of_messages(list: &[Value]) -> Option<Self> {
        let mut found = Self { messages: Vec::new(), has_roles: true, has_history: false };
        let mut has_spoken = false;
        for message in list {
            match role(message)? {
                "user" | "human" => {
                    let text = spoken(message);
                    if !text.trim().is_empty() {
                        found.has_history |= has_spoken;
                        found.messages.push(text);
                    }
                }
                "assistant" | "ai" | "model" => has_spoken = true,
                _ => {}
            }
        }
        (!found.messages.is_empty()).then_some(found)
    }
}

fn role(message: &Value) -> Option<&str> {
    message.get("role").or_else(|| message.get("type")).and_then(Value::as_str)
}

/// Finds the words in a message or in a step's output.
pub(super) fn spoken(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) if list.iter().any(|one| one.get("role").is_some()) => {
            let mut own = list.iter().filter(|one| matches!(role(one), Some("assistant" | "ai" | "model")));
            own.next_back().map_or_else(String::new, spoken)
        }
        // The parts of one message: texts, beside images, calls and their results.
        Value::Array(parts) => {
            let is_text = |part: &&Value| {
                part.is_string() || part.get("type").is_none_or(|kind| kind == "text" || kind == "output_text")
            };
            let texts: Vec<String> = parts.iter().filter(is_text).map(spoken).filter(|text| !text.is_empty()).collect();
            texts.join("\n")
        }
        Value::Object(object) => {
            if let Some(list @ Value::Array(_)) = object.get("messages") {
                return spoken(list);
            }
            if let Some(choice) = object.get("choices").and_then(|choices| choices.get(0)) {
                return spoken(choice);
            }
            let texts = OUTPUT_KEYS.iter().filter_map(|key| object.get(*key)).map(spoken);
            texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}
