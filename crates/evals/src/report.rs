//! What is said of evals that are kept, for programs and for people.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::execution::Execution;
use crate::tally::{FunctionSummary, Tally};
use crate::version::{EvalSummary, EvalVersion, VersionCounts};
use karat_core::line_diff::{LineChange, LineDiff};

/// What `karat eval add --format json` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(title = "karat eval add")]
pub struct EvalsAdded {
    /// In the order of the arguments, those of a folder by name.
    pub evals: Vec<EvalAdded>,
}

/// An eval function that was to be added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EvalAdded {
    /// The function's name.
    pub eval_id: String,
    /// The newest version, added now or not.
    pub version: u64,
    /// False where the newest version has the same code already.
    pub added: bool,
    pub file: String,
    pub code_hash: String,
    /// Of the Python that validated it.
    pub guest_hash: String,
}

/// What `karat eval list --format json` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(title = "karat eval list")]
pub struct EvalList {
    /// By name.
    pub evals: Vec<EvalSummary>,
}

/// What `karat eval show --format json` prints: one version of an eval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(title = "karat eval show")]
pub struct EvalShown {
    #[serde(flatten)]
    pub shown: EvalVersion,
    pub newest_version: u64,
    /// What every version said, the oldest first.
    pub verdicts: Vec<VersionCounts>,
}

impl EvalShown {
    /// Shows one of an eval's versions; `counts` may leave out those that said nothing.
    pub fn new(shown: EvalVersion, versions: &[EvalVersion], counts: &[VersionCounts]) -> Self {
        let newest_version = versions.last().map_or(shown.version, |newest| newest.version);
        let verdicts = versions.iter().map(|version| counts_of(version.version, counts)).collect();
        Self { shown, newest_version, verdicts }
    }
}

fn counts_of(version: u64, counts: &[VersionCounts]) -> VersionCounts {
    let found = counts.iter().find(|counts| counts.version == version);
    found.copied().unwrap_or(VersionCounts { version, ..VersionCounts::default() })
}

/// What `karat eval history --format json` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(title = "karat eval history")]
pub struct EvalHistory {
    /// The function's name.
    pub eval_id: String,
    /// The newest first.
    pub versions: Vec<PastVersion>,
}

/// One version in an eval's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PastVersion {
    #[serde(flatten)]
    pub counts: VersionCounts,
    /// ISO 8601.
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    pub note: Option<String>,
    pub code_hash: String,
    /// Of the Python that validated it.
    pub guest_hash: String,
    /// The lines of code that are new since the version before, and that are gone; of the first, all are new.
    pub lines: LineChange,
}

impl EvalHistory {
    /// Tells of versions, which are given with the oldest first.
    pub fn new(eval_id: &str, versions: &[EvalVersion], counts: &[VersionCounts]) -> Self {
        let before = std::iter::once("").chain(versions.iter().map(|version| version.code.as_str()));
        let past = |(version, before): (&EvalVersion, &str)| PastVersion {
            counts: counts_of(version.version, counts),
            created_at: version.created_at,
            note: version.note.clone(),
            code_hash: version.code_hash.clone(),
            guest_hash: version.guest_hash.clone(),
            lines: LineDiff::between(before, &version.code).change(),
        };
        let mut past: Vec<PastVersion> = versions.iter().zip(before).map(past).collect();
        past.reverse();
        Self { eval_id: eval_id.to_owned(), versions: past }
    }
}

/// What `karat eval run --stored --format json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "karat eval run --stored")]
pub struct StoredEvalRun {
    /// What was judged now: eval by eval in the order in which they were named, and for each by the traces' ids.
    pub executions: Vec<Execution>,
    pub summary: StoredEvalRunSummary,
}

/// What a run of evals over stored traces came to.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StoredEvalRunSummary {
    /// How many traces were meant.
    pub traces: u64,
    /// How many of their judgements were made now, over all evals.
    pub judged: u64,
    /// How many were in the store already, and were not made again.
    pub judged_before: u64,
    /// Of those that were made now.
    pub passed: u64,
    pub failed: u64,
    pub errored: u64,
    /// True when somebody stopped it before all was judged.
    pub interrupted: bool,
    pub elapsed_ms: u64,
    /// In the order in which they were named.
    pub evals: Vec<StoredEvalSummary>,
}

/// What one eval said now.
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
            errored: 0,
            interrupted: false,
            elapsed_ms: 0,
            evals: Vec::new(),
        }
    }

    /// Adds what one eval said; the tally is of this eval alone.
    pub fn add(&mut self, version: u64, judged_before: u64, tally: &Tally) {
        let (passed, failed, errored) = tally.counts();
        self.judged += tally.traces();
        self.judged_before += judged_before;
        self.passed += passed;
        self.failed += failed;
        self.errored += errored;
        let functions = tally.summary(0, false).functions.into_iter();
        self.evals.extend(functions.map(|now| StoredEvalSummary { eval_version: version, judged_before, now }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: u64, code: &str) -> EvalVersion {
        EvalVersion {
            eval_id: "eval_x".to_owned(),
            version: number,
            code: code.to_owned(),
            code_hash: "c".to_owned(),
            guest_hash: "g".to_owned(),
            note: None,
            created_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_history_begins_with_the_newest_and_says_what_changed() {
        let versions = [version(1, "a\nb\n"), version(2, "a\nc\nd\n")];
        let counts = [VersionCounts { version: 2, passed: 3, failed: 1, errored: 0 }];
        let history = EvalHistory::new("eval_x", &versions, &counts);
        let [newest, first] = &history.versions[..] else { panic!("two versions") };
        assert_eq!((newest.counts.version, newest.counts.passed), (2, 3));
        assert_eq!(newest.lines, LineChange { added: 2, removed: 1 });
        assert_eq!((first.counts.version, first.counts.passed, first.lines.added), (1, 0, 2));
        let shown = EvalShown::new(versions[0].clone(), &versions, &counts);
        assert_eq!((shown.newest_version, shown.verdicts.len(), shown.verdicts[0].version), (2, 2, 1));
    }
}
