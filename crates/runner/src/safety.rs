//! Judges `safety` of a case, apart from its task.

use karat_core::assertion::{Verdict, response_marks};
use karat_core::security::{SecurityDetails, SecurityVerdict};
use karat_core::state::CapturedStates;
use serde_json::Value;

use crate::judging::Part;
use crate::shared::SharedState;

/// Which of the messages that were sent were answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answered {
    All,
    Some,
    None,
}

impl SharedState {
    /// Adds the verdict of `safety` to that of the task, which is not finished, and its strings to the marks.
    pub(crate) fn judge_safety(
        &self,
        part: Part<'_>,
        answered: Answered,
        states: &CapturedStates,
        utility: Verdict,
        document: impl Fn() -> Value,
        marks: &mut Vec<String>,
    ) -> Result<(Verdict, SecurityDetails), String> {
        let safety_case = part.case.safety_case().filter(|_| answered != Answered::None);
        let judge =
            |case| self.judge(Part { case, ..part }, document, |pending| pending.with_states(states).finish_part());
        let safety = safety_case.as_ref().map(judge).transpose()?;
        if let (Some(case), Some(safety)) = (&safety_case, &safety) {
            marks.extend(response_marks(&case.expect, &self.plan.tokens, safety));
        }
        let Part { case, trace, .. } = part;
        let mode = self.agent(part.suite).mode(part.whole);
        let is_complete = answered == Answered::All;
        Ok(SecurityVerdict { case, trace, mode, is_complete, utility, safety }.combine(self.plan.strictness))
    }
}
