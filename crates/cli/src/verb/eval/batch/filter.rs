//! Hears what came of each trace, and makes rows of it.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use karat_core::judgement::{Execution, Judge, JudgedTrace};
use karat_core::port::Clock;
use karat_sandbox::{Function, Judged, Listener};

use super::sink::Sink;
use crate::interrupt::Interrupts;

pub(super) struct Filter<'f, S> {
    functions: Vec<Arc<Function>>,
    guest_hash: &'f str,
    clock: &'f dyn Clock,
    interrupts: Interrupts,
    sink: S,
    /// Why rows cannot be written.
    unwritten: Option<io::Error>,
    pub(super) interrupted: bool,
}

impl<'f, S: Sink> Filter<'f, S> {
    pub(super) fn new(
        functions: Vec<Arc<Function>>,
        guest_hash: &'f str,
        clock: &'f dyn Clock,
        interrupts: Interrupts,
        sink: S,
    ) -> Self {
        Self { functions, guest_hash, clock, interrupts, sink, unwritten: None, interrupted: false }
    }

    /// Ends the rows; returns whether somebody asked to stop, and whether all could be written.
    pub(super) fn end(self, is_whole: bool) -> (bool, io::Result<()>) {
        let ended = match self.unwritten {
            Some(error) => Err(error),
            None => self.sink.end(is_whole),
        };
        (self.interrupted, ended)
    }

    fn write(&mut self, judged: Judged) -> io::Result<()> {
        let named = self.sink.begin_trace()?;
        // The engine's own name for it is what the engine will look for.
        let id = named.or(judged.trace_id);
        let trace = JudgedTrace { id: id.as_deref(), hash: &judged.trace_hash };
        let executed_at = self.clock.now().to_string();
        for (function, judgement) in self.functions.iter().zip(judged.judgements) {
            let judge = Judge { eval_id: &function.name, code_hash: &function.code_hash, guest_hash: self.guest_hash };
            self.sink.write(&Execution::new(judge, trace, judgement, executed_at.clone()))?;
        }
        self.sink.end_trace()
    }

    /// Goes on unless nobody reads the rows any more, or somebody asked to stop.
    fn go_on(&mut self, written: io::Result<()>) -> ControlFlow<()> {
        if let Err(error) = written {
            self.unwritten = Some(error);
            return ControlFlow::Break(());
        }
        if self.interrupts.were_asked() {
            self.interrupted = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// Lends the filter to whoever tells.
pub(super) struct Ear<'e, 'f, S>(pub(super) &'e mut Filter<'f, S>);

impl<S: Sink> Listener for Ear<'_, '_, S> {
    fn judged(&mut self, judged: Judged) -> ControlFlow<()> {
        let written = self.0.write(judged);
        self.0.go_on(written)
    }

    fn idle(&mut self) -> ControlFlow<()> {
        let flushed = self.0.sink.flush();
        self.0.go_on(flushed)
    }
}
