//! Which tools are easily taken for each other: list, suggest and edit the overlap map.

mod edit;
mod suggest;

use std::collections::{BTreeMap, BTreeSet};

use karat_project::read_overlap_map;
use karat_tools::overlap::{OverlapMap, check_overlaps};
use schemars::JsonSchema;
use serde::Serialize;

pub use self::edit::{AddRequest, Edited, RemoveRequest, add, remove};
pub use self::suggest::{Suggested, suggest};
use crate::context::Context;
use crate::error::Error;

/// What is declared, with both directions of an overlap united.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat overlap list")]
pub struct OverlapList {
    /// The map's file, or null where there is none.
    pub path: Option<String>,
    /// What eval files carry as `overlapMapVersion`.
    pub version: Option<String>,
    /// How many pairs of tools overlap.
    pub overlaps: usize,
    /// How many distinct clusters there are.
    pub clusters: usize,
    pub tools: Vec<ListedTool>,
    /// How many things are likely wrong in the map, as far as it shows without the tools.
    #[serde(skip)]
    pub issues: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListedTool {
    pub tool: String,
    /// All its neighbours, whichever side declares them.
    pub overlaps: Vec<String>,
    /// The members of each cluster that holds it.
    pub clusters: Vec<Vec<String>>,
    pub reason: Option<String>,
}

/// Lists the declared overlaps; no tools are read, which a server might have to be started for.
pub fn list(context: &Context<'_>) -> Result<OverlapList, Error> {
    let setting = &context.settings.overlap_map;
    Ok(match read_overlap_map(setting)? {
        Some(map) => OverlapList::of(&map, context.settings.shown(&setting.path)),
        None => OverlapList::default(),
    })
}

impl OverlapList {
    fn of(map: &OverlapMap, path: String) -> Self {
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut names: BTreeSet<&str> = map.pairs().flat_map(|(left, right)| [left, right]).collect();
        names.extend(map.clusters().flatten().map(String::as_str));
        for entry in &map.entries {
            names.insert(&entry.tool);
            let given = entry.reason.iter().chain(entry.overlaps.iter().filter_map(|other| other.reason.as_ref()));
            for reason in given {
                let reasons = reasons.entry(&entry.tool).or_default();
                if !reasons.contains(&reason.as_str()) {
                    reasons.push(reason);
                }
            }
        }
        let tool = |tool: &str| ListedTool {
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
