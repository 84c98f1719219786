//! The shapes of an eval file, its metadata and its cases.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Approval, Expectation, Tier};

/// A suite: metadata, where the file has any, and its cases in order.
#[derive(Debug, Clone, PartialEq)]
pub struct EvalFile {
    pub metadata: Option<Metadata>,
    /// From the metadata, else the file's name, else the ids' prefix.
    pub tier: Tier,
    /// From the metadata, else the file name's stem.
    pub tool_name: String,
    /// The first twelve hex digits of the file's SHA-256.
    pub hash: String,
    pub cases: Vec<Case>,
}

/// An eval file: an envelope with metadata and cases, or just the cases.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(title = "karat eval file")]
pub enum EvalFileSchema {
    Envelope(Box<Envelope>),
    Bare(Vec<Case>),
}

/// Metadata and cases.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = super::shape::envelope)]
pub struct Envelope {
    /// Where this file's schema is, for editors.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    schema: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata>,
    cases: Vec<Case>,
}

/// What the file was generated for; every key is optional.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metadata {
    /// The tool under test.
    pub tool_name: Option<String>,
    /// The tool's version when the cases were made.
    pub tool_version: Option<String>,
    /// The first twelve hex digits of the SHA-256 of the tool's description when the cases were made.
    pub description_hash: Option<String>,
    /// The tool's description, or a word about the file.
    pub description: Option<String>,
    /// How many tools the registry held when the cases were made.
    pub registry_size: Option<u64>,
    /// When the cases were made.
    pub generated_at: Option<String>,
    /// Who or what made the cases.
    pub generated_by: Option<String>,
    #[serde(default)]
    #[schemars(schema_with = "super::shape::named_tier")]
    pub tier: Option<Tier>,
    /// The first twelve hex digits of the SHA-256 of the overlap map.
    pub overlap_map_version: Option<String>,
    /// For each regression case's id, the hash of its canonical JSON, so that an edit is found.
    pub case_hashes: Option<BTreeMap<String, String>>,
    /// Who approved which of the cases that were drafted.
    pub approvals: Option<Vec<Approval>>,
}

/// How hard a labeled case is meant to be, or that it guards a fixed bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Difficulty {
    Straightforward,
    Ambiguous,
    Edge,
    Regression,
}

impl Difficulty {
    pub const ALL: [Difficulty; 4] =
        [Difficulty::Straightforward, Difficulty::Ambiguous, Difficulty::Edge, Difficulty::Regression];

    pub fn name(self) -> &'static str {
        match self {
            Difficulty::Straightforward => "straightforward",
            Difficulty::Ambiguous => "ambiguous",
            Difficulty::Edge => "edge",
            Difficulty::Regression => "regression",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|difficulty| difficulty.name() == name)
    }
}

/// One message to the agent and what must be true of the answer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = super::shape::case)]
pub struct Case {
    /// Unique in the file: `gs-TOOL-NNN` (golden), `ls-TOOL-NNN` (labeled), `rg-TOOL-NNN` (regression).
    #[schemars(regex(pattern = r"\S"))]
    pub id: String,
    /// What this case tests.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difficulty: Option<Difficulty>,
    /// Regression cases: when the case was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// Regression cases: the issue or commit of the fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bug_ref: Option<String>,
    pub input: Input,
    /// What each tool answers when a model is driven without its real tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stubs: Option<Map<String, Value>>,
    /// How often a stubbed model may be asked; 5 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_turns: Option<u64>,
    pub expect: Expectation,
    /// The line of the file on which the case begins.
    #[serde(skip)]
    pub line: usize,
}

/// What is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The user's message.
    pub message: String,
}
