//! The shapes of an overlap map as types, for its JSON Schema.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// An overlap map: an object with a key for each tool, or a list under `tools`.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(title = "karat overlap map")]
pub enum OverlapMapSchema {
    ByTool(ByTool),
    List(List),
}

/// The shape that karat writes: what overlaps each tool, by the tool's name.
#[derive(Serialize, JsonSchema)]
pub struct ByTool {
    /// Where this file's schema is, for editors.
    #[serde(rename = "$schema")]
    schema: Option<String>,
    #[serde(flatten)]
    tools: BTreeMap<String, ByToolEntry>,
}

/// What is declared of a tool.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ByToolEntry {
    /// The tools that are easily taken for this one.
    overlaps: Option<Vec<String>>,
    /// Groups of three or more tools, this one among them, that belong together.
    clusters: Option<Vec<Vec<String>>>,
    /// Why they are taken for each other.
    reason: Option<String>,
}

/// Another shape, which is read and not written.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Where this file's schema is, for editors.
    #[serde(rename = "$schema")]
    schema: Option<String>,
    tools: Vec<ListEntry>,
}

/// What is declared of a tool.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListEntry {
    tool: String,
    overlaps: Option<Vec<ListOverlap>>,
    clusters: Option<Vec<ListCluster>>,
    /// Why they are taken for each other.
    reason: Option<String>,
}

/// A tool that is easily taken for the entry's.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListOverlap {
    tool: String,
    reason: Option<String>,
    #[schemars(extend("exclusiveMinimum" = 0))]
    weight: Option<f64>,
}

/// Tools that belong together.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListCluster {
    name: Option<String>,
    tools: Vec<String>,
}
