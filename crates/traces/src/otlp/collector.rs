//! Groups spans by trace while they are read.

use std::collections::HashMap;

use super::ParsedSpans;
use crate::format::TraceFormat;
use crate::parts::{LogEvent, Span, TraceParts};
use crate::piece::RefusedItem;

/// Collects spans in any order.
#[derive(Debug)]
pub(crate) struct SpanCollector {
    format: TraceFormat,
    /// Indices into `parsed.traces`, by trace id.
    indices: HashMap<String, usize>,
    parsed: ParsedSpans,
}

impl SpanCollector {
    pub(crate) fn new(format: TraceFormat) -> Self {
        Self { format, indices: HashMap::new(), parsed: ParsedSpans::default() }
    }

    fn parts(&mut self, trace_id: String) -> &mut TraceParts {
        let next = self.parsed.traces.len();
        let index = *self.indices.entry(trace_id).or_insert_with_key(|trace_id| {
            self.parsed.traces.push(TraceParts::new(self.format, trace_id.as_str()));
            next
        });
        &mut self.parsed.traces[index]
    }

    pub(crate) fn add_span(&mut self, trace_id: String, span: Span) {
        self.parts(trace_id).add_span(span);
    }

    pub(crate) fn add_log(&mut self, trace_id: String, log: LogEvent) {
        self.parts(trace_id).logs.push(log);
    }

    pub(crate) fn refuse(&mut self, location: impl Into<String>, message: impl Into<String>) {
        self.parsed.refused.push(RefusedItem { location: location.into(), message: message.into() });
    }

    pub(crate) fn finish(mut self) -> ParsedSpans {
        for parts in &mut self.parsed.traces {
            parts.order_logs();
        }
        self.parsed
    }
}
