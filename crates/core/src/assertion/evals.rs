//! What Python eval functions say of a trace.
//!
//! They run somewhere else and take their time, so judging stops here to be told: whoever can run functions runs those
//! that are wanted, one after the other, and none where the case is decided without them.

use std::ops::ControlFlow;

use super::tally::{Check, Tally};
use super::{Evidence, Field, Strictness, Verdict, judge_field};
use crate::judgement::{Conclusion, EvalResult, Judgement};

/// A trace about which everything is known but what eval functions say.
#[derive(Debug)]
#[must_use]
pub struct Judging<'e> {
    names: &'e [String],
    heard: usize,
    is_decided: bool,
    tally: Tally,
}

impl<'e> Judging<'e> {
    /// Judges a trace by all assertions that need no function.
    pub fn begin(evidence: Evidence<'e>, strictness: Strictness) -> Self {
        let mut tally = Tally::new(strictness);
        let is_decided = Field::ALL.into_iter().any(|field| judge_field(field, evidence, &mut tally).is_break());
        let names = evidence.case.expect.evals.as_deref().unwrap_or_default();
        Self { names, heard: 0, is_decided, tally }
    }

    /// Returns the function that is to run next; none when the case is decided, or when all were heard.
    pub fn wants(&self) -> Option<&'e str> {
        self.names.get(self.heard).filter(|_| !self.is_decided).map(String::as_str)
    }

    /// Counts what the wanted function said.
    pub fn hear(&mut self, judgement: Judgement) {
        let Some(name) = self.wants() else {
            return;
        };
        let flow = match &judgement.conclusion {
            Conclusion::Verdict { passed, reason } => {
                let failure =
                    || if reason.is_empty() { format!("{name} failed") } else { format!("{name} failed: {reason}") };
                self.tally.record_item(Field::Evals, self.heard, Check::from_bool(*passed, failure))
            }
            Conclusion::Error(error) => {
                // A traceback follows; the details have all of it.
                let summary = error.message.lines().next().unwrap_or_default();
                self.tally.no_verdict(Field::Evals, &format!("{name} errored ({}): {summary}", error.kind))
            }
        };
        self.tally.keep(EvalResult::new(name, judgement));
        self.heard += 1;
        self.is_decided = flow == ControlFlow::Break(());
    }

    /// Returns what came of it. A function that nobody ran is a check that was skipped.
    pub fn end(mut self) -> Verdict {
        while let Some(name) = self.wants() {
            self.tally.warn(format!("{}: {name} was not run", Field::Evals));
            let _ = self.tally.record_item(Field::Evals, self.heard, Check::Skipped);
            self.heard += 1;
        }
        self.tally.into_verdict()
    }
}
