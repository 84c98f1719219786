//! Lists, suggests and edits overlaps of tools.

mod edit;
mod suggest;

use std::collections::BTreeMap;

use karat_project::read_overlap_map;
use karat_tools::overlap::{OverlapMap, check_overlaps};
use schemars::JsonSchema;
use serde::Serialize;

pub use self::edit::{AddRequest, EditReport, RemoveRequest, add, remove};
pub use self::suggest::{ConfusionCount, ReportedSuggestion, SuggestOutcome, SuggestionReport, suggest};
use crate::context::Context;
use crate::error::Error;

/// The declared overlaps, with both directions merged.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat overlap list")]
pub struct OverlapList {
    /// The file of the map; null if it does not exist.
    pub path: Option<String>,
    /// The version that eval files record as `overlapMapVersion`.
    pub version: Option<String>,
    /// Number of overlapping pairs of tools.
    pub overlaps: usize,
    /// Number of distinct clusters.
    pub clusters: usize,
    pub tools: Vec<ToolOverlaps>,
    /// Number of issues in the map, without checking it against the registry.
    #[serde(skip)]
    pub issues: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolOverlaps {
    pub tool: String,
    /// All overlapping tools, whichever side declares them.
    pub overlaps: Vec<String>,
    /// The members of each cluster with this tool.
    pub clusters: Vec<Vec<String>>,
    pub reason: Option<String>,
}

/// Lists the declared overlaps. Does not read the registry, which may start a server.
pub fn list(context: &Context<'_>) -> Result<OverlapList, Error> {
    let setting = &context.settings.overlap_map;
    Ok(match read_overlap_map(setting)? {
        Some(map) => OverlapList::of(&map, context.settings.display_path(&setting.path)),
        None => OverlapList::default(),
    })
}

impl OverlapList {
    fn of(map: &OverlapMap, path: String) -> Self {
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let names = map.tool_names();
        for entry in &map.entries {
            let entry_reasons =
                entry.reason.iter().chain(entry.overlaps.iter().filter_map(|other| other.reason.as_ref()));
            for reason in entry_reasons {
                let reasons = reasons.entry(&entry.tool).or_default();
                if !reasons.contains(&reason.as_str()) {
                    reasons.push(reason);
                }
            }
        }
        let tool = |tool: &str| ToolOverlaps {
            tool: tool.to_owned(),
            overlaps: map.neighbours(tool).map(str::to_owned).collect(),
            clusters: map.clusters_of(tool).map(|members| members.iter().cloned().collect()).collect(),
            reason: reasons.get(tool).map(|reasons| reasons.join("; ")),
        };
        Self {
            path: Some(path),
            version: Some(map.version.clone()),
            overlaps: map.pairs().count(),
            clusters: map.clusters().count(),
            tools: names.into_iter().map(tool).collect(),
            issues: check_overlaps(map, None).len(),
        }
    }
}
