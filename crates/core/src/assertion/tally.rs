//! Counts checks and collects failures.

use std::ops::ControlFlow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Field, Strictness};
use crate::judgement::EvalResult;

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

/// The result of judging a trace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    /// Empty when the case passed.
    pub failures: Vec<Failure>,
    /// Why there is no verdict: an eval function errored before any failure.
    pub error: Option<String>,
    pub assertions_run: usize,
    pub assertions_skipped: usize,
    /// Tokens without a value, without duplicates.
    pub skipped_tokens: Vec<String>,
    /// Whether no assertion ran.
    pub vacuous: bool,
    /// Why assertions were skipped, other than for missing token values.
    pub warnings: Vec<String>,
    /// Results of the eval functions that ran, in order.
    pub evals: Vec<EvalResult>,
}

impl Verdict {
    pub fn passed(&self) -> bool {
        self.failures.is_empty() && self.error.is_none()
    }
}

/// The result of one check.
pub(super) enum Check {
    Held,
    /// The expected and the actual value.
    Failed(String),
    /// There was nothing to check.
    Skipped,
}

impl Check {
    pub(super) fn from_bool(held: bool, failure: impl FnOnce() -> String) -> Self {
        if held { Check::Held } else { Check::Failed(failure()) }
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
        self.record_at(field, None, check)
    }

    /// Records a check of one list element.
    pub(super) fn record_item(&mut self, field: Field, index: usize, check: Check) -> ControlFlow<()> {
        self.record_at(field, Some(index), check)
    }

    fn record_at(&mut self, field: Field, index: Option<usize>, check: Check) -> ControlFlow<()> {
        match check {
            Check::Held => self.verdict.assertions_run += 1,
            Check::Skipped => self.verdict.assertions_skipped += 1,
            Check::Failed(message) => {
                self.verdict.assertions_run += 1;
                let assertion = field.name().to_owned();
                let message = format!("{field}: {message}");
                let pointer = index.map_or_else(|| field.pointer(), |index| format!("{}/{index}", field.pointer()));
                self.verdict.failures.push(Failure { assertion, message, pointer });
                if !self.strictness.all_failures {
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Records a check that errored. Earlier failures remain the verdict; without any, the case has none.
    pub(super) fn record_error(&mut self, field: Field, error: &str) -> ControlFlow<()> {
        let message = format!("{field}: {error}");
        if self.verdict.failures.is_empty() {
            self.verdict.error = Some(message);
            return ControlFlow::Break(());
        }
        self.warn(message);
        ControlFlow::Continue(())
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

    pub(super) fn warn(&mut self, message: String) {
        if !self.verdict.warnings.contains(&message) {
            self.verdict.warnings.push(message);
        }
    }

    pub(super) fn into_verdict(mut self) -> Verdict {
        self.verdict.vacuous = self.verdict.assertions_run == 0 && self.verdict.error.is_none();
        if self.verdict.vacuous && self.strictness.fail_vacuous {
            self.verdict.failures.push(Failure {
                assertion: "strict".to_owned(),
                message: "strict: no assertion ran".to_owned(),
                pointer: "/expect".to_owned(),
            });
        }
        self.verdict
    }
}
