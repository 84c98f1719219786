//! Hears what came of each stored trace: counts it, keeps it, and shows it when it is kept.

use std::io;
use std::sync::mpsc::Receiver;

use karat_core::judgement::{Conclusion, ErrorKind, Execution, Judge, Judgement, Tally};
use karat_core::port::{Clock, StoreError};
use karat_core::stored::{EvalVersion, StoredEvalRunSummary, StoredExecution};
use karat_sandbox::{Judged, SandboxError, Unit};
use karat_store::Store;

use super::super::listening::Hearer;
use super::super::progress::JudgingProgress;
use super::super::rows::Rows;
use super::keeper::Keeper;
use super::pages::Named;

pub(super) struct Hearing<'h> {
    pub(super) eval: &'h EvalVersion,
    pub(super) guest_hash: &'h str,
    pub(super) clock: &'h dyn Clock,
    /// What the traces are called, in the order in which they are judged.
    pub(super) named: Receiver<Named>,
    pub(super) keeper: Keeper<Store>,
    pub(super) rows: &'h mut Rows,
    pub(super) tally: &'h mut Tally,
    pub(super) progress: &'h mut Option<JudgingProgress>,
    /// What the evals before this one came to.
    pub(super) before: &'h StoredEvalRunSummary,
}

/// Why it cannot go on.
pub(super) enum Unkept {
    Store(StoreError),
    Rows(io::Error),
    Sandbox(SandboxError),
}

impl Hearing<'_> {
    /// Keeps and shows what is left.
    pub(super) fn end(mut self) -> Result<(), Unkept> {
        let kept = self.keeper.end().map_err(Unkept::Store)?;
        self.show(kept)
    }

    /// Keeps what is left, for somebody who does not look any more.
    pub(super) fn end_quietly(mut self) -> Result<(), Unkept> {
        self.keeper.end().map(drop).map_err(Unkept::Store)
    }

    /// A row that is shown is in the store.
    fn show(&mut self, kept: Vec<StoredExecution>) -> Result<(), Unkept> {
        if self.rows.are_wanted() {
            for row in kept {
                self.rows.write(&Execution::from(row)).map_err(Unkept::Rows)?;
            }
        }
        Ok(())
    }
}

/// Takes out of an error which of the traces of this run it was, for that is another one when it goes on after a kill.
fn drop_number(judgement: &mut Judgement, number: u64) {
    if let Conclusion::Error(error) = &mut judgement.conclusion
        && error.kind == ErrorKind::Validation
        && let Some(why) = error.message.strip_prefix(&format!("{} {number}: ", Unit::Row))
    {
        error.message = why.to_owned();
    }
}

impl Hearer for Hearing<'_> {
    type Error = Unkept;

    fn hear(&mut self, mut judged: Judged) -> Result<(), Unkept> {
        judged.judgements.iter_mut().for_each(|judgement| drop_number(judgement, judged.number));
        let Some(judgement) = judged.judgements.first().cloned() else { return Ok(()) };
        // It was sent before the trace was.
        let Ok(Named { id, hash }) = self.named.recv() else { return Ok(()) };
        self.tally.add(&judged.judgements, || id.clone());
        let judge = Judge { eval_id: &self.eval.eval_id, code_hash: &self.eval.code_hash, guest_hash: self.guest_hash };
        let execution = StoredExecution::new(judge, self.eval.version, (&id, &hash), judgement, self.clock.now());
        let kept = self.keeper.take(execution).map_err(Unkept::Store)?;
        self.show(kept)
    }

    fn flush(&mut self) -> Result<(), Unkept> {
        let kept = self.keeper.look().map_err(Unkept::Store)?;
        self.show(kept)?;
        self.rows.flush().map_err(Unkept::Rows)
    }

    fn goes_on(&mut self) {
        if let Some(progress) = self.progress {
            let (passed, failed, errored) = self.tally.counts();
            let before = self.before;
            let judged = before.judged + self.tally.traces();
            let counts = (before.passed + passed, before.failed + failed, before.errored + errored);
            progress.show(judged, counts, judged);
        }
    }
}
