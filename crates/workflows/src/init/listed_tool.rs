//! The tools of the chosen registry, as far as the first eval file needs them.

use karat_core::registry::{Registry, Tool};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum number of suggested messages.
const MAX_SUGGESTIONS: usize = 3;

/// Endings of verbs whose third person adds "es".
const ES_ENDINGS: [&str; 5] = ["ches", "shes", "sses", "xes", "zes"];

/// First words that end in "s" but are not verbs in the third person.
const NOT_VERBS: [&str; 6] = ["this", "always", "is", "has", "does", "its"];

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListedTools {
    pub(super) tools: Vec<ListedTool>,
    /// The registry has no gaps, so there are no other tools.
    pub(super) is_complete: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListedTool {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) version: Option<String>,
    pub(super) description_hash: Option<String>,
    input_schema: Option<Value>,
    trigger_phrases: Vec<String>,
    /// The tool changes something, or a person has to confirm each call.
    is_write: bool,
}

impl From<&Registry> for ListedTools {
    fn from(registry: &Registry) -> Self {
        Self { tools: registry.tools().iter().map(ListedTool::from).collect(), is_complete: registry.gaps().is_empty() }
    }
}

impl From<&Tool> for ListedTool {
    fn from(tool: &Tool) -> Self {
        Self {
            name: tool.name.clone(),
            description: tool.description.get().cloned(),
            version: tool.version.get().cloned(),
            description_hash: tool.description_hash(),
            input_schema: tool.input_schema.get().cloned(),
            trigger_phrases: tool.trigger_phrases().to_vec(),
            is_write: tool.category.as_deref() == Some("write") || tool.requires_confirmation.get() == Some(&true),
        }
    }
}

impl ListedTools {
    pub(super) fn find(&self, name: &str) -> Option<&ListedTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    /// Returns the tool to test first: one without an eval file that changes nothing and whose message can be
    /// suggested.
    pub(super) fn preferred(&self, has_file: impl Fn(&str) -> bool) -> Option<&ListedTool> {
        let key = |tool: &&ListedTool| (has_file(&tool.name), tool.is_write, tool.suggested_messages().is_empty());
        self.tools.iter().min_by_key(key)
    }
}

impl ListedTool {
    /// Returns the required parameters that the schema declares.
    pub(super) fn required(&self) -> Vec<&str> {
        let names = self.input_schema.as_ref().and_then(|schema| schema.get("required")?.as_array());
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        names.filter(|name| self.property(name).is_some()).collect()
    }

    /// Returns messages that should make an agent call the tool: its trigger phrases, else its description as a
    /// request, once for each known value of the required parameters.
    pub(super) fn suggested_messages(&self) -> Vec<String> {
        let phrases = self.trigger_phrases.iter().map(|phrase| phrase.trim()).filter(|phrase| !phrase.is_empty());
        let phrases: Vec<String> = phrases.take(MAX_SUGGESTIONS).map(str::to_owned).collect();
        if !phrases.is_empty() {
            return phrases;
        }
        let Some(request) = self.description.as_deref().and_then(request) else {
            return Vec::new();
        };
        let values: Vec<(&str, Vec<String>)> = self
            .required()
            .into_iter()
            .map(|name| (name, self.known_values(name)))
            .filter(|(_, values)| !values.is_empty())
            .collect();
        let count = values.iter().map(|(_, values)| values.len()).max().unwrap_or(1);
        let message = |at: usize| {
            let pairs: Vec<String> = values
                .iter()
                .map(|(name, values)| format!("{}: {}", name.replace('_', " "), values[at % values.len()]))
                .collect();
            if pairs.is_empty() { format!("{request}.") } else { format!("{request} ({}).", pairs.join(", ")) }
        };
        (0..count).map(message).collect()
    }

    fn property(&self, name: &str) -> Option<&Value> {
        self.input_schema.as_ref()?.get("properties")?.get(name)
    }

    /// Returns the values of a parameter that its schema mentions.
    fn known_values(&self, name: &str) -> Vec<String> {
        let Some(property) = self.property(name) else {
            return Vec::new();
        };
        let lists = ["enum", "examples"].into_iter().filter_map(|key| property.get(key)?.as_array()).flatten();
        let singles = ["const", "default"].into_iter().filter_map(|key| property.get(key));
        lists.chain(singles).filter_map(plain_text).take(MAX_SUGGESTIONS).collect()
    }
}

fn plain_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns the first sentence of a description, without the full stop.
pub(super) fn first_sentence(description: &str) -> Option<&str> {
    let line = description.trim().lines().next()?;
    let sentence = line.split(". ").next()?.trim().trim_end_matches('.');
    (!sentence.is_empty()).then_some(sentence)
}

/// Turns a description into a request: "Fetches an order. Use when …" becomes "Fetch an order".
fn request(description: &str) -> Option<String> {
    let sentence = first_sentence(description)?;
    Some(match sentence.split_once(' ') {
        Some((verb, rest)) => format!("{} {rest}", imperative(verb)),
        None => imperative(sentence),
    })
}

fn imperative(verb: &str) -> String {
    if NOT_VERBS.contains(&verb.to_lowercase().as_str()) || verb.ends_with("ss") {
        return verb.to_owned();
    }
    if let Some(stem) = verb.strip_suffix("ies") {
        return format!("{stem}y");
    }
    let ending = if ES_ENDINGS.iter().any(|ending| verb.ends_with(ending)) { "es" } else { "s" };
    verb.strip_suffix(ending).unwrap_or(verb).to_owned()
}

#[cfg(test)]
mod tests {
    use karat_core::registry::Known;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn tool(description: &str, input_schema: Value) -> Tool {
        let description = Known::Known(description.to_owned());
        Tool { name: "t".to_owned(), description, input_schema: Known::Known(input_schema), ..Tool::default() }
    }

    #[rstest]
    #[case("Fetches an order with its items. Use when asked.", "Fetch an order with its items.")]
    #[case("Queries the index\n\nReturns rows.", "Query the index.")]
    #[case("Cancels an order.", "Cancel an order.")]
    #[case("Get the weather", "Get the weather.")]
    #[case("This tool counts.", "This tool counts.")]
    fn turns_a_description_into_a_request(#[case] description: &str, #[case] message: &str) {
        assert_eq!(ListedTool::from(&tool(description, json!({}))).suggested_messages(), [message]);
    }

    #[test]
    fn suggests_a_message_for_each_known_value_of_required_parameters() {
        let schema = json!({
            "properties": {"city": {"examples": ["Oslo", "Rome"]}, "order_id": {}, "unit": {"enum": ["C", "F"]}},
            "required": ["city", "order_id", "undeclared"],
        });
        let listed = ListedTool::from(&tool("Returns the weather.", schema));
        assert_eq!(listed.required(), ["city", "order_id"]);
        assert_eq!(
            listed.suggested_messages(),
            ["Return the weather (city: Oslo).", "Return the weather (city: Rome)."]
        );
    }

    #[test]
    fn prefers_a_tool_that_changes_nothing() {
        let write = Tool { name: "cancel".to_owned(), category: Known::Known("write".to_owned()), ..Tool::default() };
        let unknown = Tool { name: "silent".to_owned(), ..Tool::default() };
        let registry = Registry::from_tools([write, unknown, tool("Lists orders.", json!({}))]);
        let tools = ListedTools::from(&registry);
        assert_eq!(tools.preferred(|_| false).map(|tool| tool.name.as_str()), Some("t"));
        assert_eq!(tools.preferred(|name| name == "t").map(|tool| tool.name.as_str()), Some("silent"));
    }
}
