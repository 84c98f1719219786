//! Arguments that a message can name so that it is certain with what the tool is called.

use karat_core::registry::Tool;
use karat_core::text::text_form;
use serde_json::{Map, Value, json};

use super::phrasing::{clean, topic};

/// The longest value that reads well in a sentence.
const LONGEST_VALUE: usize = 40;

/// The most arguments that a message is given.
const MOST_REQUIRED: usize = 3;

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
        let properties = tool.input_schema.get()?.get("properties")?.as_object()?;
        let known: Vec<Argument> = properties.iter().filter_map(|(name, schema)| known(name, schema, turn)).collect();
        let open: Vec<Argument> = known.into_iter().filter(|argument| !argument.is_said(properties, message)).collect();
        let place = turn % open.len().max(1);
        open.into_iter().nth(place)
    }

    /// Returns the arguments that a tool requires, of which its schema knows values and the message says nothing.
    pub(super) fn required(tool: &Tool, message: &str, turn: usize) -> Vec<Self> {
        let Some(properties) = properties(tool) else {
            return Vec::new();
        };
        let unsaid = unsaid_fields(tool, message);
        let known = unsaid.into_iter().filter_map(|name| known(name, properties.get(name)?, turn));
        known.filter(|argument| !argument.is_said(properties, message)).take(MOST_REQUIRED).collect()
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
    let examples = schema.get("examples").and_then(Value::as_array).into_iter().flatten();
    let examples: Vec<&Value> = examples.chain(schema.get("example")).filter(is_plain).collect();
    let values = [choices, examples].into_iter().find(|values| !values.is_empty());
    let value = match values {
        Some(values) => values[turn % values.len()],
        None => default?,
    };
    Some(Argument { name: name.to_owned(), value: value.clone(), is_default: default == Some(value) })
}

fn properties(tool: &Tool) -> Option<&Map<String, Value>> {
    tool.input_schema.get()?.get("properties")?.as_object()
}

/// Returns the fields that a tool requires and of which a message holds no value. What is a value can only be seen by
/// its form: a number, a name, or a value that the schema knows.
pub(super) fn unsaid_fields<'t>(tool: &'t Tool, message: &str) -> Vec<&'t str> {
    let required = tool.input_schema.get().and_then(|schema| schema.get("required")).and_then(Value::as_array);
    let small = message.to_lowercase();
    let (mut names, mut numbers) = (0, 0);
    let mut begins = true;
    for word in message.split_whitespace() {
        let bare = word.trim_matches(|letter: char| !letter.is_alphanumeric());
        let is_number = bare.contains(|letter: char| letter.is_ascii_digit());
        let is_name = !begins && bare.starts_with(char::is_uppercase) && bare != "I" && !bare.starts_with("I'");
        numbers += usize::from(is_number);
        names += usize::from(is_name && !is_number);
        begins = word.ends_with(['.', '!', '?', ':', '"']) || word.starts_with('"');
    }
    let mut unsaid = Vec::new();
    for name in required.into_iter().flatten().filter_map(Value::as_str).filter(|name| !name.is_empty()) {
        let schema = properties(tool).and_then(|properties| properties.get(name));
        let values = |key: &str| schema.and_then(|schema| schema.get(key)).and_then(Value::as_array);
        let one = |key: &str| schema.and_then(|schema| schema.get(key));
        let lists = [values("enum"), values("examples")].into_iter().flatten().flatten();
        let mut known = lists.chain(one("example")).chain(one("default"));
        if let Some(value) = known.find(|value| holds_word(&small, &text_form(value).to_lowercase())) {
            // What is the value of one field is none of another.
            let text = text_form(value);
            let is_number = text.contains(|letter: char| letter.is_ascii_digit());
            numbers = numbers.saturating_sub(usize::from(is_number));
            names = names.saturating_sub(usize::from(!is_number && text.starts_with(char::is_uppercase)));
            continue;
        }
        if values("enum").is_some() {
            unsaid.push(name);
            continue;
        }
        let kind = one("type").and_then(Value::as_str).unwrap_or("string");
        let label = topic(name);
        let is_code = ["id", "number", "code"].contains(&label.rsplit(' ').next().unwrap_or_default());
        let left = match kind {
            "integer" | "number" => &mut numbers,
            _ if is_code || names == 0 => &mut numbers,
            _ => &mut names,
        };
        if *left == 0 {
            unsaid.push(name);
        } else {
            *left -= 1;
        }
    }
    unsaid
}

/// Tells whether a text holds another with no letter or digit around it.
pub(super) fn holds_word(text: &str, word: &str) -> bool {
    let ends = |around: Option<char>| around.is_none_or(|letter| !letter.is_alphanumeric());
    !word.is_empty()
        && text
            .match_indices(word)
            .any(|(at, _)| ends(text[..at].chars().next_back()) && ends(text[at + word.len()..].chars().next()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn tool() -> Tool {
        let schema = json!({
            "properties": {
                "payment_id": {"type": "string"},
                "city": {"type": "string", "examples": ["Oslo"]},
                "reason": {"enum": ["damaged", "late"]},
            },
            "required": ["payment_id", "city", "reason"],
        });
        Tool { name: "refund".to_owned(), input_schema: Some(schema).into(), ..Tool::default() }
    }

    #[rstest]
    #[case("Refund it", &["payment_id", "city", "reason"])]
    #[case("Refund payment 4711 in Paris, it was late", &[])]
    #[case("Refund what I bought in Oslo. Thanks", &["payment_id", "reason"])]
    #[case("Refund P-77, it is damaged", &["city"])]
    fn what_a_message_does_not_say_is_found(#[case] message: &str, #[case] expected: &[&str]) {
        assert_eq!(unsaid_fields(&tool(), message), expected);
    }

    #[test]
    fn values_that_the_schema_knows_are_named() {
        let sentences: Vec<String> =
            Argument::required(&tool(), "Refund it", 0).iter().map(Argument::sentence).collect();
        assert_eq!(sentences, ["Take Oslo as the city.", "Take damaged as the reason."]);
    }
}
