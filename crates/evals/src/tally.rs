//! Totals of a run of eval functions.

mod durations;
mod reasons;

use schemars::JsonSchema;
use serde::Serialize;

use karat_core::exit::ExitStatus;
use karat_core::judgement::{Conclusion, ErrorKind, Judgement};

pub use durations::Durations;
pub use reasons::{ReasonGroup, Reasons};

/// Maximum number of reason groups shown, for failures and for each kind of error.
const MAX_SHOWN_GROUPS: usize = 5;

/// Counts verdicts in constant memory.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    traces: u64,
    without_trace: u64,
    functions: Vec<FunctionTally>,
}

#[derive(Debug, Clone)]
struct FunctionTally {
    eval_id: String,
    code_hash: String,
    passed: u64,
    failed: u64,
    not_applicable: u64,
    errored: u64,
    fails: Reasons,
    /// Indexed by [`ErrorKind`].
    errors: [Reasons; ErrorKind::ALL.len()],
    times: Durations,
}

impl Tally {
    /// Creates an empty tally for functions, given as name and code hash.
    pub fn new<'f>(functions: impl IntoIterator<Item = (&'f str, &'f str)>) -> Self {
        let empty_tally = |(eval_id, code_hash): (&str, &str)| FunctionTally {
            eval_id: eval_id.to_owned(),
            code_hash: code_hash.to_owned(),
            passed: 0,
            failed: 0,
            not_applicable: 0,
            errored: 0,
            fails: Reasons::default(),
            errors: Default::default(),
            times: Durations::default(),
        };
        Self { traces: 0, without_trace: 0, functions: functions.into_iter().map(empty_tally).collect() }
    }

    /// Adds the judgements of one trace, in the order of the functions.
    pub fn add(&mut self, judgements: &[Judgement], trace: impl Fn() -> String) {
        self.traces += 1;
        self.without_trace += u64::from(!judgements.is_empty() && judgements.iter().all(has_no_trace));
        for (function, judgement) in self.functions.iter_mut().zip(judgements) {
            function.add(judgement, &trace);
        }
    }

    pub fn traces(&self) -> u64 {
        self.traces
    }

    /// Returns the numbers of passed, failed and errored verdicts.
    pub fn counts(&self) -> (u64, u64, u64) {
        let sum = |count: fn(&FunctionTally) -> u64| self.functions.iter().map(count).sum();
        (sum(|function| function.passed), sum(|function| function.failed), sum(|function| function.errored))
    }

    /// Returns the number of executions in which a function was not applicable.
    pub fn not_applicable(&self) -> u64 {
        self.functions.iter().map(|function| function.not_applicable).sum()
    }

    /// Returns the exit status. Errors rank above failures.
    pub fn status(&self) -> ExitStatus {
        match self.counts() {
            (0, 0, 0) if self.not_applicable() == 0 => ExitStatus::NothingSelected,
            (_, _, 1..) => ExitStatus::Errored,
            (_, 1.., _) => ExitStatus::Failed,
            _ => ExitStatus::Success,
        }
    }

    pub fn summary(&self, elapsed_ms: u64, interrupted: bool) -> EvalRunSummary {
        let (passed, failed, errored) = self.counts();
        let functions = self.functions.iter().map(FunctionTally::summary).collect();
        let (traces, without_trace, not_applicable) = (self.traces, self.without_trace, self.not_applicable());
        EvalRunSummary {
            traces,
            without_trace,
            passed,
            failed,
            not_applicable,
            errored,
            interrupted,
            elapsed_ms,
            functions,
        }
    }
}

/// Whether the line held no trace. Functions are validated earlier, so a validation error is about the trace.
fn has_no_trace(judgement: &Judgement) -> bool {
    matches!(&judgement.conclusion, Conclusion::Error(error) if error.kind == ErrorKind::Validation)
}

impl FunctionTally {
    fn add(&mut self, judgement: &Judgement, trace: impl Fn() -> String) {
        // A judgement that did not run has no duration.
        if !judgement.elapsed.is_zero() {
            self.times.add(judgement.elapsed);
        }
        match &judgement.conclusion {
            Conclusion::Verdict { passed: true, .. } => self.passed += 1,
            Conclusion::Verdict { passed: false, reason } => {
                self.failed += 1;
                self.fails.add(reason, None, trace);
            }
            Conclusion::NotApplicable { .. } => self.not_applicable += 1,
            Conclusion::Error(error) => {
                self.errored += 1;
                self.errors[error.kind as usize].add(&error.message, error.line(), trace);
            }
        }
    }

    fn summary(&self) -> FunctionSummary {
        let milliseconds = |percent| Some(self.times.percentile(percent)?.as_secs_f64() * 1000.0);
        let (fails, other_fails) = self.fails.largest(MAX_SHOWN_GROUPS);
        let errors = ErrorKind::ALL.into_iter().zip(&self.errors).filter(|(_, reasons)| !reasons.is_empty());
        let errors = errors.map(|(kind, reasons)| {
            let (groups, others) = reasons.largest(MAX_SHOWN_GROUPS);
            ErrorSummary { kind, groups, others }
        });
        FunctionSummary {
            eval_id: self.eval_id.clone(),
            code_hash: self.code_hash.clone(),
            passed: self.passed,
            failed: self.failed,
            not_applicable: self.not_applicable,
            errored: self.errored,
            fails,
            other_fails,
            errors: errors.collect(),
            p50_ms: milliseconds(50),
            p99_ms: milliseconds(99),
        }
    }
}

/// Totals of a run of eval functions.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EvalRunSummary {
    /// Number of traces judged, including lines without a trace.
    pub traces: u64,
    /// Number of lines without a trace.
    pub without_trace: u64,
    /// Number of passed verdicts over all functions.
    pub passed: u64,
    pub failed: u64,
    /// Number of executions in which a function was not applicable.
    pub not_applicable: u64,
    /// Number of missing verdicts.
    pub errored: u64,
    /// Whether the run was interrupted before all traces were judged.
    pub interrupted: bool,
    pub elapsed_ms: u64,
    /// In the order given.
    pub functions: Vec<FunctionSummary>,
}

/// Verdict counts of one function.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FunctionSummary {
    /// The function's name.
    pub eval_id: String,
    pub code_hash: String,
    pub passed: u64,
    pub failed: u64,
    /// Traces to which the function was not applicable.
    pub not_applicable: u64,
    pub errored: u64,
    /// Reasons of failures, most frequent first.
    pub fails: Vec<ReasonGroup>,
    /// Number of failures with other reasons.
    pub other_fails: u64,
    /// By kind.
    pub errors: Vec<ErrorSummary>,
    /// Median time per trace. Null if none ran.
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
}

/// Errors of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ErrorSummary {
    pub kind: ErrorKind,
    /// Most frequent first.
    pub groups: Vec<ReasonGroup>,
    /// Number of errors of this kind in no group.
    pub others: u64,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rstest::rstest;

    use super::*;
    use karat_core::judgement::EvalError;

    fn judgement(conclusion: Conclusion) -> Judgement {
        Judgement {
            conclusion,
            score: None,
            elapsed: Duration::from_millis(2),
            stdout: String::new(),
            stderr: String::new(),
        }
    }

    fn verdict(passed: bool) -> Judgement {
        judgement(Conclusion::Verdict { passed, reason: "because".to_owned() })
    }

    fn error(kind: ErrorKind) -> Judgement {
        judgement(Conclusion::Error(EvalError::new(kind, "broke")))
    }

    #[rstest]
    #[case(&[], ExitStatus::NothingSelected)]
    #[case(&[verdict(true)], ExitStatus::Success)]
    #[case(&[verdict(true), verdict(false)], ExitStatus::Failed)]
    #[case(&[verdict(false), error(ErrorKind::Timeout)], ExitStatus::Errored)]
    fn an_error_ranks_above_a_failure(#[case] judgements: &[Judgement], #[case] expected: ExitStatus) {
        let mut tally = Tally::new([("eval_x", "")]);
        for judgement in judgements {
            tally.add(std::slice::from_ref(judgement), String::new);
        }
        assert_eq!(tally.status(), expected);
    }

    #[test]
    fn counts_errors_by_kind_and_not_as_failures() {
        let mut tally = Tally::new([("eval_x", "a"), ("eval_y", "b")]);
        for kind in ErrorKind::ALL {
            tally.add(&[error(kind), verdict(false)], || kind.to_string());
        }
        let summary = tally.summary(7, false);
        assert_eq!((summary.traces, summary.without_trace, summary.failed, summary.errored), (7, 0, 7, 7));
        let [x, y] = &summary.functions[..] else { panic!("two functions") };
        assert_eq!((x.fails.len(), x.errored, y.errored), (0, 7, 0));
        let kinds: Vec<ErrorKind> = x.errors.iter().map(|errors| errors.kind).collect();
        assert_eq!(kinds, ErrorKind::ALL);
        assert!(x.errors.iter().all(|errors| errors.groups[0].traces == [errors.kind.to_string()]));
        assert_eq!(x.p50_ms, Some(2.0));
    }

    #[test]
    fn counts_lines_without_a_trace_separately() {
        let mut tally = Tally::new([("eval_x", "a"), ("eval_y", "b")]);
        let none = || error(ErrorKind::Validation);
        for judgements in [[none(), none()], [verdict(true), verdict(true)], [none(), none()]] {
            tally.add(&judgements, String::new);
        }
        let summary = tally.summary(7, false);
        assert_eq!((summary.traces, summary.without_trace, summary.errored), (3, 2, 4));
    }
}
