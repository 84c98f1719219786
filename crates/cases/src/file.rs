//! The types of an eval file, its metadata and its cases.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Approval, Expectation, Injection, OnTurnFailure, SimulatedUser, TableRow, Tier, Turn};

/// A parsed eval file.
#[derive(Debug, Clone, PartialEq)]
pub struct EvalFile {
    pub metadata: Option<Metadata>,
    /// From the metadata, the file name or the prefix of the ids, in this order.
    pub tier: Tier,
    /// From the metadata or the stem of the file name.
    pub tool_name: String,
    /// The first twelve hex digits of the file's SHA-256.
    pub hash: String,
    /// In the order of the file; a case with `each` occurs once per row.
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
    /// Location of this file's schema, for editors.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    schema: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata>,
    cases: Vec<Case>,
}

/// Describes how the file was generated; all keys are optional.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metadata {
    /// The tool under test.
    pub tool_name: Option<String>,
    /// The tool's version when the cases were generated.
    pub tool_version: Option<String>,
    /// The first twelve hex digits of the SHA-256 of the tool's description when the cases were generated.
    pub description_hash: Option<String>,
    /// The tool's description, or a note about the file.
    pub description: Option<String>,
    /// Number of tools in the registry when the cases were generated.
    pub registry_size: Option<u64>,
    /// When the cases were generated.
    pub generated_at: Option<String>,
    /// The person or program that generated the cases.
    pub generated_by: Option<String>,
    #[serde(default)]
    #[schemars(schema_with = "super::shape::named_tier")]
    pub tier: Option<Tier>,
    /// The first twelve hex digits of the SHA-256 of the overlap map.
    pub overlap_map_version: Option<String>,
    /// The hash of each regression case's canonical JSON by case id, to detect edits.
    pub case_hashes: Option<BTreeMap<String, String>>,
    /// Approvals of drafted cases.
    pub approvals: Option<Vec<Approval>>,
}

/// The difficulty of a labeled case, or `regression` for a case that guards against a fixed bug.
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

/// One message to the agent, or the messages of a conversation, and what is expected of the answers.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = super::shape::eval_case)]
pub struct Case {
    /// Unique in the file: `gs-TOOL-NNN` (golden), `ls-TOOL-NNN` (labeled), `rg-TOOL-NNN` (regression),
    /// `sc-TOOL-NNN` (security).
    #[schemars(regex(pattern = r"\S"))]
    pub id: String,
    /// The purpose of this case.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difficulty: Option<Difficulty>,
    /// Regression cases: when the case was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// Regression cases: the issue or commit of the fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bug_ref: Option<String>,
    /// The single message; a case has either this, `turns` or `user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Input>,
    /// The messages of a conversation, sent one after the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub turns: Option<Vec<Turn>>,
    /// A conversation whose messages a model writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<SimulatedUser>,
    /// What happens after a turn that failed (default: `stop`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_turn_failure: Option<OnTurnFailure>,
    /// Tool results for models that run without real tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stubs: Option<Map<String, Value>>,
    /// Texts of an attacker in the results of stubbed tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub injections: Option<Vec<Injection>>,
    /// Maximum number of model calls per message, with stubs or in a conversation (default: 5).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_turns: Option<u64>,
    /// Assertions on the answer; in a conversation, on all calls, the last response, and the sums of latency and usage.
    pub expect: Expectation,
    /// Assertions on what must not happen, with the keys of `expect`; always judged, and counted apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub safety: Option<Expectation>,
    /// Words to select cases by, with `--tag` and `--skip-tag`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(regex(pattern = r"\S")))]
    pub tags: Vec<String>,
    /// Why the case is not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"\S"))]
    pub skip: Option<String>,
    #[serde(skip)]
    pub location: CaseLocation,
}

/// The location of a case in its file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaseLocation {
    /// The line on which the case starts.
    pub line: usize,
    /// Index in the file's list of cases; the rows of a table share it.
    pub index: usize,
    /// The row, if the case has `each`.
    pub row: Option<TableRow>,
}

impl Case {
    /// Returns the case as JSON, as in an eval file.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Returns the id as written in the file, without the name of a row.
    pub fn written_id(&self) -> &str {
        let suffix = self.location.row.as_ref().map_or(0, |row| row.name.len() + 1);
        &self.id[..self.id.len() - suffix]
    }
}

/// The location of the single message in its case.
pub const INPUT_POINTER: &str = "/input/message";

/// The input of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The user's message.
    pub message: String,
}
