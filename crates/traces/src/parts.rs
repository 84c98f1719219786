//! The spans of one trace that are known so far.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::format::TraceFormat;

/// The spans and log records of one trace. Also the raw payload that is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceParts {
    /// The name of the source's format.
    pub source: String,
    pub trace_id: String,
    /// By span id.
    pub spans: BTreeMap<String, Span>,
    /// Log records of the trace, without duplicates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<LogEvent>,
}

/// One unit of work.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Span {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    pub name: String,
    /// The role that the source assigns, where it is more specific than the attributes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Timestamp>,
    /// By name. Structured values are not flattened.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub attributes: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<SpanEvent>,
    /// Why the span failed, from its status or a field of the source. Empty if the source gives no message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Input and output, where the source has separate fields for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Attributes of the process that emitted the span.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub resource: Map<String, Value>,
    /// The instrumentation library that emitted the span.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

/// The role of a span in its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Model,
    Tool,
    Agent,
    Other,
}

/// Something that happened during a span.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SpanEvent {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub attributes: Map<String, Value>,
}

/// A log record that belongs to a trace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LogEvent {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<String>,
    pub event: SpanEvent,
    #[serde(default)]
    pub body: Value,
}

impl TraceParts {
    pub fn new(format: TraceFormat, trace_id: impl Into<String>) -> Self {
        Self { source: format.name().to_owned(), trace_id: trace_id.into(), spans: BTreeMap::new(), logs: Vec::new() }
    }

    /// Merges other parts of the same trace. The result does not depend on the order.
    pub fn merge(&mut self, other: Self) {
        for span in other.spans.into_values() {
            self.add_span(span);
        }
        if other.source < self.source {
            self.source = other.source;
        }
        if !other.logs.is_empty() {
            self.logs.extend(other.logs);
            self.order_logs();
        }
    }

    /// Adds a span. Sources may send a span again when it ends: of two spans with the same id, the one that ended later
    /// wins, then the one with more content.
    pub fn add_span(&mut self, span: Span) {
        match self.spans.entry(span.id.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(span);
            }
            Entry::Occupied(mut entry) => {
                if entry.get().precedes(&span) {
                    entry.insert(span);
                }
            }
        }
    }

    /// Sorts the log records into a canonical order and removes duplicates.
    pub(crate) fn order_logs(&mut self) {
        self.logs.sort_by_cached_key(|log| (log.event.time, serde_json::to_string(log).unwrap_or_default()));
        self.logs.dedup();
    }
}

impl Span {
    fn precedes(&self, other: &Self) -> bool {
        if self == other {
            return false;
        }
        let rank = |span: &Self| {
            let present = [span.input.is_some(), span.output.is_some(), span.scope.is_some(), span.parent.is_some()];
            let present = present.into_iter().filter(|is_present| *is_present).count();
            (span.end, span.attributes.len() + span.events.len() + span.resource.len() + present)
        };
        let text = |span: &Self| serde_json::to_string(span).unwrap_or_default();
        rank(self).cmp(&rank(other)).then_with(|| text(self).cmp(&text(other))).is_lt()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_sparser_copy_does_not_replace_a_span() {
        let full = Span {
            id: "s".to_owned(),
            resource: Map::from_iter([("service.name".to_owned(), json!("shop"))]),
            scope: Some("sdk".to_owned()),
            ..Span::default()
        };
        // Its text alone would rank it higher.
        let sparse = Span { id: "s".to_owned(), name: "z".to_owned(), ..Span::default() };
        for spans in [[&full, &sparse], [&sparse, &full]] {
            let mut parts = TraceParts::new(TraceFormat::Otlp, "t");
            for span in spans {
                parts.add_span(span.clone());
            }
            assert_eq!(parts.spans["s"], full);
        }
    }
}
