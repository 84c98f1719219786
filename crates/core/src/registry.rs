//! The agent's tools as the rest of karat sees them, wherever they were read.

use serde_json::Value;

use crate::hash::short_hash;

/// A tool that the agent can call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tool {
    pub name: String,
    pub description: Option<String>,
    pub version: Option<String>,
    /// The JSON Schema of the arguments.
    pub input_schema: Option<Value>,
}

impl Tool {
    pub fn description_hash(&self) -> Option<String> {
        self.description.as_ref().map(|description| short_hash(description.as_bytes()))
    }
}

/// All tools of an agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Registry {
    pub tools: Vec<Tool>,
}

impl Registry {
    /// Returns the tool of exactly this name.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Returns the tool that a file's name means: `-` and `_` are taken as equal.
    pub fn find(&self, name: &str) -> Option<&Tool> {
        self.tool(name).or_else(|| self.tools.iter().find(|tool| same_name(&tool.name, name)))
    }
}

/// Tells whether two tool names are equal with `-` and `_` taken as one.
pub fn same_name(left: &str, right: &str) -> bool {
    let fold = |name: &str| name.replace('-', "_");
    fold(left) == fold(right)
}
