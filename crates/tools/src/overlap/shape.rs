//! Both forms of an overlap map as types, for its JSON Schema.

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

/// The form that karat writes: the overlaps of each tool, by name.
#[derive(Serialize, JsonSchema)]
pub struct ByTool {
    /// JSON Schema of this file, for editors.
    #[serde(rename = "$schema")]
    schema: Option<String>,
    #[serde(flatten)]
    tools: BTreeMap<String, ByToolEntry>,
}

/// The declarations of a tool.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ByToolEntry {
    /// Tools that are easily confused with this one.
    overlaps: Option<Vec<String>>,
    /// Groups of three or more tools that belong together, including this one.
    clusters: Option<Vec<Vec<String>>>,
    /// Why they are confused.
    reason: Option<String>,
}

/// An alternative form, which karat reads but does not write.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// JSON Schema of this file, for editors.
    #[serde(rename = "$schema")]
    schema: Option<String>,
    tools: Vec<ListEntry>,
}

/// The declarations of a tool.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListEntry {
    tool: String,
    overlaps: Option<Vec<ListOverlap>>,
    clusters: Option<Vec<ListCluster>>,
    /// Why they are confused.
    reason: Option<String>,
}

/// A tool that is easily confused with the entry's tool.
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
