//! The parts of a tool registry that the first eval file needs.

use karat_cases::registry::{Registry, Tool};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum number of suggested messages.
const MAX_SUGGESTIONS: usize = 3;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RegistryTools {
    pub(super) tools: Vec<RegistryTool>,
    /// Whether the registry has no gaps, so that there are no other tools.
    pub(super) is_complete: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RegistryTool {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) version: Option<String>,
    pub(super) description_hash: Option<String>,
    input_schema: Option<Value>,
    /// The first trigger phrases, to suggest as messages.
    pub(super) trigger_phrases: Vec<String>,
    /// Whether the tool changes something, or a person has to confirm each call.
    is_write: bool,
}

impl From<&Registry> for RegistryTools {
    fn from(registry: &Registry) -> Self {
        Self {
            tools: registry.tools().iter().map(RegistryTool::from).collect(),
            is_complete: registry.gaps().is_empty(),
        }
    }
}

impl From<&Tool> for RegistryTool {
    fn from(tool: &Tool) -> Self {
        let phrases = tool.trigger_phrases().iter().map(|phrase| phrase.trim()).filter(|phrase| !phrase.is_empty());
        Self {
            name: tool.name.clone(),
            description: tool.description.get().cloned(),
            version: tool.version.get().cloned(),
            description_hash: tool.description_hash(),
            input_schema: tool.input_schema.get().cloned(),
            trigger_phrases: phrases.take(MAX_SUGGESTIONS).map(str::to_owned).collect(),
            is_write: tool.category.as_deref() == Some("write") || tool.requires_confirmation.get() == Some(&true),
        }
    }
}

impl RegistryTools {
    pub(super) fn find(&self, name: &str) -> Option<&RegistryTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    /// Returns the tool to test first, preferably one without an eval file that is read-only and has trigger phrases.
    pub(super) fn preferred(&self, has_file: impl Fn(&str) -> bool) -> Option<&RegistryTool> {
        let key = |tool: &&RegistryTool| (has_file(&tool.name), tool.is_write, tool.trigger_phrases.is_empty());
        self.tools.iter().min_by_key(key)
    }
}

impl RegistryTool {
    /// Returns the required parameters that the schema declares.
    pub(super) fn required(&self) -> Vec<&str> {
        let names = self.input_schema.as_ref().and_then(|schema| schema.get("required")?.as_array());
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        names.filter(|name| self.property(name).is_some()).collect()
    }

    fn property(&self, name: &str) -> Option<&Value> {
        self.input_schema.as_ref()?.get("properties")?.get(name)
    }
}

/// Returns the first sentence of a description, without the full stop.
pub(super) fn first_sentence(description: &str) -> Option<&str> {
    let line = description.trim().lines().next()?;
    let sentence = line.split(". ").next()?.trim().trim_end_matches('.');
    (!sentence.is_empty()).then_some(sentence)
}

#[cfg(test)]
mod tests {
    use karat_cases::registry::Known;

    use super::*;

    #[test]
    fn prefers_read_only_tools_with_trigger_phrases() {
        let write = Tool { name: "cancel".to_owned(), category: Known::Known("write".to_owned()), ..Tool::default() };
        let unknown = Tool { name: "silent".to_owned(), ..Tool::default() };
        let phrases = Known::Known(vec!["my orders".to_owned()]);
        let with_phrases = Tool { name: "t".to_owned(), trigger_phrases: phrases, ..Tool::default() };
        let registry = Registry::from_tools([write, unknown, with_phrases]);
        let tools = RegistryTools::from(&registry);
        assert_eq!(tools.preferred(|_| false).map(|tool| tool.name.as_str()), Some("t"));
        assert_eq!(tools.preferred(|name| name == "t").map(|tool| tool.name.as_str()), Some("silent"));
    }
}
