//! Reports about stored evals.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::execution::Execution;
use crate::tally::{FunctionSummary, Tally};
use crate::version::{EvalSummary, EvalVersion, VersionCounts};
use karat_core::line_diff::{LineChange, LineDiff};

/// Output of `karat eval add --format json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(title = "karat eval add")]
pub struct EvalsAdded {
    /// In the order of the arguments; files of a folder by name.
    pub evals: Vec<EvalAdded>,
}

/// An eval function passed to `karat eval add`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EvalAdded {
    /// The function's name.
    pub eval_id: String,
    /// The newest version, new or not.
    pub version: u64,
    /// False if the newest version already has the same code.
    pub added: bool,
    pub file: String,
    pub code_hash: String,
    /// Hash of the Python guest that validated it.
    pub guest_hash: String,
}

/// Output of `karat eval list --format json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(title = "karat eval list")]
pub struct EvalList {
    /// By name.
    pub evals: Vec<EvalSummary>,
}

/// Output of `karat eval show --format json`: one version of an eval.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "karat eval show")]
pub struct EvalDetails {
    #[serde(flatten)]
    pub version: EvalVersion,
    pub newest_version: u64,
    /// Verdict counts of every version, oldest first.
    pub verdicts: Vec<VersionCounts>,
}

impl EvalDetails {
    /// Creates the report of one version; `counts` may leave out versions without executions.
    pub fn new(version: EvalVersion, versions: &[EvalVersion], counts: &[VersionCounts]) -> Self {
        let newest_version = versions.last().map_or(version.version, |newest| newest.version);
        let verdicts = versions.iter().map(|version| counts_of(version.version, counts)).collect();
        Self { version, newest_version, verdicts }
    }
}

fn counts_of(version: u64, counts: &[VersionCounts]) -> VersionCounts {
    let version_counts = counts.iter().find(|counts| counts.version == version);
    version_counts.copied().unwrap_or(VersionCounts { version, ..VersionCounts::default() })
}

/// Output of `karat eval history --format json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(title = "karat eval history")]
pub struct EvalHistory {
    /// The function's name.
    pub eval_id: String,
    /// Newest first.
    pub versions: Vec<VersionHistory>,
}

/// One version in an eval's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VersionHistory {
    #[serde(flatten)]
    pub counts: VersionCounts,
    /// ISO 8601.
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    pub note: Option<String>,
    pub code_hash: String,
    /// Hash of the Python guest that validated it.
    pub guest_hash: String,
    /// Lines of code added and removed since the previous version; for the first version, all lines are added.
    pub lines: LineChange,
}

impl EvalHistory {
    /// Creates the history of versions, given oldest first.
    pub fn new(eval_id: &str, versions: &[EvalVersion], counts: &[VersionCounts]) -> Self {
        let before = std::iter::once("").chain(versions.iter().map(|version| version.code.as_str()));
        let past = |(version, before): (&EvalVersion, &str)| VersionHistory {
            counts: counts_of(version.version, counts),
            created_at: version.created_at,
            note: version.note.clone(),
            code_hash: version.code_hash.clone(),
            guest_hash: version.guest_hash.clone(),
            lines: LineDiff::between(before, &version.code).change(),
        };
        let mut past: Vec<VersionHistory> = versions.iter().zip(before).map(past).collect();
        past.reverse();
        Self { eval_id: eval_id.to_owned(), versions: past }
    }
}

/// Output of `karat eval run --stored --format json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "karat eval run --stored")]
pub struct StoredEvalRun {
    /// New executions: by eval in the order given, then by trace id.
    pub executions: Vec<Execution>,
    pub summary: StoredEvalRunSummary,
}

/// Totals of a run of evals over stored traces.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StoredEvalRunSummary {
    /// Number of traces selected.
    pub traces: u64,
    /// Number of new judgements, over all evals.
    pub judged: u64,
    /// Number of judgements already stored, which were not repeated.
    pub judged_before: u64,
    /// Of the new judgements.
    pub passed: u64,
    pub failed: u64,
    pub not_applicable: u64,
    pub errored: u64,
    /// Whether the run was interrupted before everything was judged.
    pub interrupted: bool,
    pub elapsed_ms: u64,
    /// In the order given.
    pub evals: Vec<StoredEvalSummary>,
}

/// Verdict counts of one eval.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StoredEvalSummary {
    pub eval_version: u64,
    pub judged_before: u64,
    #[serde(flatten)]
    pub now: FunctionSummary,
}

impl StoredEvalRunSummary {
    pub fn new(traces: u64) -> Self {
        Self {
            traces,
            judged: 0,
            judged_before: 0,
            passed: 0,
            failed: 0,
            not_applicable: 0,
            errored: 0,
            interrupted: false,
            elapsed_ms: 0,
            evals: Vec::new(),
        }
    }

    /// Adds the results of one eval; the tally is of this eval alone.
    pub fn add(&mut self, version: u64, judged_before: u64, tally: &Tally) {
        let (passed, failed, errored) = tally.counts();
        self.judged += tally.traces();
        self.judged_before += judged_before;
        self.passed += passed;
        self.failed += failed;
        self.not_applicable += tally.not_applicable();
        self.errored += errored;
        let functions = tally.summary(0, false).functions.into_iter();
        self.evals.extend(functions.map(|now| StoredEvalSummary { eval_version: version, judged_before, now }));
    }
}

#[cfg(test)]
mod tests {
    use karat_core::judgement::EvalOptions;

    use super::*;

    fn version(number: u64, code: &str) -> EvalVersion {
        EvalVersion {
            eval_id: "eval_x".to_owned(),
            version: number,
            code: code.to_owned(),
            options: EvalOptions::default(),
            code_hash: "c".to_owned(),
            guest_hash: "g".to_owned(),
            note: None,
            created_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn history_lists_newest_first_with_changed_lines() {
        let versions = [version(1, "a\nb\n"), version(2, "a\nc\nd\n")];
        let counts = [VersionCounts { version: 2, passed: 3, failed: 1, ..VersionCounts::default() }];
        let history = EvalHistory::new("eval_x", &versions, &counts);
        let [newest, first] = &history.versions[..] else { panic!("two versions") };
        assert_eq!((newest.counts.version, newest.counts.passed), (2, 3));
        assert_eq!(newest.lines, LineChange { added: 2, removed: 1 });
        assert_eq!((first.counts.version, first.counts.passed, first.lines.added), (1, 0, 2));
        let details = EvalDetails::new(versions[0].clone(), &versions, &counts);
        assert_eq!((details.newest_version, details.verdicts.len(), details.verdicts[0].version), (2, 2, 1));
    }
}
