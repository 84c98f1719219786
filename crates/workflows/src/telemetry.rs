//! Collects the spans that agents export while a run executes, and reads their tool calls.
//!
//! The spans of a request are joined by the trace id that was sent with it. They may arrive late, twice, or in any
//! order: a request is complete when the agent's outermost span and the parents of all its spans are there, and nothing
//! new came for a moment.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use karat_core::document::{StepCall, TraceContent};
use karat_core::port::{BoxFuture, Observation, ObservationError, Telemetry, TraceContext};
use karat_core::trace::{ToolCall, Usage};
use karat_traces::{TraceParts, assemble};
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Part of the waiting time during which nothing new may arrive after the spans are complete.
const SETTLING_SHARE: u32 = 10;

/// Limits of the time that complete spans settle.
const MIN_SETTLING: Duration = Duration::from_millis(50);
const MAX_SETTLING: Duration = Duration::from_millis(300);

/// Maximum number of ids of other traces that are kept to count them.
const MAX_OTHER_TRACES: usize = 10_000;

/// The receiver of the spans of a run.
pub struct SpanCollector {
    /// The URL to which agents export, for messages.
    endpoint: String,
    /// Maximum time from the reply to the last span.
    wait: Duration,
    state: Mutex<State>,
    /// Notified when spans arrive.
    arrived: Notify,
}

#[derive(Default)]
struct State {
    /// By trace id.
    expected: HashMap<String, CollectedSpans>,
    /// Trace ids that no request had.
    other_traces: HashSet<String>,
}

struct CollectedSpans {
    parts: Option<TraceParts>,
    /// The parent of the outermost spans.
    span_id: String,
    last_arrival: Instant,
}

impl SpanCollector {
    pub fn new(endpoint: String, wait: Duration) -> Self {
        Self { endpoint, wait, state: Mutex::default(), arrived: Notify::new() }
    }

    /// Adds received spans to the requests that they belong to.
    pub fn add(&self, parts: Vec<TraceParts>) {
        let mut state = self.lock();
        let State { expected, other_traces } = &mut *state;
        for part in parts {
            match expected.get_mut(&part.trace_id) {
                Some(collected) => {
                    collected.last_arrival = Instant::now();
                    match &mut collected.parts {
                        Some(known) => known.merge(part),
                        none => *none = Some(part),
                    }
                }
                None if other_traces.len() < MAX_OTHER_TRACES => {
                    other_traces.insert(part.trace_id);
                }
                None => {}
            }
        }
        drop(state);
        self.arrived.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the spans are complete and settled, at most until the deadline, and takes them.
    async fn take_when_complete(&self, trace_id: &str, deadline: Instant) -> Option<CollectedSpans> {
        let settling = (self.wait / SETTLING_SHARE).clamp(MIN_SETTLING, MAX_SETTLING);
        loop {
            // Before the state is read, so that no arrival is missed.
            let arrived = self.arrived.notified();
            tokio::pin!(arrived);
            arrived.as_mut().enable();
            let settled = self.lock().expected.get(trace_id)?.settled_at(settling);
            let until = settled.unwrap_or(deadline).min(deadline);
            if Instant::now() >= until {
                return self.lock().expected.remove(trace_id);
            }
            tokio::select! {
                () = arrived => {}
                () = sleep_until(until) => {}
            }
        }
    }

    async fn observe_trace(&self, context: &TraceContext) -> Result<Observation, ObservationError> {
        let collected = self.take_when_complete(&context.trace_id, Instant::now() + self.wait).await;
        let Some((collected, parts)) = collected.and_then(|mut all| all.parts.take().map(|parts| (all, parts))) else {
            let other_traces = self.lock().other_traces.len();
            return Err(match other_traces {
                0 => ObservationError::NoSpans { waited: self.wait, endpoint: self.endpoint.clone() },
                _ => ObservationError::OtherTraces { waited: self.wait, other_traces },
            });
        };
        let assembled = assemble(&parts);
        if !assembled.has_agent_spans {
            return Err(ObservationError::NoAgentSpans { spans: parts.spans.len() });
        }
        let mut observation = observation(assembled.document);
        let missing = collected.missing_parents(&parts);
        if missing > 0 {
            let message = format!(
                "the spans of this request are incomplete after {} ms: {missing} of their parents did not arrive",
                self.wait.as_millis()
            );
            observation.warnings.push(message);
        }
        Ok(observation)
    }
}

impl Telemetry for SpanCollector {
    fn expect(&self, context: &TraceContext) {
        let collected = CollectedSpans { parts: None, span_id: context.span_id.clone(), last_arrival: Instant::now() };
        self.lock().expected.insert(context.trace_id.clone(), collected);
    }

    fn observe<'a>(&'a self, context: &'a TraceContext) -> BoxFuture<'a, Result<Observation, ObservationError>> {
        Box::pin(self.observe_trace(context))
    }

    fn forget(&self, context: &TraceContext) {
        self.lock().expected.remove(&context.trace_id);
    }
}

impl CollectedSpans {
    /// Returns when the spans are settled, if they are complete.
    fn settled_at(&self, settling: Duration) -> Option<Instant> {
        let parts = self.parts.as_ref()?;
        let has_outermost = parts.spans.values().any(|span| span.parent.as_ref() == Some(&self.span_id));
        (has_outermost && self.missing_parents(parts) == 0).then(|| self.last_arrival + settling)
    }

    /// Returns the number of parents that did not arrive.
    fn missing_parents(&self, parts: &TraceParts) -> usize {
        let parents: HashSet<&String> = parts.spans.values().filter_map(|span| span.parent.as_ref()).collect();
        parents.into_iter().filter(|parent| **parent != self.span_id && !parts.spans.contains_key(*parent)).count()
    }
}

fn observation(document: TraceContent) -> Observation {
    let usage = document.usage.map(|usage| Usage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cached_input_tokens: usage.cached_input_tokens,
        cost_usd: usage.cost_usd,
    });
    // A step without a model was made for a tool that ran outside of all model calls.
    let are_model_calls = document.steps.iter().all(|step| step.model.is_some());
    let steps = are_model_calls.then(|| u64::try_from(document.steps.len()).unwrap_or(u64::MAX));
    let calls = (0..).zip(document.steps).flat_map(|(index, step)| {
        step.tool_calls.into_iter().map(move |call| ToolCall { step: steps.map(|_| index), ..tool_call(call) })
    });
    Observation { tool_calls: calls.collect(), steps, usage, model: document.model, warnings: Vec::new() }
}

fn tool_call(call: StepCall) -> ToolCall {
    // Only the span of an execution has a duration; a call that a model only requested has an unknown outcome.
    let was_executed = call.duration_ms.is_some() || !call.result.is_null();
    let success = if call.error.is_some() { Some(false) } else { was_executed.then_some(true) };
    let (params, raw_params) = match call.arguments {
        Value::Object(params) => (params, None),
        Value::Null => (Map::new(), None),
        other => (Map::new(), Some(other.as_str().map_or_else(|| other.to_string(), str::to_owned))),
    };
    ToolCall {
        name: call.name,
        success,
        duration_ms: call.duration_ms,
        params,
        raw_params,
        result: Some(call.result).filter(|result| !result.is_null()),
        error: call.error,
        step: None,
    }
}

#[cfg(test)]
mod tests {
    use karat_traces::{Span, TraceFormat};
    use serde_json::json;

    use super::*;

    const WAIT: Duration = Duration::from_secs(2);

    fn context() -> TraceContext {
        TraceContext { trace_id: "t1".to_owned(), span_id: "request".to_owned() }
    }

    fn collector() -> SpanCollector {
        let collector = SpanCollector::new("http://127.0.0.1:4318".to_owned(), WAIT);
        collector.expect(&context());
        collector
    }

    #[expect(clippy::needless_pass_by_value, reason = "called with json! literals")]
    fn span(id: &str, parent: &str, attributes: Value) -> TraceParts {
        let attributes = attributes.as_object().cloned().unwrap_or_default();
        let span = Span { id: id.to_owned(), parent: Some(parent.to_owned()), attributes, ..Span::default() };
        let mut parts = TraceParts::new(TraceFormat::Otlp, "t1");
        parts.add_span(span);
        parts
    }

    fn agent() -> TraceParts {
        span("agent", "request", json!({"gen_ai.operation.name": "invoke_agent"}))
    }

    fn tool(id: &str, name: &str) -> TraceParts {
        let attributes = json!({
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name,
            "gen_ai.tool.call.arguments": "{\"city\": \"Oslo\"}", "gen_ai.tool.call.result": "{\"ok\": 1}",
        });
        span(id, "agent", attributes)
    }

    fn names(observation: &Observation) -> Vec<&str> {
        observation.tool_calls.iter().map(|call| call.name.as_str()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn joins_spans_that_arrive_twice_and_out_of_order() {
        let collector = collector();
        collector.add(vec![agent()]);
        collector.add(vec![tool("a", "get_weather"), tool("a", "get_weather")]);
        let start = Instant::now();
        let observation = collector.observe(&context()).await.expect("spans arrived");
        assert_eq!(names(&observation), ["get_weather"]);
        assert_eq!(observation.tool_calls[0].params["city"], "Oslo");
        assert_eq!(observation.tool_calls[0].success, Some(true));
        assert!(start.elapsed() < WAIT / 2, "complete spans do not wait for the limit");
    }

    #[tokio::test(start_paused = true)]
    async fn waits_for_late_spans() {
        let collector = collector();
        collector.add(vec![tool("a", "get_weather")]);
        let late = async {
            tokio::time::sleep(WAIT / 2).await;
            collector.add(vec![agent(), tool("b", "get_order")]);
        };
        let context = context();
        let (observation, ()) = tokio::join!(collector.observe(&context), late);
        let observation = observation.expect("spans arrived");
        assert_eq!(observation.tool_calls.len(), 2);
        assert!(observation.warnings.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn warns_about_incomplete_spans() {
        let collector = collector();
        collector.add(vec![tool("a", "get_weather")]);
        let observation = collector.observe(&context()).await.expect("spans arrived");
        assert_eq!(
            observation.warnings,
            ["the spans of this request are incomplete after 2000 ms: 1 of their parents did not arrive"]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn missing_spans_are_an_error() {
        let collector = collector();
        let error = collector.observe(&context()).await.expect_err("no spans");
        assert!(matches!(error, ObservationError::NoSpans { .. }), "{error}");
        collector.expect(&context());
        collector.add(vec![TraceParts::new(TraceFormat::Otlp, "another")]);
        let error = collector.observe(&context()).await.expect_err("no spans");
        assert!(matches!(error, ObservationError::OtherTraces { other_traces: 1, .. }), "{error}");
        collector.expect(&context());
        collector.add(vec![span("http", "request", json!({"http.request.method": "POST"}))]);
        let error = collector.observe(&context()).await.expect_err("no agent spans");
        assert_eq!(error, ObservationError::NoAgentSpans { spans: 1 });
    }
}
