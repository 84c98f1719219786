//! Stored traces.

use std::collections::BTreeSet;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::document::{AnswerDocument, CallView, StepView, TraceDocument, UnreadableTrace};
use crate::rating::Rating;
use crate::trace::ToolCall;
use karat_json::hash::short_hash;

/// Maximum length of a preview, in characters.
const MAX_PREVIEW_CHARS: usize = 200;

/// Summary of a trace, derived from its document alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct TraceHead {
    pub trace_id: String,
    pub name: Option<String>,
    pub session_id: Option<String>,
    /// The model of the last step that names one.
    pub model: Option<String>,
    /// ISO 8601; null if unknown.
    #[schemars(with = "Option<String>")]
    pub started_at: Option<Timestamp>,
    pub duration_ms: Option<u64>,
    pub steps: u64,
    pub tool_calls: u64,
    /// Steps and tool calls that failed.
    pub errors: u64,
    /// The names of the called tools, sorted, without duplicates.
    pub tools: Vec<String>,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cost_usd: Option<f64>,
    /// The start of the first user message.
    pub input_preview: String,
    /// The start of the last response.
    pub output_preview: String,
    /// The first twelve hex digits of the SHA-256 of the document's text.
    pub hash: String,
}

/// A trace to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTrace {
    pub head: TraceHead,
    /// The kind of source: `karat`, `otlp`, `langfuse`, `run`, …
    pub source: String,
    /// The document's JSON text, passed to eval functions byte for byte.
    pub document: String,
    /// The data as the source sent it, so that it can be imported again; `None` if it is the document.
    pub raw: Option<Vec<u8>>,
    pub expected: ExpectedState,
}

/// The state of the stored trace that a write relies on, for optimistic concurrency.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ExpectedState {
    /// Any state; an existing trace is replaced.
    #[default]
    Any,
    /// The trace is not stored yet.
    Absent,
    /// The trace is stored, and its raw payload has this hash.
    RawHash(String),
}

/// The outcome of storing a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PutOutcome {
    Added,
    /// The document differs from the stored one, so the trace is judged again.
    Changed,
    /// Everything was already stored.
    Unchanged,
    /// Another writer stored it in the meantime: nothing was written, and the caller has to retry.
    Conflict,
}

/// A trace from the store.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredTrace {
    pub head: TraceHead,
    pub source: String,
    /// The document's JSON text; see [`StoredTrace::document`].
    pub text: String,
    pub imported_at: Timestamp,
}

/// An entry of a trace list.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "karat trace")]
pub struct TraceListItem {
    #[serde(flatten)]
    pub head: TraceHead,
    /// The kind of source.
    pub source: String,
    /// ISO 8601.
    #[schemars(with = "String")]
    pub imported_at: Timestamp,
    /// The combined rating; null if there is none.
    pub rating: Option<Rating>,
}

/// A trace filter. All given conditions must hold; the default matches all traces.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TraceFilter {
    /// Only these ids, if any are given.
    pub ids: Vec<String>,
    pub sources: Vec<String>,
    /// Not of this source.
    pub excluded_source: Option<String>,
    /// Started at or after this time; a trace without a start time counts by its import time.
    pub since: Option<Timestamp>,
    /// Started before this time.
    pub until: Option<Timestamp>,
    /// Called all of these tools.
    pub tools: Vec<String>,
    pub model: Option<String>,
    pub session: Option<String>,
    /// With errors, or without.
    pub errors: Option<bool>,
    /// Has this combined rating.
    pub rating: Option<Rating>,
    /// Whether it has a rating.
    pub rated: Option<bool>,
    /// The name or a preview contains this, ignoring case.
    pub text: Option<String>,
    /// Only the newest ones, up to this number.
    pub limit: Option<u64>,
}

impl StoredTrace {
    /// Parses the document. Eval functions use the text instead.
    pub fn document(&self) -> Result<TraceDocument, UnreadableTrace> {
        let unreadable = |source| UnreadableTrace { trace_id: self.head.trace_id.clone(), source };
        TraceDocument::parse(self.text.as_str()).map_err(unreadable)
    }
}

impl TraceHead {
    /// Summarises a document.
    pub fn from_document(trace_id: &str, document: &TraceDocument) -> Self {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let tools: BTreeSet<&str> = document.calls().filter_map(CallView::name).collect();
        let step_errors = document.steps().filter_map(StepView::error).count();
        let errors = step_errors + document.calls().filter_map(CallView::error).count();
        let started_at = document.started_at();
        let times = started_at.zip(document.ended_at());
        let duration = times.map(|(start, end)| end.duration_since(start).as_millis());
        let usage = document.usage();
        Self {
            trace_id: trace_id.to_owned(),
            name: owned(document.name()),
            session_id: owned(document.session_id().and_then(Value::as_str)),
            model: owned(document.model()),
            started_at,
            duration_ms: duration.and_then(|duration| u64::try_from(duration).ok()),
            steps: document.steps().len() as u64,
            tool_calls: document.calls().count() as u64,
            errors: errors as u64 + u64::from(document.error().is_some()),
            tools: tools.into_iter().map(str::to_owned).collect(),
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cost_usd: usage.cost_usd,
            input_preview: document.steps().find_map(|step| preview(step.message()?)).unwrap_or_default(),
            output_preview: document
                .steps()
                .rev()
                .find_map(|step| preview(step.response()?.as_str()?))
                .unwrap_or_default(),
            hash: short_hash(document.text().as_bytes()),
        }
    }
}

impl NewTrace {
    /// Builds the trace of an answer. The document is serialised once and not parsed again.
    pub fn from_answer(document: &AnswerDocument<'_>, source: &str) -> Self {
        let text = serde_json::to_string(document).unwrap_or_default();
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let calls = document.tool_calls;
        let tools: BTreeSet<&str> = calls.iter().map(|call| call.name.as_str()).collect();
        let errors = calls.iter().filter_map(ToolCall::failure).filter(|error| !error.is_empty()).count();
        let head = TraceHead {
            trace_id: document.trace_id.to_owned(),
            name: owned(document.origin.map(|origin| origin.case_id)),
            model: owned(document.model),
            steps: document.step_count() as u64,
            tool_calls: calls.len() as u64,
            errors: errors as u64,
            tools: tools.into_iter().map(str::to_owned).collect(),
            input_tokens: document.usage.and_then(|usage| usage.input_tokens),
            output_tokens: document.usage.and_then(|usage| usage.output_tokens),
            cost_usd: document.usage.and_then(|usage| usage.cost_usd),
            input_preview: preview(document.message).unwrap_or_default(),
            output_preview: document.responses().rev().find_map(preview).unwrap_or_default(),
            hash: short_hash(text.as_bytes()),
            ..TraceHead::default()
        };
        Self { head, source: source.to_owned(), document: text, raw: None, expected: ExpectedState::Any }
    }
}

/// Returns the start of a string on one line, or `None` if it is blank.
fn preview(text: &str) -> Option<String> {
    let mut preview = String::with_capacity(text.len().min(MAX_PREVIEW_CHARS * 4));
    for word in text.split_whitespace() {
        if !preview.is_empty() {
            preview.push(' ');
        }
        preview.push_str(word);
        if preview.len() > MAX_PREVIEW_CHARS * 4 {
            break;
        }
    }
    if let Some((end, _)) = preview.char_indices().nth(MAX_PREVIEW_CHARS) {
        preview.truncate(end);
    }
    (!preview.is_empty()).then_some(preview)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::document::RunOrigin;
    use crate::trace::Usage;
    use crate::turn_details::TurnDetails;

    fn head_of(document: &Value) -> TraceHead {
        TraceHead::from_document("t", &TraceDocument::parse(document.to_string()).expect("valid trace"))
    }

    #[test]
    fn head_summarises_the_document() {
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
        let head = head_of(&document);
        assert_eq!((head.steps, head.tool_calls, head.errors), (3, 3, 2));
        assert_eq!((head.tools, head.duration_ms), (vec!["a".to_owned(), "b".to_owned()], Some(1500)));
        assert_eq!((head.input_preview.as_str(), head.output_preview.as_str()), ("Will it rain?", "Yes."));
        assert_eq!((head.model.as_deref(), head.input_tokens), (Some("m-1"), Some(12)));
    }

    #[test]
    fn the_head_of_an_answer_equals_the_head_of_its_document() {
        let call = |name: &str, success, error: Option<&str>| ToolCall {
            name: name.to_owned(),
            success,
            error: error.map(str::to_owned),
            raw_params: error.map(str::to_owned),
            ..ToolCall::default()
        };
        let calls = [call("b", Some(false), None), call("a", None, Some("broke")), call("b", Some(true), Some(""))];
        let usage = Usage { input_tokens: Some(3), cost_usd: Some(0.25), ..Usage::default() };
        let origin = RunOrigin { run_id: "r", eval_file: "a.golden.json", case_id: "gs-1", trial: 2, agent: "bot" };
        let full = AnswerDocument {
            trace_id: "r:1:gs-1:2",
            message: " Will it\n rain? ",
            response: "Yes: \"rain\".",
            tool_calls: &calls,
            model: Some("m-1"),
            stop_reason: Some("stop"),
            usage: Some(&usage),
            turns: &[],
            first_turn: 0,
            origin: Some(origin),
        };
        let empty = AnswerDocument {
            message: "",
            response: " ",
            tool_calls: &[],
            model: None,
            usage: None,
            origin: None,
            ..full
        };
        let answered = |message: &str, response: &str, tool_calls: &[ToolCall]| TurnDetails {
            message: message.to_owned(),
            response: Some(response.to_owned()),
            tool_calls: tool_calls.to_vec(),
            ..TurnDetails::default()
        };
        let turns = [
            answered(" Will it\n rain? ", "Where?", &calls[..1]),
            answered("Here.", " ", &calls[1..]),
            TurnDetails::not_run("Thanks"),
        ];
        let conversation = AnswerDocument { response: " ", turns: &turns, ..full };
        for document in [full, empty, conversation] {
            let trace = NewTrace::from_answer(&document, "run");
            let parsed = TraceDocument::parse(trace.document.as_str()).expect("valid trace");
            assert_eq!(trace.head, TraceHead::from_document(document.trace_id, &parsed));
        }
        let expected = concat!(
            r#"{"trace_id":"r:1:gs-1:2","steps":[{"input":{"message":""},"output":{"response":" "},"tool_calls":[],"#,
            r#""error":null}],"stop_reason":"stop"}"#
        );
        assert_eq!(NewTrace::from_answer(&empty, "run").document, expected);
    }

    #[test]
    fn ignores_times_before_the_epoch() {
        for time in ["-000044-03-15T12:00:00Z", "0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z"] {
            let document = json!({"started_at": time, "ended_at": "2026-01-02T03:04:05Z", "steps": []});
            let head = head_of(&document);
            assert_eq!((head.started_at, head.duration_ms), (None, None), "{time}");
        }
        let first = json!({"started_at": "1970-01-01T00:00:00Z", "steps": []});
        assert_eq!(head_of(&first).started_at, Some(Timestamp::UNIX_EPOCH));
    }

    #[test]
    fn previews_plain_text_inputs_and_outputs() {
        let head = head_of(&json!({"steps": [{"input": " ", "output": 3}, {"input": "hello", "output": "hi"}]}));
        assert_eq!((head.input_preview.as_str(), head.output_preview.as_str()), ("hello", "hi"));
        let head =
            head_of(&json!({"steps": [{"input": {"messages": []}, "output": {"value": "hi"}, "tool_calls": null}]}));
        assert_eq!((head.input_preview.as_str(), head.output_preview.as_str(), head.errors), ("", "", 0));
    }

    #[test]
    fn an_unreadable_document_is_an_error_with_the_id() {
        let stored = |text: &str| StoredTrace {
            head: TraceHead { trace_id: "t-1".to_owned(), ..TraceHead::default() },
            source: "karat".to_owned(),
            text: text.to_owned(),
            imported_at: Timestamp::UNIX_EPOCH,
        };
        assert_eq!(stored(r#"{"steps": []}"#).document().expect("valid trace").steps().len(), 0);
        for text in ["", "{\"steps\": [", "null", "{}"] {
            let error = stored(text).document().expect_err("unreadable");
            assert_eq!(error.trace_id, "t-1");
            assert!(error.to_string().starts_with("cannot read the document of trace 't-1': "), "{error}");
        }
    }
}
