//! Spans of one trace, as far as they are known.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::kind::Kind;

/// All that is known of a trace that comes in spans. This is also the raw payload that is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceParts {
    /// The source's kind, by its name.
    pub source: String,
    pub trace_id: String,
    /// By their ids.
    pub spans: BTreeMap<String, Span>,
    /// Log records that belong to the trace; each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<LogEvent>,
}

/// One piece of work.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Span {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    pub name: String,
    /// What the source itself calls it, where its own words say more than attributes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Timestamp>,
    /// By name; a structured value stays one.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub attributes: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<SpanEvent>,
    /// Why it failed: of its status, or the source's own field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What went in and came out, where the source has fields of their own for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Of the process that wrote it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub resource: Map<String, Value>,
    /// The instrumentation that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

/// What a span is.
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

/// A log record that names a trace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LogEvent {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<String>,
    pub event: SpanEvent,
    #[serde(default)]
    pub body: Value,
}

impl TraceParts {
    pub fn new(kind: Kind, trace_id: impl Into<String>) -> Self {
        Self { source: kind.name().to_owned(), trace_id: trace_id.into(), spans: BTreeMap::new(), logs: Vec::new() }
    }

    /// Takes in what another part knows of the same trace. The order in which parts come makes no difference.
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

    /// Takes in a span. Sources send one again when it has ended: of two with the same id, the one that ended later stays,
    /// then the one that says more.
    pub fn add_span(&mut self, span: Span) {
        match self.spans.entry(span.id.clone()) {
            Entry::Vacant(place) => {
                place.insert(span);
            }
            Entry::Occupied(mut place) => {
                if place.get().precedes(&span) {
                    place.insert(span);
                }
            }
        }
    }

    /// Puts the log records into the one order that they have however they came, each once.
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
        let says = |span: &Self| {
            let given = [span.input.is_some(), span.output.is_some(), span.scope.is_some(), span.parent.is_some()];
            let given = given.into_iter().filter(|is_given| *is_given).count();
            (span.end, span.attributes.len() + span.events.len() + span.resource.len() + given)
        };
        let text = |span: &Self| serde_json::to_string(span).unwrap_or_default();
        says(self).cmp(&says(other)).then_with(|| text(self).cmp(&text(other))).is_lt()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_poorer_copy_does_not_replace_a_span() {
        let rich = Span {
            id: "s".to_owned(),
            resource: Map::from_iter([("service.name".to_owned(), json!("shop"))]),
            scope: Some("sdk".to_owned()),
            ..Span::default()
        };
        // By its text alone it would come later.
        let poor = Span { id: "s".to_owned(), name: "z".to_owned(), ..Span::default() };
        for spans in [[&rich, &poor], [&poor, &rich]] {
            let mut parts = TraceParts::new(Kind::Otlp, "t");
            for span in spans {
                parts.add_span(span.clone());
            }
            assert_eq!(parts.spans["s"], rich);
        }
    }
}
