//! The agent's tools as the rest of karat sees them, wherever they were read.
//!
//! What a source does not say without being run is unknown, which is not the same as absent: nothing is concluded
//! from it.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use karat_json::Position;
use karat_json::canonical::canonical_hash;
use karat_json::hash::short_hash;

/// A field of a tool: its value, that there is none, or why it cannot be known without running the source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Known<T> {
    Known(T),
    #[default]
    Absent,
    Unknown(Unknown),
}

impl<T> Known<T> {
    /// Returns the value, where it is known.
    pub fn get(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent | Self::Unknown(_) => None,
        }
    }

    /// Returns why the value is not known, where it is not.
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

/// Why a field is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    pub place: ToolPlace,
    /// A lower-case fragment: "'region' is a parameter".
    pub why: String,
}

/// A tool that the agent can call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tool {
    pub name: String,
    pub description: Known<String>,
    pub version: Known<String>,
    /// The JSON Schema of the arguments; a part that is not ordinary allows everything.
    pub input_schema: Known<Value>,
    /// What kind of tool it is, as its authors say: read, write, …
    pub category: Known<String>,
    /// Whether somebody has to agree before it runs, where its authors say.
    pub requires_confirmation: Known<bool>,
    /// Where it is in its life, as its authors say: active, deprecated, …
    pub status: Known<String>,
    /// What a person says who means this tool.
    pub trigger_phrases: Known<Vec<String>>,
    /// Where it was read.
    pub place: Option<ToolPlace>,
    /// Where its description begins, where that is known.
    pub description_place: Option<ToolPlace>,
}

impl Tool {
    pub fn description_hash(&self) -> Option<String> {
        self.description.get().map(|description| short_hash(description.as_bytes()))
    }

    pub fn schema_hash(&self) -> Option<String> {
        self.input_schema.get().map(canonical_hash)
    }

    pub fn trigger_phrases(&self) -> &[String] {
        self.trigger_phrases.get().map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns why a field is not known, if it is not.
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

    /// Returns all fields that are not known.
    pub fn unknowns(&self) -> impl Iterator<Item = (ToolField, &Unknown)> {
        ToolField::ALL.into_iter().filter_map(|field| Some((field, self.unknown(field)?)))
    }
}

/// What is said of a tool.
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
            ToolField::RequiresConfirmation => "need for confirmation",
            ToolField::Status => "status",
            ToolField::TriggerPhrases => "trigger phrases",
        }
    }
}

/// Where something of a registry was read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolPlace {
    /// A file, as a person would name it, or an MCP server or a program.
    pub source: String,
    /// Where in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
}

impl std::fmt::Display for ToolPlace {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.position {
            Some(Position { line, column }) => write!(out, "{}:{line}:{column}", self.source),
            None => write!(out, "{}", self.source),
        }
    }
}

/// A part of the registry that could not be read, and may hold tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    pub kind: GapKind,
    pub place: ToolPlace,
    /// A lower-case fragment; below its first line stands what a server wrote.
    pub what: String,
}

impl Gap {
    /// Returns what is wrong, and what a server wrote about it.
    pub fn parts(&self) -> (&str, &str) {
        self.what.split_once('\n').unwrap_or((&self.what, ""))
    }
}

/// Whether somebody has to mend something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum GapKind {
    /// It cannot work: no syntax, no such file, one name for two tools.
    Broken,
    /// It may well work, but shows only when it is run.
    Unknown,
}

/// All tools of an agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Registry {
    tools: Vec<Tool>,
    gaps: Vec<Gap>,
    by_name: HashMap<String, usize>,
    by_folded_name: HashMap<String, usize>,
}

impl Registry {
    /// Makes a registry without gaps; of several tools of one name the first is kept.
    pub fn of(tools: impl IntoIterator<Item = Tool>) -> Self {
        let mut registry = Self::default();
        for tool in tools {
            registry.add(tool).ok();
        }
        registry
    }

    /// Adds a tool, or returns the one that has its name already.
    pub fn add(&mut self, tool: Tool) -> Result<(), &Tool> {
        if let Some(&at) = self.by_name.get(&tool.name) {
            return Err(&self.tools[at]);
        }
        let at = self.tools.len();
        self.by_name.insert(tool.name.clone(), at);
        self.by_folded_name.entry(folded(&tool.name)).or_insert(at);
        self.tools.push(tool);
        Ok(())
    }

    pub fn add_gap(&mut self, gap: Gap) {
        self.gaps.push(gap);
    }

    /// Adds another registry's tools and gaps; a tool whose name is taken is a gap.
    pub fn append(&mut self, other: Self) {
        for tool in other.tools {
            let place = tool.place.clone();
            if let (Err(first), Some(place)) = (self.add(tool), place) {
                let at = first.place.as_ref().map_or_else(String::new, |place| format!(" ({place})"));
                let what = format!("another tool has the name '{}' too{at}", first.name);
                self.gaps.push(Gap { kind: GapKind::Broken, place, what });
            }
        }
        self.gaps.extend(other.gaps);
    }

    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Returns what could not be read; where there is anything, there may be more tools.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Takes the gaps out, to be put back otherwise.
    pub fn take_gaps(&mut self) -> Vec<Gap> {
        std::mem::take(&mut self.gaps)
    }

    pub fn names(&self) -> Vec<&str> {
        self.tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    /// Returns the tool of exactly this name.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.by_name.get(name).map(|&at| &self.tools[at])
    }

    /// Returns the tool that a file's name means: `-` and `_` are taken as equal.
    pub fn find(&self, name: &str) -> Option<&Tool> {
        self.tool(name).or_else(|| self.by_folded_name.get(&folded(name)).map(|&at| &self.tools[at]))
    }
}

/// Tells whether two tool names are equal with `-` and `_` taken as one.
pub fn same_name(left: &str, right: &str) -> bool {
    folded(left) == folded(right)
}

fn folded(name: &str) -> String {
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
    fn a_name_belongs_to_one_tool() {
        let mut registry = Registry::of([tool("get_weather"), tool("get-weather")]);
        assert_eq!(registry.find("get-weather").map(|tool| tool.name.as_str()), Some("get-weather"));
        assert_eq!(registry.tool("Get-weather"), None);
        let taken = Tool { version: Known::Known("2".to_owned()), ..tool("get_weather") };
        assert_eq!(registry.add(taken), Err(&tool("get_weather")));
        assert_eq!(registry.names(), ["get_weather", "get-weather"]);
    }

    #[test]
    fn an_unknown_schema_has_no_hash() {
        let mut tool = Tool { input_schema: Known::Known(json!({"type": "object"})), ..tool("t") };
        assert!(tool.schema_hash().is_some());
        let place = ToolPlace { source: "t.ts".to_owned(), position: None };
        tool.input_schema = Known::Unknown(Unknown { place, why: "a call".to_owned() });
        assert_eq!(tool.schema_hash(), None);
        assert_eq!(tool.unknowns().map(|(field, _)| field).collect::<Vec<_>>(), [ToolField::InputSchema]);
    }
}
