//! Runs a conversation without a person, for scripts.

use karat_forge::Evidence;
use karat_forge::session::{CaseSelection, Entry, Session};
use tokio_util::sync::CancellationToken;

use super::conversation::Conversation;
use super::protocol::{Command, CommandOutcome, Event, Mode, Step};
use super::report::has_personal_data;
use crate::error::{Error, ErrorKind};
use crate::event::EventSink;

impl Conversation<'_> {
    /// Approves all drafts that can be approved and drops the others, until everything is written. `observe` is called
    /// before each step.
    ///
    /// On failure, a session without approved drafts is discarded.
    pub async fn run_unattended(
        &mut self,
        observe: &mut dyn FnMut(&Self, &Step),
        events: &mut dyn EventSink<Event>,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let Err(error) = self.decide_all(observe, events, cancel).await else { return Ok(()) };
        let Some(file) = self.file.as_ref().filter(|_| error.kind != ErrorKind::Cancelled) else { return Err(error) };
        if self.session().is_some_and(|session| session.approved_count() > 0) {
            return Err(error.hint(file.resume_hint()));
        }
        file.remove()?;
        Err(error)
    }

    async fn decide_all(
        &mut self,
        observe: &mut dyn FnMut(&Self, &Step),
        events: &mut dyn EventSink<Event>,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        loop {
            let step = self.next();
            observe(self, &step);
            let command = match step {
                Step::Done => return Ok(()),
                Step::ApprovePlan => Command::ApprovePlan,
                Step::Draft => Command::Draft,
                Step::Verify => Command::Verify,
                Step::Write => Command::Write,
                Step::Decide => match self.numbers_to_leave_out() {
                    numbers if numbers.is_empty() => Command::Approve { selection: CaseSelection::All },
                    numbers => Command::Drop { numbers },
                },
                Step::ConfirmDescription
                | Step::ConfirmChanges { .. }
                | Step::DeclareOverlap { .. }
                | Step::AddTriggers
                | Step::NameApprover => return Err(Error::invalid("this step needs a person's answer")),
            };
            self.apply_or_fail(command, events, cancel).await?;
        }
    }

    async fn apply_or_fail(
        &mut self,
        command: Command,
        events: &mut dyn EventSink<Event>,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let mut applied = self.apply(command, events, cancel).await?;
        if let CommandOutcome::Approved { refused, .. } = &applied
            && !refused.is_empty()
        {
            applied = self.apply(Command::Drop { numbers: refused.clone() }, events, cancel).await?;
        }
        match applied {
            CommandOutcome::DraftingFailed(error) => Err(error),
            CommandOutcome::Refused(refusal) => Err(Error::no_verdict(refusal.to_string())),
            _ => Ok(()),
        }
    }

    /// Returns the numbers of undecided drafts that need a person's decision: those with personal data, and those that
    /// were run and did not pass, since either the agent or the draft is wrong.
    fn numbers_to_leave_out(&self) -> Vec<usize> {
        if self.mode == Mode::DryRun {
            return Vec::new();
        }
        let batch = self.session().and_then(Session::batch);
        let entries = batch.map(|batch| batch.entries.as_slice()).unwrap_or_default();
        let has_not_passed = |entry: &Entry| {
            self.evidence_map().get(&entry.slot.id).is_some_and(|evidence| *evidence != Evidence::Passed)
        };
        let is_affected = |entry: &Entry| entry.is_undecided() && (has_personal_data(entry) || has_not_passed(entry));
        (1..).zip(entries).filter(|(_, entry)| is_affected(entry)).map(|(number, _)| number).collect()
    }
}
