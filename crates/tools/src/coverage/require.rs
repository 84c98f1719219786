//! What somebody requires of the coverage, and whether it holds.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Amount, Coverage, ToolCoverage};

/// Something that can be required.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Requirement {
    /// Every tool has a case.
    Tested,
    /// Every tool has enough golden cases.
    Golden,
    /// Every tool has enough labeled cases of each difficulty.
    Labeled,
    /// Every declared overlap has an ambiguous case.
    Overlaps,
    /// Every declared cluster has a case that takes all of its tools.
    Clusters,
    /// Every eval file is known to fit its tool as it is now.
    Fresh,
    /// Every tool that an eval file is about or names is in the registry.
    Known,
}

impl Requirement {
    pub const ALL: [Requirement; 7] = [
        Requirement::Tested,
        Requirement::Golden,
        Requirement::Labeled,
        Requirement::Overlaps,
        Requirement::Clusters,
        Requirement::Fresh,
        Requirement::Known,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Requirement::Tested => "tested",
            Requirement::Golden => "golden",
            Requirement::Labeled => "labeled",
            Requirement::Overlaps => "overlaps",
            Requirement::Clusters => "clusters",
            Requirement::Fresh => "fresh",
            Requirement::Known => "known",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|requirement| requirement.name() == name)
    }

    /// Tells whether it is about what the overlap map declares, and not about the registry's tools.
    pub fn is_declared(self) -> bool {
        matches!(self, Requirement::Overlaps | Requirement::Clusters)
    }
}

/// Whether something that is required holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequirementResult {
    pub requirement: Requirement,
    /// Null where nobody can tell, since a part of the registry could not be read or does not say it.
    pub held: Option<bool>,
    /// What is missing, a line for each.
    pub missing: Vec<String>,
}

impl Coverage {
    /// Judges what is required, each once, in the order of [`Requirement::ALL`].
    pub fn require(&mut self, required: &[Requirement]) {
        let wanted = Requirement::ALL.into_iter().filter(|requirement| required.contains(requirement));
        self.requirements = wanted.map(|requirement| self.judge(requirement)).collect();
    }

    fn judge(&self, requirement: Requirement) -> RequirementResult {
        let missing = self.missing(requirement);
        // What is missing for certain stays missing whatever is found in a gap, but for names that may be there.
        let is_certain = match requirement {
            _ if requirement.is_declared() => true,
            _ if self.registry.is_broken() => false,
            Requirement::Known => self.registry.complete || missing.is_empty(),
            Requirement::Fresh if !missing.is_empty() => self.is_certainly_not_fresh(),
            _ => self.registry.complete || !missing.is_empty(),
        };
        RequirementResult { requirement, held: is_certain.then_some(missing.is_empty()), missing }
    }

    /// Tells whether some file is stale, or does not say what it was made for, which its author can mend.
    fn is_certainly_not_fresh(&self) -> bool {
        let are_unsaid = self.doubtful_files.iter().any(|file| file.doubt.is_unsaid());
        self.totals.files == 0 || !self.stale_files.is_empty() || are_unsaid
    }

    /// Lists what is missing for something to hold, a line for each.
    pub fn missing(&self, requirement: Requirement) -> Vec<String> {
        match requirement {
            Requirement::Tested => {
                self.of_tools(|tool| tool.never_tested.then(|| format!("{} is never tested", tool.name)))
            }
            Requirement::Golden => self.of_tools(|tool| lacking(tool, &[("golden", tool.golden)])),
            Requirement::Labeled => self.of_tools(|tool| {
                let difficulties =
                    [("straightforward", tool.straightforward), ("ambiguous", tool.ambiguous), ("edge", tool.edge)];
                lacking(tool, &difficulties)
            }),
            Requirement::Overlaps => {
                let uncovered = self.overlaps.iter().filter(|overlap| overlap.covered_by.is_empty());
                uncovered.map(|overlap| format!("{} has no ambiguous case", overlap.tools.join(" / "))).collect()
            }
            Requirement::Clusters => {
                let uncovered = self.clusters.iter().filter(|cluster| cluster.covered_by.is_empty());
                let tools = uncovered.map(|cluster| cluster.tools.iter().map(String::as_str).collect::<Vec<_>>());
                tools.map(|tools| format!("no case takes all of {}", tools.join(", "))).collect()
            }
            Requirement::Fresh | Requirement::Known if self.totals.files == 0 => {
                vec!["there are no eval files".to_owned()]
            }
            Requirement::Fresh => {
                let stale = self.stale_files.iter().map(|one| format!("{}: {}", one.file, one.reasons.join("; ")));
                let doubtful = self.doubtful_files.iter();
                let doubtful =
                    doubtful.map(|one| format!("{}: not known: {}", one.file, one.doubt.sentence(&one.tool)));
                stale.chain(doubtful).collect()
            }
            Requirement::Known => {
                let files = self.unknown_files.iter().map(|file| format!("{} is about {}", file.file, file.tool));
                let tools = self.unknown_tools.iter();
                files.chain(tools.map(|one| format!("{}: {} names {}", one.file, one.case_id, one.tool))).collect()
            }
        }
    }

    fn of_tools(&self, missing: impl Fn(&ToolCoverage) -> Option<String>) -> Vec<String> {
        self.tools.iter().filter_map(missing).collect()
    }
}

/// Says which kinds of cases a tool has too few of.
fn lacking(tool: &ToolCoverage, amounts: &[(&str, Amount)]) -> Option<String> {
    let few = amounts.iter().filter(|(_, amount)| !amount.is_enough());
    let few: Vec<String> = few.map(|(kind, Amount { count, wanted })| format!("{count}/{wanted} {kind}")).collect();
    (!few.is_empty()).then(|| format!("{} has {}", tool.name, few.join(", ")))
}
