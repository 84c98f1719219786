//! Rubric files: cases whose answers are scored by a model, dimension by dimension.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Case, EvalFile, Input, Metadata, Tier};

/// A file of cases, of either kind.
#[derive(Debug, Clone, PartialEq)]
pub enum SuiteFile {
    Eval(EvalFile),
    Rubric(RubricFile),
}

/// A suite whose cases are scored.
#[derive(Debug, Clone, PartialEq)]
pub struct RubricFile {
    pub metadata: Option<Metadata>,
    /// From the metadata, else the file name's stem.
    pub tool_name: String,
    /// The first twelve hex digits of the file's SHA-256.
    pub hash: String,
    pub cases: Vec<RubricCase>,
}

impl RubricFile {
    /// Returns the same messages without their rubrics, for what is asked of any suite.
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

/// One message to the agent and by what its answer is scored.
#[derive(Debug, Clone, PartialEq)]
pub struct RubricCase {
    /// What agents answer; it expects nothing.
    pub case: Case,
    /// What is true, so that the judge need not rely on what it knows itself.
    pub reference_data: Option<Map<String, Value>>,
    pub rubric: Vec<Dimension>,
}

/// One thing that is scored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Dimension {
    /// Its name: `accuracy`, `completeness`, `safety`.
    #[schemars(regex(pattern = r"\S"))]
    pub dimension: String,
    /// The best score; the worst is 0. With 1 the answer is right or wrong.
    #[schemars(range(min = 1))]
    pub max_score: u64,
    /// What each score means.
    #[schemars(regex(pattern = r"\S"))]
    pub criteria: String,
}

/// A rubric file: an envelope with metadata and cases, or just the cases.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(title = "karat rubric file")]
pub enum RubricFileSchema {
    Envelope(Box<RubricEnvelope>),
    Bare(Vec<WrittenRubricCase>),
}

/// Metadata and cases.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = super::shape::envelope)]
pub struct RubricEnvelope {
    /// Where this file's schema is, for editors.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    schema: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata>,
    cases: Vec<WrittenRubricCase>,
}

/// One message to the agent and by what its answer is scored.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "RubricCase", transform = super::shape::case)]
pub struct WrittenRubricCase {
    /// Unique in the file.
    #[schemars(regex(pattern = r"\S"))]
    id: String,
    /// What this case tests.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    description: String,
    input: Input,
    /// What is true, so that the judge need not rely on what it knows itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    reference_data: Option<Map<String, Value>>,
    /// What each tool answers a model that is driven without its tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    stubs: Option<Map<String, Value>>,
    /// How often a stubbed model may be asked; 5 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    max_turns: Option<u64>,
    /// What is scored, each for itself.
    #[schemars(length(min = 1))]
    rubric: Vec<Dimension>,
}
