//! Hears what came of each trace, and makes rows of it.

use std::io;
use std::sync::Arc;

use karat_core::judgement::{Execution, Judge, JudgedTrace};
use karat_core::port::Clock;
use karat_sandbox::{Function, Judged};

use super::super::listening::Hearer;
use super::sink::Sink;

pub(super) struct Filter<'f, S> {
    functions: Vec<Arc<Function>>,
    guest_hash: &'f str,
    clock: &'f dyn Clock,
    sink: S,
}

impl<'f, S: Sink> Filter<'f, S> {
    pub(super) fn new(functions: Vec<Arc<Function>>, guest_hash: &'f str, clock: &'f dyn Clock, sink: S) -> Self {
        Self { functions, guest_hash, clock, sink }
    }

    /// Ends the rows.
    pub(super) fn end(self, is_whole: bool) -> io::Result<()> {
        self.sink.end(is_whole)
    }
}

impl<S: Sink> Hearer for Filter<'_, S> {
    type Error = io::Error;

    fn hear(&mut self, judged: Judged) -> io::Result<()> {
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

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}
