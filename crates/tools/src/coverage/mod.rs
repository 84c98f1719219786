//! Coverage: which tools, overlaps and difficulties the eval files exercise.

mod freshness;
mod matrix;
mod measure;
mod require;
mod wanted;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use karat_cases::registry::{GapKind, ToolLocation};

pub use freshness::{Doubt, DoubtfulFile};
pub use matrix::{ConfusedPair, ConfusionMatrix, CorrectCalls};
pub use measure::Suite;
pub use require::{Requirement, RequirementResult};
pub use wanted::{MAX_GOLDEN_CASES, MIN_GOLDEN_CASES, WantedCases};

/// Coverage of the registry's tools by a project's cases.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat coverage")]
pub struct Coverage {
    pub registry: RegistryState,
    /// First twelve hex digits of the overlap map's SHA-256; null without a map.
    pub overlap_map_version: Option<String>,
    pub totals: Totals,
    /// In registry order.
    pub tools: Vec<ToolCoverage>,
    /// Every declared overlap once.
    pub overlaps: Vec<OverlapCoverage>,
    /// Every declared cluster once.
    pub clusters: Vec<ClusterCoverage>,
    pub stale_files: Vec<StaleFile>,
    /// Eval files whose staleness is unknown.
    pub doubtful_files: Vec<DoubtfulFile>,
    /// Tools that cases name but the registry does not have.
    pub unknown_tools: Vec<UnknownTool>,
    /// Eval files for tools that the registry does not have.
    pub unknown_files: Vec<UnknownFile>,
    /// Tool confusion in stored results; null without countable results.
    pub confusion: Option<ConfusionMatrix>,
    /// Results of the requirements.
    pub requirements: Vec<RequirementResult>,
}

/// The registry that the cases were compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryState {
    /// Number of known tools: T in the formula.
    pub tools: usize,
    /// Whether all of it could be read. If not, there may be more tools, and the wanted numbers are lower bounds.
    pub complete: bool,
    /// Parts that could not be read.
    pub gaps: Vec<RegistryGap>,
}

impl RegistryState {
    /// Whether the registry must be fixed before coverage can be determined.
    pub fn is_broken(&self) -> bool {
        self.gaps.iter().any(|gap| gap.kind == GapKind::Broken)
    }
}

/// A part of the registry that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryGap {
    pub kind: GapKind,
    #[serde(rename = "place")]
    pub location: ToolLocation,
    #[serde(rename = "what")]
    pub message: String,
}

/// Overall numbers.
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
    /// Cases of security files and of files without a known tier.
    pub other_cases: usize,
    /// Tools that any case is for or expects.
    pub tested: Ratio,
    /// Tools with enough golden cases.
    pub golden: Ratio,
    /// Tools with enough labeled cases of each difficulty.
    pub labeled: Ratio,
    /// Declared overlaps with an ambiguous case.
    pub overlaps: Ratio,
    /// Declared clusters with a case that accepts all of their tools.
    pub clusters: Ratio,
    /// Eval files known to match their current tool; regression files are not checked.
    pub fresh: Ratio,
    /// Eval files whose tools are all in the registry.
    pub known: Ratio,
    /// Tools with complete coverage.
    pub complete: Ratio,
}

/// A count out of a total.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Ratio {
    pub count: usize,
    pub of: usize,
}

impl Ratio {
    pub fn is_complete(self) -> bool {
        self.count >= self.of
    }

    /// Counts the true items.
    pub(crate) fn of(items: impl IntoIterator<Item = bool>) -> Self {
        let mut part = Self::default();
        for item in items {
            part.add(item);
        }
        part
    }

    /// Adds one item to the total, and to the count if it holds.
    pub(crate) fn add(&mut self, holds: bool) {
        self.of += 1;
        self.count += usize::from(holds);
    }
}

/// Number of cases and the wanted number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Amount {
    pub count: usize,
    pub wanted: usize,
}

impl Amount {
    pub fn is_enough(self) -> bool {
        self.count >= self.wanted
    }

    /// Returns the number of missing cases.
    pub fn missing(self) -> usize {
        self.wanted.saturating_sub(self.count)
    }
}

/// Coverage of one tool.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCoverage {
    pub name: String,
    /// Whether no case of any file is for it or expects it.
    pub never_tested: bool,
    /// Whether nothing is missing and none of its files is stale.
    pub complete: bool,
    /// Share of the wanted cases, from 0 to 1.
    pub share: f64,
    /// Wanted: five to ten.
    pub golden: Amount,
    /// Wanted: 10 + T, where T is the number of tools; none if there is only one tool.
    pub straightforward: Amount,
    /// Wanted: 25 + 2·O + C, where O is the number of overlaps and C of clusters.
    pub ambiguous: Amount,
    /// Wanted: 5 + ⌊T/3⌋.
    pub edge: Amount,
    /// Labeled cases without a difficulty, which are not counted above.
    pub without_difficulty: usize,
    /// Distribution of the labeled cases over the difficulties; null if there are none.
    pub spread: Option<DifficultySpread>,
    pub regression: usize,
    pub rubric: usize,
    /// Cases of files without a known tier.
    pub other: usize,
    /// Cases of any file that expect a call of it.
    pub expected_by: usize,
    pub overlaps: Ratio,
    /// Neighbours without an ambiguous case.
    pub uncovered_overlaps: Vec<String>,
    pub clusters: Ratio,
    /// Clusters without a case that accepts all of their tools, as indices into the list of clusters.
    pub uncovered_clusters: Vec<usize>,
    /// Stale files of the tool.
    pub stale_files: Vec<String>,
}

impl ToolCoverage {
    /// Whether there are enough labeled cases of each difficulty.
    pub fn has_labeled(&self) -> bool {
        [self.straightforward, self.ambiguous, self.edge].into_iter().all(Amount::is_enough)
    }
}

/// Shares of a tool's labeled cases, adding up to 1.
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

/// A declared overlap and its covering cases: ambiguous cases whose acceptable sets contain both tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OverlapCoverage {
    /// Smaller name first.
    pub tools: [String; 2],
    pub covered_by: Vec<CaseReference>,
}

/// A declared cluster and its covering cases: labeled cases with a set that contains all its tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterCoverage {
    pub tools: BTreeSet<String>,
    pub covered_by: Vec<CaseReference>,
}

/// An eval file written for another state of its tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StaleFile {
    pub file: String,
    pub tool: String,
    pub reasons: Vec<String>,
}

/// A tool that a case names but the registry does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnknownTool {
    pub file: String,
    pub case_id: String,
    pub tool: String,
    /// The known tool with the most similar name.
    pub nearest: Option<String>,
}

/// An eval file for a tool that the registry does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnknownFile {
    pub file: String,
    pub tool: String,
    /// The known tool with the most similar name.
    pub nearest: Option<String>,
}
