//! Verdicts of Python eval functions.
//!
//! Eval functions run outside of the core and are slow, so judging pauses here: the caller runs the requested
//! functions one by one, and none if the case is already decided.

use std::ops::ControlFlow;

use super::tally::{Check, Tally};
use super::{Evidence, Field, Strictness, Verdict, judge_field};
use crate::case::{ExpectedText, INPUT_POINTER, Input, TextKind};
use crate::judgement::{Conclusion, EvalResult, Judgement};
use crate::outcome::Cause;
use crate::token::looks_like_token;
use karat_json::text::shorten;

/// A verdict that may still depend on eval functions.
#[derive(Debug)]
#[must_use]
pub struct PendingVerdict<'e> {
    names: &'e [String],
    evals_done: usize,
    is_decided: bool,
    tally: Tally,
}

impl<'e> PendingVerdict<'e> {
    /// Judges a trace by all assertions except eval functions.
    pub fn start(evidence: Evidence<'e>, strictness: Strictness) -> Self {
        let mut tally = Tally::new(strictness);
        let is_decided = record_stray_tokens(evidence, &mut tally).is_break()
            || Field::ALL.into_iter().any(|field| judge_field(field, evidence, &mut tally).is_break());
        let names = evidence.case.expect.evals.as_deref().unwrap_or_default();
        Self { names, evals_done: 0, is_decided, tally }
    }

    /// Returns the function to run next; `None` if the case is decided or all have run.
    pub fn next_eval(&self) -> Option<&'e str> {
        self.names.get(self.evals_done).filter(|_| !self.is_decided).map(String::as_str)
    }

    /// Records the judgement of the function that `next_eval` returned.
    pub fn record_eval(&mut self, judgement: Judgement) {
        let Some(name) = self.next_eval() else {
            return;
        };
        let flow = match &judgement.conclusion {
            Conclusion::Verdict { passed, reason } => {
                let failure =
                    || if reason.is_empty() { format!("{name} failed") } else { format!("{name} failed: {reason}") };
                self.tally.record_item(Field::Evals, self.evals_done, Check::from_bool(*passed, failure))
            }
            Conclusion::Error(error) => {
                // The traceback in the following lines goes into the details only.
                let summary = error.message.lines().next().unwrap_or_default();
                let message = format!("{name} errored ({}): {summary}", error.kind);
                self.tally.record_error(Field::Evals, Cause::Check, &message)
            }
        };
        self.tally.push_eval(EvalResult::new(name, judgement));
        self.evals_done += 1;
        self.is_decided = flow == ControlFlow::Break(());
    }

    /// Returns the verdict. Functions that were not run count as skipped checks.
    pub fn finish(self) -> Verdict {
        let strictness = self.tally.strictness();
        self.finish_part().with_vacuity(strictness, "/expect")
    }

    /// Returns the verdict of a part of a case, which may have no assertions.
    pub fn finish_part(mut self) -> Verdict {
        while let Some(name) = self.next_eval() {
            self.tally.warn(format!("{}: {name} was not run", Field::Evals));
            let _ = self.tally.record_item(Field::Evals, self.evals_done, Check::Skipped);
            self.evals_done += 1;
        }
        self.tally.into_verdict()
    }
}

/// Records strings that look like a token but are sent or compared literally.
fn record_stray_tokens(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    // The messages of a conversation are judged with its turns.
    if let Some(Input { message }) = &evidence.case.input
        && looks_like_token(message)
    {
        let warning = format!("'{}' is not a valid token and is sent literally", shorten(message, 60));
        tally.record_mistake(INPUT_POINTER, warning)?;
    }
    for ExpectedText { kind, pointer, text } in evidence.case.expect.texts() {
        if kind != TextKind::Pattern && looks_like_token(text) {
            tally.record_mistake(
                &pointer,
                format!("'{}' is not a valid token and is compared literally", shorten(text, 60)),
            )?;
        }
    }
    ControlFlow::Continue(())
}
