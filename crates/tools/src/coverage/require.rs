//! Coverage requirements and their results.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Amount, Coverage, ToolCoverage};

/// A coverage requirement.
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
    /// Every declared cluster has a case that accepts all of its tools.
    Clusters,
    /// Every eval file is known to match its current tool.
    Fresh,
    /// Every tool that an eval file is for or names is in the registry.
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

    /// Whether it concerns the overlap map rather than the registry's tools.
    pub fn concerns_overlap_map(self) -> bool {
        matches!(self, Requirement::Overlaps | Requirement::Clusters)
    }
}

/// Result of a requirement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequirementResult {
    pub requirement: Requirement,
    /// Null if undecidable, because a part of the registry could not be read or lacks the information.
    pub held: Option<bool>,
    /// The missing items, one line each.
    pub missing: Vec<String>,
}

impl Coverage {
    /// Checks requirements, each once, in the order of [`Requirement::ALL`].
    pub fn require(&mut self, required: &[Requirement]) {
        let selected = Requirement::ALL.into_iter().filter(|requirement| required.contains(requirement));
        self.requirements = selected.map(|requirement| self.check(requirement)).collect();
    }

    fn check(&self, requirement: Requirement) -> RequirementResult {
        let missing = self.missing(requirement);
        // A gap cannot provide what is missing, except for unknown names.
        let is_certain = match requirement {
            _ if requirement.concerns_overlap_map() => true,
            _ if self.registry.is_broken() => false,
            Requirement::Known => self.registry.complete || missing.is_empty(),
            Requirement::Fresh if !missing.is_empty() => self.is_certainly_not_fresh(),
            _ => self.registry.complete || !missing.is_empty(),
        };
        RequirementResult { requirement, held: is_certain.then_some(missing.is_empty()), missing }
    }

    /// Whether a file is stale, or lacks metadata that its author can add.
    fn is_certainly_not_fresh(&self) -> bool {
        let is_fixable = self.doubtful_files.iter().any(|file| file.doubt.is_fixable_by_author());
        self.totals.files == 0 || !self.stale_files.is_empty() || is_fixable
    }

    /// Lists what is missing for a requirement, one line each.
    pub fn missing(&self, requirement: Requirement) -> Vec<String> {
        match requirement {
            Requirement::Tested => {
                self.missing_per_tool(|tool| tool.never_tested.then(|| format!("{} is never tested", tool.name)))
            }
            Requirement::Golden => {
                self.missing_per_tool(|tool| describe_missing_cases(tool, &[("golden", tool.golden)]))
            }
            Requirement::Labeled => self.missing_per_tool(|tool| {
                let difficulties =
                    [("straightforward", tool.straightforward), ("ambiguous", tool.ambiguous), ("edge", tool.edge)];
                describe_missing_cases(tool, &difficulties)
            }),
            Requirement::Overlaps => {
                let uncovered = self.overlaps.iter().filter(|overlap| overlap.covered_by.is_empty());
                uncovered.map(|overlap| format!("{} has no ambiguous case", overlap.tools.join(" / "))).collect()
            }
            Requirement::Clusters => {
                let uncovered = self.clusters.iter().filter(|cluster| cluster.covered_by.is_empty());
                let tools = uncovered.map(|cluster| cluster.tools.iter().map(String::as_str).collect::<Vec<_>>());
                tools.map(|tools| format!("no case accepts all of {}", tools.join(", "))).collect()
            }
            Requirement::Fresh | Requirement::Known if self.totals.files == 0 => {
                vec!["no eval files found".to_owned()]
            }
            Requirement::Fresh => {
                let stale = self.stale_files.iter().map(|file| format!("{}: {}", file.file, file.reasons.join("; ")));
                let doubtful = self.doubtful_files.iter();
                let doubtful =
                    doubtful.map(|file| format!("{}: unknown: {}", file.file, file.doubt.sentence(&file.tool)));
                stale.chain(doubtful).collect()
            }
            Requirement::Known => {
                let files = self.unknown_files.iter().map(|file| format!("{} is about {}", file.file, file.tool));
                let tools = self.unknown_tools.iter();
                files.chain(tools.map(|case| format!("{}: {} names {}", case.file, case.case_id, case.tool))).collect()
            }
        }
    }

    fn missing_per_tool(&self, missing: impl Fn(&ToolCoverage) -> Option<String>) -> Vec<String> {
        self.tools.iter().filter_map(missing).collect()
    }
}

/// Describes which kinds of cases a tool has too few of.
fn describe_missing_cases(tool: &ToolCoverage, amounts: &[(&str, Amount)]) -> Option<String> {
    let few = amounts.iter().filter(|(_, amount)| !amount.is_enough());
    let few: Vec<String> = few.map(|(kind, Amount { count, wanted })| format!("{count}/{wanted} {kind}")).collect();
    (!few.is_empty()).then(|| format!("{} has {}", tool.name, few.join(", ")))
}
