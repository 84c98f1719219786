//! Cases of the baseline without a result.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Ids of cases that the baseline has and this run did not run, without those that have a `skip`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MissingCases {
    /// Not selected, or not reached because of an interruption or `--fail-fast`.
    pub not_run: Vec<String>,
    /// No longer in the eval file.
    pub removed: Vec<String>,
}

impl MissingCases {
    pub fn is_empty(&self) -> bool {
        self.not_run.is_empty() && self.removed.is_empty()
    }

    /// Adds the ids that are not included yet: with several agents, each suite lacks the same cases.
    pub fn add(&mut self, other: &Self) {
        add_new(&mut self.not_run, &other.not_run);
        add_new(&mut self.removed, &other.removed);
    }
}

fn add_new(all: &mut Vec<String>, ids: &[String]) {
    let known: HashSet<&str> = all.iter().map(String::as_str).collect();
    let new: Vec<String> = ids.iter().filter(|id| !known.contains(id.as_str())).cloned().collect();
    all.extend(new);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_a_case_once() {
        let missing = |not_run: &[&str], removed: &[&str]| MissingCases {
            not_run: not_run.iter().map(|id| (*id).to_owned()).collect(),
            removed: removed.iter().map(|id| (*id).to_owned()).collect(),
        };
        let mut all = missing(&["a"], &[]);
        all.add(&missing(&["b", "a"], &["c"]));
        assert_eq!(all, missing(&["a", "b"], &["c"]));
        assert!(!all.is_empty() && MissingCases::default().is_empty());
    }
}
