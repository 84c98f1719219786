//! Recorded states of systems behind the agent.

use karat_core::redact::Redactor;
use karat_core::state::CapturedStates;

use super::answer::Answer;

impl Answer for CapturedStates {
    type Recorded = Self;

    fn sanitise(&mut self, redactor: &Redactor) {
        let CapturedStates { before, after } = self;
        before.values_mut().chain(after.values_mut()).for_each(|state| redactor.value(state));
    }

    fn to_recorded(&self) -> Self {
        self.clone()
    }

    fn from_recorded(recorded: Self) -> Self {
        recorded
    }
}
