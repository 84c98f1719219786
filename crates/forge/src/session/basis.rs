//! The inputs of a session's drafts, for detecting later changes.

use std::collections::{BTreeMap, BTreeSet};

use karat_cases::registry::Tool;
use karat_json::hash::short_hash;
use serde::{Deserialize, Serialize};

use crate::Brief;

/// Maximum number of tools named in a change.
const MAX_NAMED_TOOLS: usize = 5;

/// The tool, the registry and the part of the overlap map that is about the tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Basis {
    pub tool: String,
    /// The hash of each tool's description, by tool name.
    pub tools: BTreeMap<String, String>,
    pub neighbours: BTreeSet<String>,
    pub clusters: BTreeSet<BTreeSet<String>>,
}

impl Basis {
    pub fn new(brief: &Brief) -> Self {
        let hash = |tool: &Tool| short_hash(tool.description.as_deref().unwrap_or_default().as_bytes());
        let tools = brief.registry.tools().iter();
        Self {
            tool: brief.tool.name.clone(),
            tools: tools.map(|tool| (tool.name.clone(), hash(tool))).collect(),
            neighbours: brief.overlaps.iter().map(|overlap| overlap.tool.clone()).collect(),
            clusters: brief.clusters.iter().map(|cluster| cluster.iter().cloned().collect()).collect(),
        }
    }

    /// Describes what has changed, as lower-case fragments.
    pub fn changes(&self, now: &Basis) -> Vec<String> {
        let mut changes = Vec::new();
        if self.tools.get(&self.tool) != now.tools.get(&self.tool) {
            changes.push(format!("the description of {}", self.tool));
        }
        let mut add = |change: &str, names: Vec<&String>| {
            if !names.is_empty() {
                changes.push(format!("{change}: {}", name_list(&names)));
            }
        };
        let missing = |from: &Basis, other: &Basis| -> Vec<String> {
            from.tools.keys().filter(|name| !other.tools.contains_key(*name)).cloned().collect()
        };
        add("new tools", missing(now, self).iter().collect());
        add("removed tools", missing(self, now).iter().collect());
        let is_reworded = |(name, hash): &(&String, &String)| {
            **name != self.tool && now.tools.get(*name).is_some_and(|other| other != *hash)
        };
        add(
            "changed descriptions of other tools",
            self.tools.iter().filter(is_reworded).map(|(name, _)| name).collect(),
        );
        add("new overlaps", now.neighbours.difference(&self.neighbours).collect());
        add("removed overlaps", self.neighbours.difference(&now.neighbours).collect());
        if self.clusters != now.clusters {
            changes.push("the clusters of the tool".to_owned());
        }
        changes
    }
}

fn name_list(names: &[&String]) -> String {
    let first: Vec<&str> = names.iter().take(MAX_NAMED_TOOLS).map(|name| name.as_str()).collect();
    let more = names.len().saturating_sub(MAX_NAMED_TOOLS);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", first.join(", "))
}
