//! How many labeled cases a tool should have, and in how many batches a person sees them.

use std::fmt::{self, Write as _};

use karat_core::case::{Case, Difficulty};
use karat_tools::coverage::Wanted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Brief;

/// How many labeled cases a person sees at a time.
pub const BATCH_SIZE: usize = 5;

/// The labeled cases of a tool, by the formula.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Plan {
    pub tool: String,
    /// T: the tools of the registry.
    pub tools: usize,
    /// O: the tool's distinct neighbours.
    pub overlaps: usize,
    /// C: the distinct clusters that hold the tool.
    pub clusters: usize,
    /// In the order in which they are drafted.
    pub tiers: Vec<TierPlan>,
}

/// The cases of one difficulty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TierPlan {
    pub difficulty: Difficulty,
    /// What the formula says, or what was proposed after failures.
    pub wanted: usize,
    /// What the project has already.
    pub existing: usize,
}

impl Plan {
    /// Returns the formula's numbers for a tool.
    pub fn of(brief: &Brief) -> Self {
        let (tools, overlaps, clusters) = (brief.registry.tools().len(), brief.overlaps.len(), brief.clusters.len());
        let wanted = Wanted::of(tools, overlaps, clusters);
        let tier = |difficulty, wanted| {
            let is_of = |case: &&Case| case.difficulty == Some(difficulty);
            TierPlan { difficulty, wanted, existing: brief.labeled.iter().filter(is_of).count() }
        };
        let tiers = vec![
            tier(Difficulty::Straightforward, wanted.straightforward),
            tier(Difficulty::Ambiguous, wanted.ambiguous),
            tier(Difficulty::Edge, wanted.edge),
        ];
        Self { tool: brief.tool.name.clone(), tools, overlaps, clusters, tiers }
    }

    /// Returns how many cases are to be drafted.
    pub fn cases(&self) -> usize {
        self.tiers.iter().map(TierPlan::cases).sum()
    }

    /// Returns in how many batches a person sees them: a batch holds cases of one difficulty.
    pub fn batches(&self) -> usize {
        self.tiers.iter().map(TierPlan::batches).sum()
    }
}

impl TierPlan {
    /// Returns how many cases are to be drafted.
    pub fn cases(&self) -> usize {
        self.wanted.saturating_sub(self.existing)
    }

    pub fn batches(&self) -> usize {
        self.cases().div_ceil(BATCH_SIZE)
    }
}

/// The contract's form; what is there already is said behind it.
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
                let _ = write!(line, ", {} of {} are there", tier.existing, tier.wanted);
            } else if tier.difficulty == Difficulty::Straightforward && self.tools <= 1 {
                line.push_str(", since such a case takes several tools");
            }
            writeln!(out, "{line}")?;
        }
        writeln!(out, "  {:<16} {}", "Total:", amount(self.cases(), self.batches()))
    }
}

fn amount(cases: usize, batches: usize) -> String {
    format!("{} ({})", counted(cases, "case", "cases"), counted(batches, "batch", "batches"))
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn plan(tools: usize, overlaps: usize, clusters: usize, existing: usize) -> Plan {
        let wanted = Wanted::of(tools, overlaps, clusters);
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
    fn batches_are_not_mixed(
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
    fn a_person_sees_the_contracts_form() {
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
    fn what_is_there_is_not_drafted_again() {
        insta::assert_snapshot!(plan(3, 0, 0, 6).to_string(), @r"
        Eval batch plan for get_weather:
          Registry: 3 tools | Overlaps: 0 | Clusters: 0
          Straightforward: 7 cases (2 batches), 6 of 13 are there
          Ambiguous:       19 cases (4 batches), 6 of 25 are there
          Edge:            0 cases (0 batches), 6 of 6 are there
          Total:           26 cases (6 batches)
        ");
    }

    #[test]
    fn one_tool_has_no_companions() {
        insta::assert_snapshot!(plan(1, 0, 0, 0).to_string(), @r"
        Eval batch plan for get_weather:
          Registry: 1 tool | Overlaps: 0 | Clusters: 0
          Straightforward: 0 cases (0 batches), since such a case takes several tools
          Ambiguous:       25 cases (5 batches)
          Edge:            5 cases (1 batch)
          Total:           30 cases (6 batches)
        ");
    }
}
