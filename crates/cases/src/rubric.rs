//! Rubric files: cases whose answers a judge model scores by dimension.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Case, EvalFile, Input, Metadata, Tier};

/// An eval file or a rubric file.
#[derive(Debug, Clone, PartialEq)]
pub enum SuiteFile {
    Eval(EvalFile),
    Rubric(RubricFile),
}

/// A parsed rubric file.
#[derive(Debug, Clone, PartialEq)]
pub struct RubricFile {
    pub metadata: Option<Metadata>,
    /// From the metadata or the stem of the file name.
    pub tool_name: String,
    /// The first twelve hex digits of the file's SHA-256.
    pub hash: String,
    pub cases: Vec<RubricCase>,
}

impl RubricFile {
    /// Returns the cases without their rubrics, for checks that apply to any suite.
    pub fn without_rubrics(&self) -> EvalFile {
        EvalFile {
            metadata: self.metadata.clone(),
            tier: Tier::Rubric,
            tool_name: self.tool_name.clone(),
            hash: self.hash.clone(),
            cases: self.cases.iter().map(|case| case.case.clone()).collect(),
        }
    }
}

/// One message to the agent and the rubric for its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct RubricCase {
    /// The case as agents see it; it has no expectations.
    pub case: Case,
    /// Facts for the judge, so that it does not rely on its own knowledge.
    pub reference_data: Option<Map<String, Value>>,
    pub rubric: Vec<Dimension>,
}

/// One dimension of a rubric.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Dimension {
    /// Its name: `accuracy`, `completeness`, `safety`.
    #[schemars(regex(pattern = r"\S"))]
    pub dimension: String,
    /// The best score; the worst is 0. With 1, the answer is either right or wrong.
    #[schemars(range(min = 1))]
    pub max_score: u64,
    /// The meaning of each score.
    #[schemars(regex(pattern = r"\S"))]
    pub criteria: String,
}

/// A rubric file: an envelope with metadata and cases, or just the cases.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(title = "karat rubric file")]
pub enum RubricFileSchema {
    Envelope(Box<RubricEnvelope>),
    Bare(Vec<RubricCaseSchema>),
}

/// Metadata and cases.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = super::shape::envelope)]
pub struct RubricEnvelope {
    /// Location of this file's schema, for editors.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    schema: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata>,
    cases: Vec<RubricCaseSchema>,
}

/// One message of a conversation.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "RubricTurn", transform = super::shape::turn)]
struct RubricTurnSchema {
    /// The user's message.
    #[schemars(regex(pattern = r"\S"))]
    message: String,
    /// Tool results in this turn, in place of those of the case for the same tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    stubs: Option<Map<String, Value>>,
}

/// One message to the agent, or the messages of a conversation, and the rubric for the answers.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "RubricCase", transform = super::shape::rubric_case)]
pub struct RubricCaseSchema {
    /// Unique in the file.
    #[schemars(regex(pattern = r"\S"))]
    id: String,
    /// The purpose of this case.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    description: String,
    /// The single message; a case has either this or `turns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Input>,
    /// The messages of a conversation; the judge sees all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    turns: Option<Vec<RubricTurnSchema>>,
    /// Facts for the judge, so that it does not rely on its own knowledge.
    #[serde(skip_serializing_if = "Option::is_none")]
    reference_data: Option<Map<String, Value>>,
    /// Tool results for models that run without real tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    stubs: Option<Map<String, Value>>,
    /// Maximum number of model calls per message, with stubs or in a conversation (default: 5).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    max_turns: Option<u64>,
    /// Words to select cases by, with `--tag` and `--skip-tag`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(regex(pattern = r"\S")))]
    tags: Vec<String>,
    /// Why the case is not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"\S"))]
    skip: Option<String>,
    /// The dimensions, scored separately.
    #[schemars(length(min = 1))]
    rubric: Vec<Dimension>,
}
