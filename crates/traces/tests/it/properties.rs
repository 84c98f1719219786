//! What holds for any input.

use std::io::Cursor;

use karat_traces::{Kind, Piece, assemble, read};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Names that readers look for, so that any JSON is not just unknown.
const NAMES: [&str; 40] = [
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

const WORDS: [&str; 16] = [
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
        prop::sample::select(&WORDS[..]).prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec((prop::sample::select(&NAMES[..]), inner), 0..7).prop_map(|members| {
                Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
            }),
        ]
    })
}

/// Puts a value where each kind looks for one.
fn all_shapes(value: &Value) -> Vec<(Kind, Value)> {
    vec![
        (Kind::Karat, json!({"trace_id": "t", "steps": value})),
        (Kind::OpenAi, json!({"messages": value, "response": value})),
        (Kind::Anthropic, json!({"messages": [{"role": "user", "content": value}], "system": value})),
        (Kind::TauBench, json!({"traj": value, "reward": value, "info": {"task": value}})),
        (Kind::TauBench, json!({"traj": [{"role": "tool", "content": value}]})),
        (
            Kind::Langfuse,
            json!({"trace": {"id": "t", "scores": value, "tags": value, "metadata": value}, "observations": value}),
        ),
        (
            Kind::Langfuse,
            json!({"id": "t", "observations": [{"id": "o", "type": "GENERATION", "input": value, "output": value, "metadata": value}]}),
        ),
        (
            Kind::LangSmith,
            json!({"id": "r", "run_type": "llm", "inputs": value, "outputs": value, "extra": value, "child_runs": value, "feedback_stats": value}),
        ),
    ]
}

fn all(kind: Option<Kind>, text: &str) -> Vec<String> {
    let show = |one| match one {
        Ok(Piece::Whole(imported)) => format!("{imported:?}"),
        Ok(Piece::Parts(parts)) => format!("{:?}", assemble(&parts)),
        Err(error) => format!("{error}"),
    };
    read(kind, Cursor::new(text.as_bytes().to_vec())).map(show).collect()
}

proptest! {
    #[test]
    fn any_json_is_read_or_refused_the_same_each_time(value in any_value()) {
        for (kind, shape) in all_shapes(&value) {
            let text = shape.to_string();
            let read = all(Some(kind), &text);
            prop_assert_eq!(&read, &all(Some(kind), &text));
            prop_assert!(!read.is_empty() || kind == Kind::LangSmith, "{} says nothing of {}", kind, text);
        }
        for kind in Kind::ALL.into_iter().map(Some).chain([None]) {
            all(kind, &value.to_string());
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for kind in Kind::ALL.into_iter().map(Some).chain([None]) {
            read(kind, Cursor::new(bytes.clone())).for_each(drop);
        }
    }

    #[test]
    fn a_document_survives_its_own_reading(value in any_value()) {
        // What an importer makes is a document that can be imported.
        for (kind, shape) in all_shapes(&value) {
            for one in read(Some(kind), Cursor::new(shape.to_string().into_bytes())).flatten() {
                let document = match one {
                    Piece::Whole(imported) => imported.document,
                    Piece::Parts(parts) => assemble(&parts).document.to_text(),
                };
                let again: Vec<_> = read(Some(Kind::Karat), Cursor::new(document.clone().into_bytes())).collect();
                prop_assert!(matches!(&again[..], [Ok(Piece::Whole(imported))] if imported.document == document), "{} {:?}", document, again);
            }
        }
    }
}
