//! Arguments that a message can name so that it is certain with what the tool is called.

use karat_core::registry::Tool;
use karat_core::text::text_form;
use serde_json::{Map, Value, json};

use super::phrasing::{clean, topic};

/// The longest value that reads well in a sentence.
const LONGEST_VALUE: usize = 40;

/// An argument, and what of it is certain once the message names it.
pub(super) struct Argument {
    name: String,
    value: Value,
    /// The agent may leave out what is the default anyway.
    is_default: bool,
}

impl Argument {
    /// Returns one of the arguments that a tool's schema knows values of, if the message says nothing of it yet.
    pub(super) fn of(tool: &Tool, message: &str, turn: usize) -> Option<Self> {
        let properties = tool.input_schema.as_ref()?.get("properties")?.as_object()?;
        let known: Vec<Argument> = properties.iter().filter_map(|(name, schema)| known(name, schema, turn)).collect();
        let open: Vec<Argument> = known.into_iter().filter(|argument| !argument.is_said(properties, message)).collect();
        let place = turn % open.len().max(1);
        open.into_iter().nth(place)
    }

    /// Tells whether a message names the argument or one of its values, so that another value would contradict it.
    fn is_said(&self, properties: &Map<String, Value>, message: &str) -> bool {
        let message = message.to_lowercase();
        let schema = properties.get(&self.name);
        let values = schema.and_then(|schema| schema.get("enum")).and_then(Value::as_array).into_iter().flatten();
        let mut texts = values.chain([&self.value]).map(|value| text_form(value).to_lowercase());
        texts.any(|text| holds_word(&message, &text)) || holds_word(&message, &topic(&self.name))
    }

    /// Returns the sentence by which the message names it.
    pub(super) fn sentence(&self) -> String {
        format!("Take {} as the {}.", text_form(&self.value), topic(&self.name))
    }

    pub(super) fn assertion(&self, tool: &Tool) -> Value {
        let mut assertion =
            json!({"tool": tool.name, "paramName": self.name, "assertion": "equals", "value": self.value});
        if self.is_default {
            assertion["optional"] = json!(true);
        }
        assertion
    }
}

fn known(name: &str, schema: &Value, turn: usize) -> Option<Argument> {
    let is_plain = |value: &&Value| match value {
        Value::String(text) => {
            let length = text.chars().count();
            (1..=LONGEST_VALUE).contains(&length) && clean(text) == *text && text.trim() == text
        }
        Value::Number(_) => true,
        _ => false,
    };
    let default = schema.get("default").filter(is_plain);
    let choices: Vec<&Value> =
        schema.get("enum").and_then(Value::as_array).into_iter().flatten().filter(is_plain).collect();
    let value = if choices.is_empty() { default? } else { choices[turn % choices.len()] };
    Some(Argument { name: name.to_owned(), value: value.clone(), is_default: default == Some(value) })
}

/// Tells whether a text holds another with no letter or digit around it.
pub(super) fn holds_word(text: &str, word: &str) -> bool {
    let ends = |around: Option<char>| around.is_none_or(|letter| !letter.is_alphanumeric());
    !word.is_empty()
        && text
            .match_indices(word)
            .any(|(at, _)| ends(text[..at].chars().next_back()) && ends(text[at + word.len()..].chars().next()))
}
