//! The agent's tools, independent of where they were read from.
//!
//! A field that is known only at run time of the source is unknown. Unknown is not absent: no conclusion is drawn from
//! it.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::json_schema::compile_tool_schema;
use karat_json::Position;
use karat_json::canonical::canonical_hash;
use karat_json::hash::short_hash;

/// A field of a tool: its value, its absence, or why it is unknown without running the source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Known<T> {
    Known(T),
    #[default]
    Absent,
    Unknown(Unknown),
}

impl<T> Known<T> {
    /// Returns the value, if known.
    pub fn get(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent | Self::Unknown(_) => None,
        }
    }

    /// Returns why the value is unknown, if it is.
    pub fn unknown(&self) -> Option<&Unknown> {
        match self {
            Self::Unknown(unknown) => Some(unknown),
            Self::Known(_) | Self::Absent => None,
        }
    }
}

impl Known<String> {
    pub fn as_deref(&self) -> Option<&str> {
        self.get().map(String::as_str)
    }
}

impl<T> From<Option<T>> for Known<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Self::Known)
    }
}

/// The reason that a field is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    pub location: ToolLocation,
    /// A lower-case fragment: "'region' is a parameter".
    pub reason: String,
}

/// A tool that the agent can call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tool {
    pub name: String,
    pub description: Known<String>,
    pub version: Known<String>,
    /// The JSON Schema of the arguments; unusual parts are replaced by schemas that allow everything.
    pub input_schema: Known<Value>,
    /// The kind of tool, as given by its authors: read, write, …
    pub category: Known<String>,
    /// Whether a person has to confirm each call, if its authors say so.
    pub requires_confirmation: Known<bool>,
    /// Life-cycle status, as given by its authors: active, deprecated, …
    pub status: Known<String>,
    /// Phrases with which users ask for this tool.
    pub trigger_phrases: Known<Vec<String>>,
    /// The position of the definition.
    pub location: Option<ToolLocation>,
    /// The position of the description, if known.
    pub description_location: Option<ToolLocation>,
}

impl Tool {
    pub fn description_hash(&self) -> Option<String> {
        self.description.get().map(|description| short_hash(description.as_bytes()))
    }

    pub fn schema_hash(&self) -> Option<String> {
        self.input_schema.get().map(canonical_hash)
    }

    /// Returns why the schema is not a valid JSON Schema, if it is not.
    pub fn schema_error(&self) -> Option<String> {
        compile_tool_schema(self.input_schema.get()?).err()
    }

    pub fn trigger_phrases(&self) -> &[String] {
        self.trigger_phrases.get().map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns why a field is unknown, if it is.
    pub fn unknown(&self, field: ToolField) -> Option<&Unknown> {
        match field {
            ToolField::Description => self.description.unknown(),
            ToolField::Version => self.version.unknown(),
            ToolField::InputSchema => self.input_schema.unknown(),
            ToolField::Category => self.category.unknown(),
            ToolField::RequiresConfirmation => self.requires_confirmation.unknown(),
            ToolField::Status => self.status.unknown(),
            ToolField::TriggerPhrases => self.trigger_phrases.unknown(),
        }
    }

    /// Returns all unknown fields.
    pub fn unknowns(&self) -> impl Iterator<Item = (ToolField, &Unknown)> {
        ToolField::ALL.into_iter().filter_map(|field| Some((field, self.unknown(field)?)))
    }
}

/// A field of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ToolField {
    Description,
    Version,
    InputSchema,
    Category,
    RequiresConfirmation,
    Status,
    TriggerPhrases,
}

impl ToolField {
    pub const ALL: [Self; 7] = [
        Self::Description,
        Self::Version,
        Self::InputSchema,
        Self::Category,
        Self::RequiresConfirmation,
        Self::Status,
        Self::TriggerPhrases,
    ];

    pub fn name(self) -> &'static str {
        match self {
            ToolField::Description => "description",
            ToolField::Version => "version",
            ToolField::InputSchema => "input schema",
            ToolField::Category => "category",
            ToolField::RequiresConfirmation => "confirmation requirement",
            ToolField::Status => "status",
            ToolField::TriggerPhrases => "trigger phrases",
        }
    }
}

/// The position of a part of a registry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolLocation {
    /// A file, as displayed to the user, or an MCP server or a program.
    pub source: String,
    /// Position in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
}

impl std::fmt::Display for ToolLocation {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.position {
            Some(Position { line, column }) => write!(out, "{}:{line}:{column}", self.source),
            None => write!(out, "{}", self.source),
        }
    }
}

/// A part of the registry that could not be read, and may contain tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    pub kind: GapKind,
    pub location: ToolLocation,
    /// A lower-case fragment; further lines are output of the server.
    pub message: String,
}

impl Gap {
    /// Splits the message from the server's output.
    pub fn parts(&self) -> (&str, &str) {
        self.message.split_once('\n').unwrap_or((&self.message, ""))
    }
}

/// Whether a gap needs fixing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum GapKind {
    /// It cannot work: a syntax error, a missing file, a duplicate tool name.
    Broken,
    /// It may work, but is known only when it runs.
    Unknown,
}

/// The tools of an agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Registry {
    tools: Vec<Tool>,
    gaps: Vec<Gap>,
    by_name: HashMap<String, usize>,
    by_normalized_name: HashMap<String, usize>,
}

impl Registry {
    /// Creates a registry without gaps; the first of several tools with the same name is used.
    pub fn from_tools(tools: impl IntoIterator<Item = Tool>) -> Self {
        let mut registry = Self::default();
        for tool in tools {
            registry.add(tool).ok();
        }
        registry
    }

    /// Adds a tool, or returns the existing tool with the same name.
    pub fn add(&mut self, tool: Tool) -> Result<(), &Tool> {
        if let Some(&index) = self.by_name.get(&tool.name) {
            return Err(&self.tools[index]);
        }
        let index = self.tools.len();
        self.by_name.insert(tool.name.clone(), index);
        self.by_normalized_name.entry(normalize_name(&tool.name)).or_insert(index);
        self.tools.push(tool);
        Ok(())
    }

    pub fn add_gap(&mut self, gap: Gap) {
        self.gaps.push(gap);
    }

    /// Adds another registry's tools and gaps; a tool with an existing name becomes a gap.
    pub fn append(&mut self, other: Self) {
        for tool in other.tools {
            let location = tool.location.clone();
            if let (Err(first), Some(location)) = (self.add(tool), location) {
                let first_location =
                    first.location.as_ref().map_or_else(String::new, |location| format!(" ({location})"));
                let message = format!("another tool is named '{}'{first_location}", first.name);
                self.gaps.push(Gap { kind: GapKind::Broken, location, message });
            }
        }
        self.gaps.extend(other.gaps);
    }

    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Returns the parts that could not be read; if there are any, there may be more tools.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Removes and returns the gaps.
    pub fn take_gaps(&mut self) -> Vec<Gap> {
        std::mem::take(&mut self.gaps)
    }

    pub fn names(&self) -> Vec<&str> {
        self.tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    /// Returns the tool with exactly this name.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.by_name.get(name).map(|&index| &self.tools[index])
    }

    /// Returns the tool for the name of a file, where `-` and `_` are equal.
    pub fn find(&self, name: &str) -> Option<&Tool> {
        self.tool(name).or_else(|| self.by_normalized_name.get(&normalize_name(name)).map(|&index| &self.tools[index]))
    }
}

/// Whether two tool names are equal, ignoring the difference between `-` and `_`.
pub fn same_name(left: &str, right: &str) -> bool {
    normalize_name(left) == normalize_name(right)
}

fn normalize_name(name: &str) -> String {
    name.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str) -> Tool {
        Tool { name: name.to_owned(), ..Tool::default() }
    }

    #[test]
    fn add_rejects_a_duplicate_name() {
        let mut registry = Registry::from_tools([tool("get_weather"), tool("get-weather")]);
        assert_eq!(registry.find("get-weather").map(|tool| tool.name.as_str()), Some("get-weather"));
        assert_eq!(registry.tool("Get-weather"), None);
        let duplicate = Tool { version: Known::Known("2".to_owned()), ..tool("get_weather") };
        assert_eq!(registry.add(duplicate), Err(&tool("get_weather")));
        assert_eq!(registry.names(), ["get_weather", "get-weather"]);
    }

    #[test]
    fn an_unknown_schema_has_no_hash() {
        let mut tool = Tool { input_schema: Known::Known(json!({"type": "object"})), ..tool("t") };
        assert!(tool.schema_hash().is_some());
        let location = ToolLocation { source: "t.ts".to_owned(), position: None };
        tool.input_schema = Known::Unknown(Unknown { location, reason: "a call".to_owned() });
        assert_eq!(tool.schema_hash(), None);
        assert_eq!(tool.unknowns().map(|(field, _)| field).collect::<Vec<_>>(), [ToolField::InputSchema]);
    }
}
