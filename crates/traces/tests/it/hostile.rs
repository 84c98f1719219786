//! No input makes a reader panic, loop, or depend on the order of its parts.

use std::time::{Duration, Instant};

use karat_traces::{LogEvent, Role, Span, TraceFormat, TraceParts, assemble, jaeger, otlp};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::spans::{document, log, map, parts, span};

/// Any JSON with keys that readers look for.
fn any_json() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "resourceSpans",
        "scopeSpans",
        "spans",
        "traceId",
        "spanId",
        "parentSpanId",
        "attributes",
        "key",
        "value",
        "stringValue",
        "arrayValue",
        "kvlistValue",
        "values",
        "events",
        "name",
        "status",
        "code",
        "startTimeUnixNano",
        "data",
        "processes",
        "tags",
        "logs",
        "fields",
        "references",
        "role",
        "content",
        "parts",
        "type",
        "text",
        "tool_calls",
        "function",
        "arguments",
        "id",
        "messages",
        "message",
        "choices",
        "input",
        "output",
        "kwargs",
        "lc",
        "generations",
        "tool_call_id",
        "toolCallId",
        "trace",
    ]);
    let text = prop_oneof![
        names.clone().prop_map(str::to_owned),
        Just("4bf92f3577b34da6a3ce929d0e0e4736".to_owned()),
        Just("[{\"type\":\"text\"}]".to_owned()),
        Just("assistant".to_owned()),
        Just("tool_call".to_owned()),
        ".{0,6}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.prop_map(Value::from)
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec((names.clone(), inner), 0..6).prop_map(|pairs| Value::Object(
                pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            )),
        ]
    })
}

fn any_attributes() -> impl Strategy<Value = Map<String, Value>> {
    let names = prop::sample::select(vec![
        "gen_ai.operation.name",
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.system_instructions",
        "gen_ai.prompt",
        "gen_ai.completion.0.content",
        "gen_ai.completion.0.tool_calls.0.name",
        "llm.input_messages.0.message.role",
        "llm.input_messages.0",
        "openinference.span.kind",
        "input.value",
        "output.value",
        "gen_ai.tool.name",
        "gen_ai.tool.call.id",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
        "ai.operationId",
        "ai.prompt.messages",
        "ai.response.toolCalls",
        "pydantic_ai.all_messages",
        "pydantic_ai.new_message_index",
        "events",
        "gcp.vertex.agent.llm_request",
        "mlflow.spanType",
        "gen_ai.response.finish_reasons",
        "gen_ai.response.id",
        "gen_ai.usage.input_tokens",
        "annotations.0.annotation.annotator_kind",
        "error.type",
        "metadata",
        "tag.tags",
        "traceloop.entity.input",
    ]);
    let words = prop_oneof![
        any_json(),
        any_json().prop_map(|value| Value::String(value.to_string())),
        prop::sample::select(vec![
            "chat",
            "execute_tool",
            "invoke_agent",
            "LLM",
            "TOOL",
            "AGENT",
            "HUMAN",
            "ai.toolCall"
        ])
        .prop_map(Value::from),
    ];
    prop::collection::vec((names, words), 0..6)
        .prop_map(|pairs| pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

prop_compose! {
    fn any_span()(
        id in "[a-e]",
        parent in prop::option::of("[a-f]"),
        role in prop::option::of(prop::sample::select(vec![Role::Model, Role::Tool, Role::Agent, Role::Other])),
        times in (prop::option::of(0_i64..9), prop::option::of(0_i64..9)),
        attributes in any_attributes(),
        input in prop::option::of(any_json()),
        output in prop::option::of(any_json()),
        error in prop::option::of("[a-z]{0,3}"),
    ) -> Span {
        Span {
            name: id.clone(), id, parent, role, attributes, input, output, error,
            start: times.0.map(crate::spans::at), end: times.1.map(crate::spans::at), ..Span::default()
        }
    }
}

fn any_log() -> impl Strategy<Value = LogEvent> {
    let names = prop::sample::select(vec![
        "gen_ai.user.message",
        "gen_ai.choice",
        "gen_ai.client.inference.operation.details",
        "other",
    ]);
    ("[a-g]", names, 0_i64..4, any_attributes(), any_json())
        .prop_map(|(span, name, second, attributes, body)| log(&span, name, second, Value::Object(attributes), body))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn reading_any_json_does_not_panic(value in any_json()) {
        for read in [otlp::read_value(value.clone()), jaeger::read_value(value)].into_iter().flatten() {
            for parts in &read.traces {
                assemble(parts);
            }
        }
    }

    #[test]
    fn reading_any_bytes_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = otlp::read_protobuf(&bytes);
        let _ = otlp::read_json(&bytes);
    }

    /// The document does not depend on how often and in which order parts arrive.
    #[test]
    fn assembly_is_independent_of_order(
        spans in prop::collection::vec(any_span(), 0..8),
        logs in prop::collection::vec(any_log(), 0..5),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let part = |span: Option<Span>, log: Option<LogEvent>| {
            let mut part = parts(span);
            part.logs.extend(log);
            part
        };
        let pieces: Vec<TraceParts> = spans
            .iter().map(|span| part(Some(span.clone()), None))
            .chain(logs.iter().map(|log| part(None, Some(log.clone()))))
            .collect();
        let mut in_order = TraceParts::new(TraceFormat::Otlp, crate::spans::TRACE);
        for piece in &pieces {
            in_order.merge(piece.clone());
        }
        let mut shuffled = TraceParts::new(TraceFormat::Otlp, crate::spans::TRACE);
        if !pieces.is_empty() {
            for index in &order {
                shuffled.merge(index.get(&pieces).clone());
            }
        }
        for piece in pieces.iter().rev() {
            shuffled.merge(piece.clone());
        }
        prop_assert_eq!(serde_json::to_string(&in_order).unwrap(), serde_json::to_string(&shuffled).unwrap());
        prop_assert_eq!(assemble(&in_order).document.to_text(), assemble(&shuffled).document.to_text());
        // Serialisation round-trips.
        let stored: TraceParts = serde_json::from_str(&serde_json::to_string(&in_order).unwrap()).unwrap();
        prop_assert_eq!(assemble(&stored), assemble(&in_order));
    }
}

#[test]
fn handles_cyclic_and_missing_parents() {
    let model = json!({"gen_ai.operation.name": "chat", "gen_ai.input.messages": [{"role": "user", "content": "Hi"}]});
    let document = document([
        span("a/b", 1, model.clone()),
        span("b/c", 2, json!({})),
        span("c/a", 3, json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t"})),
        span("self/self", 4, model.clone()),
        span("orphan/missing", 5, model),
    ]);
    assert_eq!(document.steps.len(), 3);
}

#[test]
fn handles_missing_and_reversed_times() {
    let mut backwards = span("t", 5, json!({"gen_ai.tool.name": "t"}));
    backwards.end = Some(crate::spans::at(1));
    let mut untimed = span("chat", 0, json!({"gen_ai.operation.name": "chat"}));
    (untimed.start, untimed.end) = (None, None);
    let document = document([backwards, untimed]);
    assert_eq!(document.steps[0].tool_calls[0].duration_ms, None);
    assert_eq!(document.steps[0].started_at, None);
}

#[test]
fn refuses_deeply_nested_json_or_keeps_it_as_text() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(otlp::read_json(deep.as_bytes()).is_err());
    let document = document([span("chat", 0, json!({"gen_ai.operation.name": "chat", "gen_ai.prompt": deep}))]);
    assert_eq!(document.steps[0].input.message.as_deref(), Some(deep.as_str()));
}

/// Each shape has ten thousand spans and is the worst case for a part of the assembly.
#[test]
fn assembles_ten_thousand_spans_within_a_second() {
    const SPAN_COUNT: i64 = 10_000;
    let message = |role: &str, text: String| json!([{"role": role, "content": text}]);
    let chat = |name: String, at: i64| {
        span(
            &name,
            at,
            json!({"gen_ai.operation.name": "chat", "gen_ai.input.messages": message("user", format!("q{at}")), "gen_ai.output.messages": message("assistant", format!("a{at}"))}),
        )
    };
    let empty_chat = |name: String, at: i64| span(&name, at, json!({"gen_ai.operation.name": "chat"}));
    let tool = |name: String, at: i64| {
        span(&name, at, json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t"}))
    };
    let shapes: Vec<(&str, Vec<Span>)> = vec![
        ("siblings", (0..SPAN_COUNT).map(|at| chat(format!("s{at}"), at)).collect()),
        ("nested", (0..SPAN_COUNT).map(|at| chat(format!("s{at}/s{}", at - 1), at)).collect()),
        ("empty children", (0..SPAN_COUNT).map(|at| empty_chat(format!("s{at}/s0"), at)).collect()),
        ("nested without role", (0..SPAN_COUNT).map(|at| span(&format!("s{at}/s{}", at - 1), at, json!({}))).collect()),
        (
            "tools after a model",
            (0..SPAN_COUNT)
                .map(|at| if at == 0 { chat("s0".to_owned(), 0) } else { tool(format!("s{at}"), at) })
                .collect(),
        ),
        ("nested tools", (0..SPAN_COUNT).map(|at| tool(format!("s{at}/s{}", at - 1), at)).collect()),
        ("one conversation", {
            let all: Vec<Value> = (0..SPAN_COUNT)
                .flat_map(|at| {
                    [json!({"role": "user", "content": format!("q{at}")}), json!({"role": "assistant", "content": "a"})]
                })
                .collect();
            vec![span("agent", 0, json!({"agent_name": "a", "pydantic_ai.all_messages": all}))]
        }),
        ("one model with many calls", {
            let calls: Vec<Value> = (0..SPAN_COUNT / 2)
                .map(|at| json!({"type": "tool_call", "name": "t", "arguments": {"at": at}}))
                .collect();
            let mut spans = vec![span(
                "chat",
                0,
                json!({"gen_ai.operation.name": "chat", "gen_ai.output.messages": [{"role": "assistant", "parts": calls}]}),
            )];
            spans.extend((0..SPAN_COUNT / 2).map(|at| {
                let mut span = tool(format!("s{at}"), at);
                span.attributes.extend(map(json!({"gen_ai.tool.call.arguments": {"at": SPAN_COUNT / 2 - 1 - at}})));
                span
            }));
            spans
        }),
    ];
    for (shape, spans) in shapes {
        let whole = parts(spans);
        let start = Instant::now();
        assemble(&whole);
        let elapsed = start.elapsed();
        // Debug builds are slower, and tests run in parallel.
        assert!(elapsed < Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 1 }), "{shape}: {elapsed:?}");
    }
}
