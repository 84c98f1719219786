//! Traces as they are kept.

use std::collections::BTreeSet;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::feedback::Rating;
use karat_json::hash::short_hash;

/// How long a preview is, in characters.
const PREVIEW: usize = 200;

/// What is known of a trace without reading its steps; made from the trace's document alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct TraceHead {
    pub trace_id: String,
    pub name: Option<String>,
    pub session_id: Option<String>,
    /// The model of the last step that names one.
    pub model: Option<String>,
    /// ISO 8601; null where the source does not say.
    #[schemars(with = "Option<String>")]
    pub started_at: Option<Timestamp>,
    pub duration_ms: Option<u64>,
    pub steps: u64,
    pub tool_calls: u64,
    /// Steps and tool calls that failed.
    pub errors: u64,
    /// The names of the tools that were called, each once, sorted.
    pub tools: Vec<String>,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cost_usd: Option<f64>,
    /// The beginning of the first user message.
    pub input_preview: String,
    /// The beginning of the last response.
    pub output_preview: String,
    /// SHA-256 of the document's text, the first twelve hex digits.
    pub hash: String,
}

/// A trace on its way into the store.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTrace {
    pub head: TraceHead,
    /// The kind of source: `karat`, `otlp`, `langfuse`, `run`, …
    pub source: String,
    /// The document's JSON text, which eval functions are given byte for byte.
    pub document: String,
    /// What the source said, as it said it, for a later and better reading.
    pub raw: Vec<u8>,
    pub expected: Expected,
}

/// What a writer has seen in the store, for what it makes of a trace may depend on what was there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Expected {
    /// Whatever is there is replaced.
    #[default]
    Anything,
    /// There was no such trace.
    Nothing,
    /// There was one with this hash of its raw payload.
    Raw(String),
}

/// What came of a trace that was put into the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Put {
    Added,
    /// The document is another one than before, so that it is judged again.
    Changed,
    /// Everything was there already.
    Unchanged,
    /// Somebody else wrote it since it was looked at: nothing was written, and the writer has to look again.
    Conflict,
}

/// A trace out of the store.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredTrace {
    pub head: TraceHead,
    pub source: String,
    pub document: String,
    pub imported_at: Timestamp,
}

/// A line of a list of traces.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "karat trace")]
pub struct TraceListed {
    #[serde(flatten)]
    pub head: TraceHead,
    /// The kind of source that it came from.
    pub source: String,
    /// ISO 8601.
    #[schemars(with = "String")]
    pub imported_at: Timestamp,
    /// What people say of it together; null where nobody said anything.
    pub rating: Option<Rating>,
}

/// Which traces are meant. What is given narrows each other; the default is all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TraceFilter {
    /// Exactly these, where there are any.
    pub ids: Vec<String>,
    pub sources: Vec<String>,
    /// Began at this time or later; a trace without a time counts by its import.
    pub since: Option<Timestamp>,
    /// Began before this time.
    pub until: Option<Timestamp>,
    /// Called all of these tools.
    pub tools: Vec<String>,
    pub model: Option<String>,
    pub session: Option<String>,
    /// With errors, or without.
    pub errors: Option<bool>,
    /// Rated so by people together.
    pub rating: Option<Rating>,
    /// Rated at all, or not.
    pub rated: Option<bool>,
    /// The name or a preview contains this, whatever the case of its letters.
    pub text: Option<String>,
    /// The newest this many.
    pub limit: Option<u64>,
}

impl TraceHead {
    /// Reads what is known of a document, and nothing that it does not say: whatever is of another shape is passed over.
    /// `text` is the document's own text.
    pub fn of(trace_id: &str, document: &Value, text: &str) -> Self {
        let string = |key: &str| document.get(key).and_then(Value::as_str).map(str::to_owned);
        // No agent ran before 1970: such a time is a clock that nobody set, or no time at all.
        let is_likely = |time: &Timestamp| *time >= Timestamp::UNIX_EPOCH;
        let time = |key: &str| document.get(key).and_then(Value::as_str)?.parse::<Timestamp>().ok().filter(is_likely);
        let steps = document.get("steps").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let calls = || steps.iter().flat_map(|step| list(step, "tool_calls"));
        let tools: BTreeSet<&str> = calls().filter_map(|call| call.get("name")?.as_str()).collect();
        let failed = |value: &&Value| value.get("error").is_some_and(says_something);
        let (started_at, ended_at) = (time("started_at"), time("ended_at"));
        let duration = started_at.zip(ended_at).map(|(start, end)| end.duration_since(start).as_millis());
        let usage = |key: &str| document.get("usage").and_then(|usage| usage.get(key));
        let step_model = || steps.iter().rev().find_map(|step| step.get("model")?.as_str().map(str::to_owned));
        let whole = u64::from(document.get("error").is_some_and(says_something));
        Self {
            trace_id: trace_id.to_owned(),
            name: string("name"),
            session_id: string("session_id"),
            model: string("model").or_else(step_model),
            started_at,
            duration_ms: duration.and_then(|duration| u64::try_from(duration).ok()),
            steps: steps.len() as u64,
            tool_calls: calls().count() as u64,
            errors: (steps.iter().filter(failed).count() + calls().filter(failed).count()) as u64 + whole,
            tools: tools.into_iter().map(str::to_owned).collect(),
            input_tokens: usage("input_tokens").and_then(Value::as_u64),
            output_tokens: usage("output_tokens").and_then(Value::as_u64),
            cost_usd: usage("cost_usd").and_then(Value::as_f64),
            input_preview: steps.iter().find_map(|step| said(step.get("input")?, "message")).unwrap_or_default(),
            output_preview: steps
                .iter()
                .rev()
                .find_map(|step| said(step.get("output")?, "response"))
                .unwrap_or_default(),
            hash: short_hash(text.as_bytes()),
        }
    }
}

fn list<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// Tells whether an error is there: null, false and an empty text say that there is none.
fn says_something(error: &Value) -> bool {
    !matches!(error, Value::Null | Value::Bool(false)) && error.as_str() != Some("")
}

/// Returns the beginning of what is said under the key, or of the value where it is a text itself.
fn said(value: &Value, key: &str) -> Option<String> {
    let text = value.get(key).unwrap_or(value).as_str().filter(|text| !text.trim().is_empty())?;
    let words = text.split_whitespace();
    let mut preview = String::new();
    for word in words {
        if !preview.is_empty() {
            preview.push(' ');
        }
        preview.push_str(word);
        if preview.len() > PREVIEW * 4 {
            break;
        }
    }
    Some(preview.chars().take(PREVIEW).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_head_is_read_from_the_document() {
        let document = json!({
            "trace_id": "t",
            "started_at": "2026-01-02T03:04:05Z",
            "ended_at": "2026-01-02T03:04:06.5Z",
            "usage": { "input_tokens": 12 },
            "steps": [
                { "input": { "message": " Will it\n rain? " }, "tool_calls": [
                    { "name": "b", "error": "broke" }, { "name": "a", "error": null }, { "name": "b" }
                ], "error": "late", "model": "m-1" },
                { "output": { "response": "Yes." }, "error": "" },
                { "output": { "response": "" } }
            ]
        });
        let head = TraceHead::of("t", &document, "text");
        assert_eq!((head.steps, head.tool_calls, head.errors), (3, 3, 2));
        assert_eq!((head.tools, head.duration_ms), (vec!["a".to_owned(), "b".to_owned()], Some(1500)));
        assert_eq!((head.input_preview.as_str(), head.output_preview.as_str()), ("Will it rain?", "Yes."));
        assert_eq!((head.model.as_deref(), head.input_tokens), (Some("m-1"), Some(12)));
    }

    #[test]
    fn a_time_before_all_agents_is_none() {
        for time in ["-000044-03-15T12:00:00Z", "0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z"] {
            let document = json!({"started_at": time, "ended_at": "2026-01-02T03:04:05Z", "steps": []});
            let head = TraceHead::of("t", &document, "");
            assert_eq!((head.started_at, head.duration_ms), (None, None), "{time}");
        }
        let first = json!({"started_at": "1970-01-01T00:00:00Z", "steps": []});
        assert_eq!(TraceHead::of("t", &first, "").started_at, Some(Timestamp::UNIX_EPOCH));
    }

    #[test]
    fn a_document_of_another_shape_has_a_head_too() {
        for document in [json!({}), json!([]), json!({"steps": 3}), json!({"steps": [1, {"tool_calls": {}}]})] {
            let head = TraceHead::of("t", &document, "");
            assert_eq!((head.tool_calls, head.errors), (0, 0), "{document}");
        }
        let plain = json!({"steps": [{"input": "hello", "output": "hi"}]});
        assert_eq!(TraceHead::of("t", &plain, "").input_preview, "hello");
    }
}
