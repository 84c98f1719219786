//! Counts checks and collects failures.

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::ControlFlow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call_alignment::CallAlignment;
use super::{Field, Strictness};
use crate::judgement::EvalResult;
use crate::outcome::{Cause, Outcome};
use crate::state::StateChanges;

/// A check that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The key in `expect`.
    pub assertion: String,
    /// The key, followed by what was expected and what was found.
    pub message: String,
    /// Location of the assertion in its case, as a JSON pointer.
    pub pointer: String,
}

/// A string that the response contains only with other capitals or typography.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NearMiss {
    /// Location of the expected text or group in its case, as a JSON pointer.
    pub pointer: String,
    pub expected: String,
    /// The matching part of the response.
    pub found: String,
}

impl NearMiss {
    /// Returns the near miss as a warning.
    pub fn message(&self) -> String {
        let Self { expected, found, .. } = self;
        format!("near miss of '{expected}': the response has '{found}' (set 'textMatch' to loose or exact)")
    }
}

/// The verdict of one assertion of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssertionVerdict {
    /// The key in `expect`.
    pub assertion: Cow<'static, str>,
    pub verdict: AssertionOutcome,
}

/// The outcome of an assertion. With several checks, the worst one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AssertionOutcome {
    /// There was nothing to check.
    Skipped,
    Passed,
    /// An eval function or a tool's schema gave no verdict, or the agent does not report its calls and judging is strict.
    Errored,
    Failed,
}

/// The reason why there is no verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoVerdict {
    /// The key in `expect`, followed by the reason.
    pub message: String,
    pub cause: Cause,
}

/// The result of judging a trace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    /// Empty when the case passed.
    pub failures: Vec<Failure>,
    /// Why there is no verdict, if a check errored before any failure.
    pub error: Option<NoVerdict>,
    /// The verdict of each assertion that was reached, in order.
    pub assertions: Vec<AssertionVerdict>,
    pub assertions_run: usize,
    pub assertions_skipped: usize,
    /// Tokens without a value, without duplicates.
    pub skipped_tokens: Vec<String>,
    /// Whether no assertion ran.
    pub vacuous: bool,
    /// Why assertions were skipped, other than for missing token values.
    pub warnings: Vec<String>,
    /// Strings that the response contains only with other capitals or typography.
    pub near_misses: Vec<NearMiss>,
    /// How the calls made correspond to those of `calls`, if that failed.
    pub calls: Option<CallAlignment>,
    /// What changed in the sources of `stateUnchanged`, if that failed.
    pub state_changes: Vec<StateChanges>,
    /// Results of the eval functions that ran, in order.
    pub evals: Vec<EvalResult>,
}

impl Verdict {
    pub fn passed(&self) -> bool {
        self.failures.is_empty() && self.error.is_none()
    }

    /// Returns the outcome of what was judged.
    pub fn outcome(&self) -> Outcome {
        match &self.error {
            Some(error) => error.cause.outcome(),
            None if self.failures.is_empty() => Outcome::Passed,
            None => Outcome::Failed,
        }
    }

    /// Determines whether the case is vacuous, which fails if judging is strict.
    pub(crate) fn with_vacuity(mut self, strictness: Strictness, pointer: &str) -> Self {
        self.vacuous = self.assertions_run == 0 && self.error.is_none();
        if self.vacuous && strictness.strict {
            self.push_strict_failure(pointer, "no assertion ran");
        }
        self
    }

    pub(crate) fn push_strict_failure(&mut self, pointer: &str, message: &str) {
        self.failures.push(Failure {
            assertion: "strict".to_owned(),
            message: format!("strict: {message}"),
            pointer: pointer.to_owned(),
        });
    }
}

/// The result of one check.
pub(super) enum Check {
    Passed,
    /// The expected and the actual value.
    Failed(String),
    /// There was nothing to check.
    Skipped,
}

impl Check {
    pub(super) fn from_bool(passed: bool, failure: impl FnOnce() -> String) -> Self {
        if passed { Check::Passed } else { Check::Failed(failure()) }
    }
}

#[derive(Debug)]
pub(super) struct Tally {
    strictness: Strictness,
    verdict: Verdict,
}

impl Tally {
    pub(super) fn new(strictness: Strictness) -> Self {
        Self { strictness, verdict: Verdict::default() }
    }

    /// Records a check; breaks when the case is decided.
    pub(super) fn record(&mut self, field: Field, check: Check) -> ControlFlow<()> {
        self.record_at(field, "", check)
    }

    /// Records a check of one list element.
    pub(super) fn record_item(&mut self, field: Field, index: usize, check: Check) -> ControlFlow<()> {
        self.record_at(field, format_args!("/{index}"), check)
    }

    /// Records a check at a JSON pointer below the field.
    pub(super) fn record_at(&mut self, field: Field, below: impl Display, check: Check) -> ControlFlow<()> {
        self.record_outcome(
            field,
            match check {
                Check::Passed => AssertionOutcome::Passed,
                Check::Failed(_) => AssertionOutcome::Failed,
                Check::Skipped => AssertionOutcome::Skipped,
            },
        );
        match check {
            Check::Passed => self.verdict.assertions_run += 1,
            Check::Skipped => self.verdict.assertions_skipped += 1,
            Check::Failed(message) => {
                self.verdict.assertions_run += 1;
                self.push_failure(field, &message, format!("{}{below}", field.pointer()));
                if !self.strictness.all_failures {
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Records one check with all its failures; only the first without `--all-failures`.
    pub(super) fn record_failures(&mut self, field: Field, failures: Vec<String>) -> ControlFlow<()> {
        let mut failures = failures.into_iter();
        self.record(field, failures.next().map_or(Check::Passed, Check::Failed))?;
        for message in failures {
            self.push_failure(field, &message, field.pointer());
        }
        ControlFlow::Continue(())
    }

    fn push_failure(&mut self, field: Field, message: &str, pointer: String) {
        let message = format!("{field}: {message}");
        self.verdict.failures.push(Failure { assertion: field.name().to_owned(), message, pointer });
    }

    /// Records a check that errored. Earlier failures remain the verdict; without any, the case has none.
    pub(super) fn record_error(&mut self, field: Field, cause: Cause, error: &str) -> ControlFlow<()> {
        self.record_outcome(field, AssertionOutcome::Errored);
        let message = format!("{field}: {error}");
        if self.verdict.failures.is_empty() {
            self.verdict.error = Some(NoVerdict { message, cause });
            return ControlFlow::Break(());
        }
        self.warn(message);
        ControlFlow::Continue(())
    }

    /// Records the outcome of a check. The checks of a field are consecutive.
    fn record_outcome(&mut self, field: Field, verdict: AssertionOutcome) {
        if let Some(last) = self.verdict.assertions.last_mut().filter(|last| last.assertion == field.name()) {
            last.verdict = last.verdict.max(verdict);
        } else {
            let assertion = Cow::Borrowed(field.name());
            self.verdict.assertions.push(AssertionVerdict { assertion, verdict });
        }
    }

    pub(super) fn record_call_alignment(&mut self, alignment: CallAlignment) {
        self.verdict.calls = Some(alignment);
    }

    pub(super) fn record_state_changes(&mut self, changes: StateChanges) {
        self.verdict.state_changes.push(changes);
    }

    pub(super) fn push_eval(&mut self, result: EvalResult) {
        self.verdict.evals.push(result);
    }

    pub(super) fn record_unresolved(&mut self, tokens: Vec<String>) {
        for token in tokens {
            if !self.verdict.skipped_tokens.contains(&token) {
                self.verdict.skipped_tokens.push(token);
            }
        }
    }

    pub(super) fn record_near_miss(&mut self, field: Field, index: usize, expected: &str, found: &str) {
        let (expected, found) = (expected.to_owned(), found.to_owned());
        self.verdict.near_misses.push(NearMiss { pointer: item_pointer(field, index), expected, found });
    }

    /// Records a probable mistake in the case: a failure if judging is strict, a warning otherwise.
    pub(super) fn record_mistake(&mut self, pointer: &str, message: String) -> ControlFlow<()> {
        if !self.strictness.strict {
            self.warn(message);
            return ControlFlow::Continue(());
        }
        self.verdict.push_strict_failure(pointer, &message);
        if self.strictness.all_failures { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    pub(super) fn strictness(&self) -> Strictness {
        self.strictness
    }

    pub(super) fn lists_all_failures(&self) -> bool {
        self.strictness.all_failures
    }

    pub(super) fn is_strict(&self) -> bool {
        self.strictness.strict
    }

    pub(super) fn warn(&mut self, message: String) {
        if !self.verdict.warnings.contains(&message) {
            self.verdict.warnings.push(message);
        }
    }

    pub(super) fn into_verdict(self) -> Verdict {
        self.verdict
    }
}

fn item_pointer(field: Field, index: usize) -> String {
    format!("{}/{index}", field.pointer())
}
