//! Properties that hold for any input.

use std::io::Cursor;

use karat_traces::{Piece, TraceFormat, assemble, read};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Keys that readers look for, so that generated JSON is not just unrecognised.
const KEYS: [&str; 40] = [
    "trace_id",
    "steps",
    "tool_calls",
    "name",
    "arguments",
    "error",
    "messages",
    "role",
    "content",
    "type",
    "text",
    "id",
    "request",
    "response",
    "choices",
    "message",
    "traj",
    "reward",
    "task_id",
    "trial",
    "info",
    "trace",
    "observations",
    "scores",
    "input",
    "output",
    "metadata",
    "startTime",
    "parentObservationId",
    "run_type",
    "inputs",
    "outputs",
    "child_runs",
    "dotted_order",
    "extra",
    "feedback_stats",
    "data",
    "system",
    "usage",
    "tool_call_id",
];

const STRINGS: [&str; 16] = [
    "user",
    "assistant",
    "tool",
    "system",
    "text",
    "tool_use",
    "tool_result",
    "GENERATION",
    "TOOL",
    "SPAN",
    "llm",
    "ANNOTATION",
    "2026-01-01T00:00:00Z",
    "{\"a\":[1]}",
    "\"\\\"x\\\"\"",
    "",
];

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(&STRINGS[..]).prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec((prop::sample::select(&KEYS[..]), inner), 0..7).prop_map(|members| {
                Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
            }),
        ]
    })
}

/// Places a value where the reader of each format looks for one.
fn all_shapes(value: &Value) -> Vec<(TraceFormat, Value)> {
    vec![
        (TraceFormat::Karat, json!({"trace_id": "t", "steps": value})),
        (TraceFormat::OpenAi, json!({"messages": value, "response": value})),
        (TraceFormat::Anthropic, json!({"messages": [{"role": "user", "content": value}], "system": value})),
        (TraceFormat::TauBench, json!({"traj": value, "reward": value, "info": {"task": value}})),
        (TraceFormat::TauBench, json!({"traj": [{"role": "tool", "content": value}]})),
        (
            TraceFormat::Langfuse,
            json!({"trace": {"id": "t", "scores": value, "tags": value, "metadata": value}, "observations": value}),
        ),
        (
            TraceFormat::Langfuse,
            json!({"id": "t", "observations": [{"id": "o", "type": "GENERATION", "input": value, "output": value, "metadata": value}]}),
        ),
        (
            TraceFormat::LangSmith,
            json!({"id": "r", "run_type": "llm", "inputs": value, "outputs": value, "extra": value, "child_runs": value, "feedback_stats": value}),
        ),
    ]
}

fn read_all(format: Option<TraceFormat>, text: &str) -> Vec<String> {
    let show = |result| match result {
        Ok(Piece::Whole(imported)) => format!("{imported:?}"),
        Ok(Piece::Parts(parts)) => format!("{:?}", assemble(&parts)),
        Err(error) => format!("{error}"),
    };
    read(format, Cursor::new(text.as_bytes().to_vec())).map(show).collect()
}

proptest! {
    #[test]
    fn reading_any_json_is_deterministic(value in any_value()) {
        for (format, shape) in all_shapes(&value) {
            let text = shape.to_string();
            let read = read_all(Some(format), &text);
            prop_assert_eq!(&read, &read_all(Some(format), &text));
            prop_assert!(!read.is_empty() || format == TraceFormat::LangSmith, "{} yields nothing for {}", format, text);
        }
        for format in TraceFormat::ALL.into_iter().map(Some).chain([None]) {
            read_all(format, &value.to_string());
        }
    }

    #[test]
    fn reading_any_bytes_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for format in TraceFormat::ALL.into_iter().map(Some).chain([None]) {
            read(format, Cursor::new(bytes.clone())).for_each(drop);
        }
    }

    #[test]
    fn imported_documents_can_be_imported_again(value in any_value()) {
        for (format, shape) in all_shapes(&value) {
            for piece in read(Some(format), Cursor::new(shape.to_string().into_bytes())).flatten() {
                let document = match piece {
                    Piece::Whole(imported) => imported.document,
                    Piece::Parts(parts) => assemble(&parts).document.to_text(),
                };
                let again: Vec<_> = read(Some(TraceFormat::Karat), Cursor::new(document.clone().into_bytes())).collect();
                prop_assert!(matches!(&again[..], [Ok(Piece::Whole(imported))] if imported.document == document), "{} {:?}", document, again);
            }
        }
    }
}
