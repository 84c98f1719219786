//! What is tested of an agent's tools, and what is not.

mod freshness;
mod matrix;
mod measure;
mod require;
mod wanted;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use karat_core::registry::{GapKind, ToolPlace};

pub use freshness::{Doubt, DoubtfulFile};
pub use matrix::{ConfusedPair, ConfusionMatrix, RightCalls};
pub use measure::Suite;
pub use require::{Requirement, RequirementResult};
pub use wanted::{LEAST_GOLDEN, MOST_GOLDEN, Wanted};

/// What the cases of a project test of the registry's tools.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat coverage")]
pub struct Coverage {
    pub registry: RegistryState,
    /// The first twelve hex digits of the overlap map's SHA-256; null where there is no map.
    pub overlap_map_version: Option<String>,
    pub totals: Totals,
    /// In the registry's order.
    pub tools: Vec<ToolCoverage>,
    /// Every declared overlap once, whichever side declares it.
    pub overlaps: Vec<OverlapCoverage>,
    /// Every declared cluster once.
    pub clusters: Vec<ClusterCoverage>,
    pub stale_files: Vec<StaleFile>,
    /// Eval files of which nobody knows whether they are stale.
    pub doubtful_files: Vec<DoubtfulFile>,
    /// Tools that cases name and the registry lacks.
    pub unknown_tools: Vec<UnknownTool>,
    /// Eval files about tools that the registry lacks.
    pub unknown_files: Vec<UnknownFile>,
    /// What stored results say of the choice of tools; null where no result counts.
    pub confusion: Option<ConfusionMatrix>,
    /// What was required, and whether it holds.
    pub requirements: Vec<RequirementResult>,
}

/// The registry that the cases were compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryState {
    /// How many tools are known: the formula's T.
    pub tools: usize,
    /// Nothing of it is unread. Where this is false there may be more tools, and the wanted numbers are lower bounds.
    pub complete: bool,
    /// What could not be read.
    pub gaps: Vec<RegistryGap>,
}

impl RegistryState {
    /// Tells whether somebody has to mend the registry before anything can be said for sure.
    pub fn is_broken(&self) -> bool {
        self.gaps.iter().any(|gap| gap.kind == GapKind::Broken)
    }
}

/// A part of the registry that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryGap {
    pub kind: GapKind,
    pub place: ToolPlace,
    pub what: String,
}

/// The numbers of the whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    pub files: usize,
    pub cases: usize,
    /// Cases by the tier of their file.
    pub golden_cases: usize,
    pub labeled_cases: usize,
    pub regression_cases: usize,
    pub rubric_cases: usize,
    /// Cases of files without a known tier.
    pub other_cases: usize,
    /// Tools that any case is for or expects.
    pub tested: Part,
    /// Tools with enough golden cases.
    pub golden: Part,
    /// Tools with enough labeled cases of each difficulty.
    pub labeled: Part,
    /// Declared overlaps with an ambiguous case.
    pub overlaps: Part,
    /// Declared clusters with a case that takes all of their tools.
    pub clusters: Part,
    /// Eval files that are known to fit their tool as it is now; regression files are not asked.
    pub fresh: Part,
    /// Eval files all of whose tools are in the registry.
    pub known: Part,
    /// Tools that miss nothing.
    pub complete: Part,
}

/// How many of how many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Part {
    pub count: usize,
    pub of: usize,
}

impl Part {
    pub fn is_whole(self) -> bool {
        self.count >= self.of
    }

    /// Counts what is there.
    pub(crate) fn of(are_there: impl IntoIterator<Item = bool>) -> Self {
        let mut part = Self::default();
        for is_there in are_there {
            part.add(is_there);
        }
        part
    }

    /// Counts one, and whether it is there.
    pub(crate) fn add(&mut self, is_there: bool) {
        self.of += 1;
        self.count += usize::from(is_there);
    }
}

/// How many cases there are, and how many there should be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Amount {
    pub count: usize,
    pub wanted: usize,
}

impl Amount {
    pub fn is_enough(self) -> bool {
        self.count >= self.wanted
    }

    /// Returns how many are missing.
    pub fn missing(self) -> usize {
        self.wanted.saturating_sub(self.count)
    }
}

/// What is tested of one tool.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCoverage {
    pub name: String,
    /// No case of any file is for it or expects it.
    pub never_tested: bool,
    /// It misses nothing and none of its files is stale.
    pub complete: bool,
    /// How much of what is wanted is there, from 0 to 1.
    pub share: f64,
    /// Five to ten are wanted.
    pub golden: Amount,
    /// 10 + T are wanted, T being the number of tools; none where there is one tool only.
    pub straightforward: Amount,
    /// 25 + 2·O + C are wanted, O being the number of overlaps and C of clusters.
    pub ambiguous: Amount,
    /// 5 + ⌊T/3⌋ are wanted.
    pub edge: Amount,
    /// Labeled cases that do not say how hard they are, which count for nothing above.
    pub without_difficulty: usize,
    /// How the labeled cases are spread over the difficulties; null where there are none.
    pub spread: Option<DifficultySpread>,
    pub regression: usize,
    pub rubric: usize,
    /// Cases of files without a known tier.
    pub other: usize,
    /// Cases of any file that expect a call of it.
    pub expected_by: usize,
    pub overlaps: Part,
    /// Its neighbours without an ambiguous case.
    pub uncovered_overlaps: Vec<String>,
    pub clusters: Part,
    /// Its clusters without a case that takes all of their tools, by their place in the list of clusters.
    pub uncovered_clusters: Vec<usize>,
    /// Its files that are stale.
    pub stale_files: Vec<String>,
}

impl ToolCoverage {
    /// Tells whether there are enough labeled cases of each difficulty.
    pub fn has_labeled(&self) -> bool {
        [self.straightforward, self.ambiguous, self.edge].into_iter().all(Amount::is_enough)
    }
}

/// Shares of a tool's labeled cases, which add up to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DifficultySpread {
    pub straightforward: f64,
    pub ambiguous: f64,
    pub edge: f64,
}

/// A case, by its file and id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaseReference {
    pub file: String,
    pub case_id: String,
}

/// A declared overlap, and the ambiguous cases whose acceptable sets name both tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OverlapCoverage {
    /// The smaller name first.
    pub tools: [String; 2],
    pub covered_by: Vec<CaseReference>,
}

/// A declared cluster, and the labeled cases one of whose sets holds all its tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterCoverage {
    pub tools: BTreeSet<String>,
    pub covered_by: Vec<CaseReference>,
}

/// An eval file that was written for another state of its tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StaleFile {
    pub file: String,
    pub tool: String,
    pub reasons: Vec<String>,
}

/// A tool that a case names and the registry lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnknownTool {
    pub file: String,
    pub case_id: String,
    pub tool: String,
    /// The known tool that is called most like it.
    pub nearest: Option<String>,
}

/// An eval file about a tool that the registry lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnknownFile {
    pub file: String,
    pub tool: String,
    /// The known tool that is called most like it.
    pub nearest: Option<String>,
}
