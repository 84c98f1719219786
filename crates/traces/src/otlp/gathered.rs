//! Spans by their traces, while they are read.

use std::collections::HashMap;

use super::SpansRead;
use crate::kind::Kind;
use crate::parts::{LogEvent, Span, TraceParts};
use crate::piece::Refused;

/// Takes in spans in any order.
#[derive(Debug)]
pub(crate) struct Gathered {
    kind: Kind,
    places: HashMap<String, usize>,
    read: SpansRead,
}

impl Gathered {
    pub(crate) fn new(kind: Kind) -> Self {
        Self { kind, places: HashMap::new(), read: SpansRead::default() }
    }

    fn parts(&mut self, trace_id: String) -> &mut TraceParts {
        let next = self.read.traces.len();
        let place = *self.places.entry(trace_id).or_insert_with_key(|trace_id| {
            self.read.traces.push(TraceParts::new(self.kind, trace_id.as_str()));
            next
        });
        &mut self.read.traces[place]
    }

    pub(crate) fn span(&mut self, trace_id: String, span: Span) {
        self.parts(trace_id).add_span(span);
    }

    pub(crate) fn log(&mut self, trace_id: String, log: LogEvent) {
        self.parts(trace_id).logs.push(log);
    }

    pub(crate) fn refuse(&mut self, place: impl Into<String>, message: impl Into<String>) {
        self.read.refused.push(Refused { place: place.into(), message: message.into() });
    }

    pub(crate) fn finish(mut self) -> SpansRead {
        for parts in &mut self.read.traces {
            parts.order_logs();
        }
        self.read
    }
}
