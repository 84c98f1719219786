//! Counts checks and gathers failures.

use std::ops::ControlFlow;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Field, Strictness};

/// One check that did not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The key in `expect`.
    pub assertion: String,
    /// The key, a colon, what was expected and what was found.
    pub message: String,
    /// Where the assertion stands in its case.
    pub pointer: String,
}

/// What came of judging a trace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    /// Empty when the case passed.
    pub failures: Vec<Failure>,
    pub assertions_run: usize,
    pub assertions_skipped: usize,
    /// Every token without a value, once.
    pub skipped_tokens: Vec<String>,
    /// No assertion ran.
    pub vacuous: bool,
    /// Why checks were skipped, where it is not for a token.
    pub warnings: Vec<String>,
}

impl Verdict {
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }
}

/// What came of one check.
pub(super) enum Check {
    Held,
    /// What was expected and what was found.
    Failed(String),
    /// There was nothing to check it by.
    Skipped,
}

impl Check {
    pub(super) fn from_bool(held: bool, failure: impl FnOnce() -> String) -> Self {
        if held { Check::Held } else { Check::Failed(failure()) }
    }
}

pub(super) struct Tally {
    strictness: Strictness,
    verdict: Verdict,
}

impl Tally {
    pub(super) fn new(strictness: Strictness) -> Self {
        Self { strictness, verdict: Verdict::default() }
    }

    /// Counts a check; breaks when the case is decided.
    pub(super) fn record(&mut self, field: Field, check: Check) -> ControlFlow<()> {
        self.record_at(field, None, check)
    }

    /// Counts a check on one element of a list.
    pub(super) fn record_item(&mut self, field: Field, index: usize, check: Check) -> ControlFlow<()> {
        self.record_at(field, Some(index), check)
    }

    fn record_at(&mut self, field: Field, index: Option<usize>, check: Check) -> ControlFlow<()> {
        match check {
            Check::Held => self.verdict.assertions_run += 1,
            Check::Skipped => self.verdict.assertions_skipped += 1,
            Check::Failed(what) => {
                self.verdict.assertions_run += 1;
                let assertion = field.name().to_owned();
                let message = format!("{field}: {what}");
                let pointer = index.map_or_else(|| field.pointer(), |index| format!("{}/{index}", field.pointer()));
                self.verdict.failures.push(Failure { assertion, message, pointer });
                if !self.strictness.all_failures {
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Takes note of tokens without a value.
    pub(super) fn unresolved(&mut self, tokens: Vec<String>) {
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
        self.verdict.vacuous = self.verdict.assertions_run == 0;
        if self.verdict.vacuous && self.strictness.fail_vacuous {
            self.verdict.failures.push(Failure {
                assertion: "strict".to_owned(),
                message: "strict: no assertion ran, so nothing was shown".to_owned(),
                pointer: "/expect".to_owned(),
            });
        }
        self.verdict
    }
}
