//! How many labeled cases a tool should have, and in how many batches they are reviewed.

use std::fmt::{self, Write as _};

use karat_cases::{Case, Difficulty};
use karat_tools::coverage::WantedCases;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Brief;

/// Number of labeled cases in a batch.
pub const BATCH_SIZE: usize = 5;

/// The labeled cases of a tool, by the formula.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Plan {
    pub tool: String,
    /// T: the number of tools in the registry.
    pub tools: usize,
    /// O: the number of distinct tools that overlap with the tool.
    pub overlaps: usize,
    /// C: the number of distinct clusters that contain the tool.
    pub clusters: usize,
    /// The difficulties, in drafting order.
    pub tiers: Vec<TierPlan>,
}

/// The cases of one difficulty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TierPlan {
    pub difficulty: Difficulty,
    /// The number of cases from the formula, or proposed after failures.
    pub wanted: usize,
    /// The number of cases that the project already has.
    pub existing: usize,
}

impl Plan {
    /// Computes the plan of a tool with the formula.
    pub fn new(brief: &Brief) -> Self {
        let (tools, overlaps, clusters) = (brief.registry.tools().len(), brief.overlaps.len(), brief.clusters.len());
        let wanted = WantedCases::of(tools, overlaps, clusters);
        let tier = |difficulty, wanted| {
            let has_difficulty = |case: &&Case| case.difficulty == Some(difficulty);
            TierPlan { difficulty, wanted, existing: brief.labeled.iter().filter(has_difficulty).count() }
        };
        let tiers = vec![
            tier(Difficulty::Straightforward, wanted.straightforward),
            tier(Difficulty::Ambiguous, wanted.ambiguous),
            tier(Difficulty::Edge, wanted.edge),
        ];
        Self { tool: brief.tool.name.clone(), tools, overlaps, clusters, tiers }
    }

    /// Returns the number of cases to draft.
    pub fn cases(&self) -> usize {
        self.tiers.iter().map(TierPlan::cases).sum()
    }

    /// Returns the number of batches; each batch has cases of one difficulty.
    pub fn batches(&self) -> usize {
        self.tiers.iter().map(TierPlan::batches).sum()
    }
}

impl TierPlan {
    /// Returns the number of cases to draft.
    pub fn cases(&self) -> usize {
        self.wanted.saturating_sub(self.existing)
    }

    pub fn batches(&self) -> usize {
        self.cases().div_ceil(BATCH_SIZE)
    }
}

/// The form that the spec prescribes, followed by the existing cases.
impl fmt::Display for Plan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "Eval batch plan for {}:", self.tool)?;
        let tools = counted(self.tools, "tool", "tools");
        writeln!(out, "  Registry: {tools} | Overlaps: {} | Clusters: {}", self.overlaps, self.clusters)?;
        for tier in &self.tiers {
            let name = match tier.difficulty {
                Difficulty::Straightforward => "Straightforward:",
                Difficulty::Ambiguous => "Ambiguous:",
                Difficulty::Edge => "Edge:",
                Difficulty::Regression => "Regression:",
            };
            let mut line = format!("  {name:<16} {}", amount(tier.cases(), tier.batches()));
            if tier.existing > 0 {
                let _ = write!(line, ", {} of {} exist", tier.existing, tier.wanted);
            } else if tier.difficulty == Difficulty::Straightforward && self.tools <= 1 {
                line.push_str(", since these cases need several tools");
            }
            writeln!(out, "{line}")?;
        }
        writeln!(out, "  {:<16} {}", "Total:", amount(self.cases(), self.batches()))
    }
}

fn amount(cases: usize, batches: usize) -> String {
    format!("{} ({})", counted(cases, "case", "cases"), counted(batches, "batch", "batches"))
}

fn counted(count: usize, singular: &str, plural: &str) -> String {
    format!("{count} {}", if count == 1 { singular } else { plural })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn plan(tools: usize, overlaps: usize, clusters: usize, existing: usize) -> Plan {
        let wanted = WantedCases::of(tools, overlaps, clusters);
        let tiers = [
            (Difficulty::Straightforward, wanted.straightforward),
            (Difficulty::Ambiguous, wanted.ambiguous),
            (Difficulty::Edge, wanted.edge),
        ];
        let tiers = tiers.map(|(difficulty, wanted)| TierPlan { difficulty, wanted, existing }).to_vec();
        Plan { tool: "get_weather".to_owned(), tools, overlaps, clusters, tiers }
    }

    #[rstest]
    #[case(1, 0, 0, 30, 6)]
    #[case(3, 1, 1, 13 + 28 + 6, 3 + 6 + 2)]
    #[case(12, 3, 2, 22 + 33 + 9, 5 + 7 + 2)]
    #[case(60, 4, 1, 70 + 34 + 25, 14 + 7 + 5)]
    fn batches_do_not_mix_difficulties(
        #[case] tools: usize,
        #[case] overlaps: usize,
        #[case] clusters: usize,
        #[case] cases: usize,
        #[case] batches: usize,
    ) {
        let plan = plan(tools, overlaps, clusters, 0);
        assert_eq!((plan.cases(), plan.batches()), (cases, batches));
    }

    #[test]
    fn displays_the_prescribed_form() {
        insta::assert_snapshot!(plan(3, 1, 1, 0).to_string(), @r"
        Eval batch plan for get_weather:
          Registry: 3 tools | Overlaps: 1 | Clusters: 1
          Straightforward: 13 cases (3 batches)
          Ambiguous:       28 cases (6 batches)
          Edge:            6 cases (2 batches)
          Total:           47 cases (11 batches)
        ");
    }

    #[test]
    fn existing_cases_are_not_drafted_again() {
        insta::assert_snapshot!(plan(3, 0, 0, 6).to_string(), @r"
        Eval batch plan for get_weather:
          Registry: 3 tools | Overlaps: 0 | Clusters: 0
          Straightforward: 7 cases (2 batches), 6 of 13 exist
          Ambiguous:       19 cases (4 batches), 6 of 25 exist
          Edge:            0 cases (0 batches), 6 of 6 exist
          Total:           26 cases (6 batches)
        ");
    }

    #[test]
    fn one_tool_has_no_straightforward_cases() {
        insta::assert_snapshot!(plan(1, 0, 0, 0).to_string(), @r"
        Eval batch plan for get_weather:
          Registry: 1 tool | Overlaps: 0 | Clusters: 0
          Straightforward: 0 cases (0 batches), since these cases need several tools
          Ambiguous:       25 cases (5 batches)
          Edge:            5 cases (1 batch)
          Total:           30 cases (6 batches)
        ");
    }
}
