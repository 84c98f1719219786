//! The trait through which agents get the tool calls that their telemetry shows.

use std::time::Duration;

use super::BoxFuture;
use crate::trace::{ToolCall, Usage};

/// Receives the spans of agents, and joins them by trace id.
pub trait Telemetry: Send + Sync {
    /// Announces a trace before its request is sent. Spans of other traces are counted, but not kept.
    fn expect(&self, context: &TraceContext);

    /// Waits for the spans of an announced trace. Called once, after the agent replied.
    fn observe<'a>(&'a self, context: &'a TraceContext) -> BoxFuture<'a, Result<Observation, ObservationError>>;

    /// Forgets an announced trace whose request failed.
    fn forget(&self, context: &TraceContext);
}

/// The identity of a request in distributed tracing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// 32 hexadecimal digits.
    pub trace_id: String,
    /// The parent of the agent's spans: 16 hexadecimal digits.
    pub span_id: String,
}

impl TraceContext {
    /// Returns the value of the header `traceparent` of W3C Trace Context; the trace is sampled.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-01", self.trace_id, self.span_id)
    }
}

/// The actions of an agent that its spans show.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observation {
    /// In the order in which they were made.
    pub tool_calls: Vec<ToolCall>,
    /// Number of model calls; `None` if the spans show none.
    pub steps: Option<u64>,
    pub usage: Option<Usage>,
    pub model: Option<String>,
    pub warnings: Vec<String>,
}

/// Why the spans of a request do not show what the agent did.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObservationError {
    #[error(
        "no spans of this request arrived within {} ms: the agent must export its spans to {endpoint} before that time \
         ('agent.telemetry.waitMs')",
        .waited.as_millis()
    )]
    NoSpans { waited: Duration, endpoint: String },
    #[error(
        "no spans of this request arrived within {} ms, but spans of {other_traces} other traces: the agent must \
         continue the trace of the request header 'traceparent'",
        .waited.as_millis()
    )]
    OtherTraces { waited: Duration, other_traces: usize },
    #[error(
        "the {spans} spans of this request show neither model calls nor tool calls: instrument the agent with the \
         GenAI conventions of OpenTelemetry or OpenInference"
    )]
    NoAgentSpans { spans: usize },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traceparent_has_the_form_of_the_standard() {
        let context = TraceContext {
            trace_id: "0af7651916cd43dd8448eb211c80319c".to_owned(),
            span_id: "b7ad6b7169203331".to_owned(),
        };
        assert_eq!(context.traceparent(), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    }
}
