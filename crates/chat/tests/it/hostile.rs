//! Malformed and oversized replies.

use karat_chat::{Reply, read_reply};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Map, Value, json};

use crate::exchange::exchanges;

/// Number of calls or events in a large reply; with quadratic code, a test would take minutes.
const MANY: usize = 50_000;

fn read_many(events: impl Iterator<Item = Value>) -> Reply {
    read_reply(&events.collect()).expect("readable")
}

#[test]
fn reads_many_calls_without_ids() {
    let calls = (0..MANY).map(|n| json!({"function": {"name": format!("f{}", n % 7), "arguments": "{}"}}));
    let results = (0..MANY).map(|n| json!({"role": "tool", "name": format!("f{}", n % 7), "content": n.to_string()}));
    let messages = std::iter::once(json!({"role": "assistant", "tool_calls": calls.collect::<Value>()})).chain(results);
    let reply = read_many(messages);
    assert_eq!(reply.calls().count(), MANY);
    assert_eq!(reply.calls().last().and_then(|call| call.result.clone()), Some(json!((MANY - 1).to_string())));
}

#[test]
fn reads_many_results_of_unknown_calls() {
    let results = (0..MANY).map(|n| json!({"type": "tool-output-available", "toolCallId": n.to_string(), "output": n}));
    let reply = read_many(results);
    assert_eq!(reply.late_results.len(), MANY);
    let again = reply.clone().followed_by(reply);
    assert_eq!(again.late_results.len(), 2 * MANY);
}

#[test]
fn reads_many_approvals_of_one_call() {
    let requests =
        (0..MANY).map(|n| json!({"type": "tool-approval-request", "approvalId": n.to_string(), "toolCallId": "1"}));
    let call = json!({"type": "tool-input-available", "toolCallId": "1", "toolName": "a", "input": {}});
    let reply = read_many(std::iter::once(call).chain(requests));
    assert_eq!(reply.approval.and_then(|approval| approval.id).as_deref(), Some("0"));
}

#[test]
fn reads_many_pieces_without_an_index() {
    let piece = |n: usize| {
        let id = n.is_multiple_of(2).then(|| n.to_string());
        json!({"choices": [{"delta": {"tool_calls": [{"id": id, "function": {"name": "f", "arguments": "{"}}]}}]})
    };
    let reply = read_many((0..MANY).map(piece));
    assert_eq!(reply.calls().count(), MANY / 2);
    assert!(!reply.is_complete);
}

#[rstest]
#[case("{\"messages\":[", "]}")]
#[case("{\"message\":{\"role\":\"user\",\"content\":", "}}")]
#[case("{\"output\":{\"kwargs\":", "}}")]
#[case("[[", "]]")]
#[case("{\"error\":{\"message\":", "}}")]
#[case("{\"tool_call\":{\"function_call\":", "}}")]
fn reads_values_at_the_depth_limit_of_the_parser(#[case] open: &str, #[case] close: &str) {
    const PARSER_LIMIT: usize = 127;
    let levels = (PARSER_LIMIT - 2) / 2;
    for inner in ["\"x\"", "{\"role\":\"assistant\",\"content\":\"x\"}", "[{\"type\":\"text\",\"text\":\"x\"}]"] {
        let text = format!("{}{inner}{}", open.repeat(levels), close.repeat(levels));
        let value: Value = serde_json::from_str(&text).expect("within the parser's limit");
        check(&value);
        check(&json!([{"role": "assistant", "content": text, "tool_calls": [{"name": "f", "arguments": text}]}]));
    }
}

/// Values of keys that identify an event.
const WORDS: [&str; 44] = [
    "start",
    "start-step",
    "text-delta",
    "tool-input-start",
    "tool-input-delta",
    "tool-output-available",
    "reset-step",
    "finish",
    "RUN_STARTED",
    "TEXT_MESSAGE_CONTENT",
    "TOOL_CALL_START",
    "TOOL_CALL_ARGS",
    "TOOL_CALL_RESULT",
    "MESSAGES_SNAPSHOT",
    "RUN_FINISHED",
    "message_start",
    "content_block_start",
    "content_block_delta",
    "input_json_delta",
    "text_delta",
    "message_stop",
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "response.completed",
    "message",
    "agent_message",
    "agent_thought",
    "message_end",
    "values",
    "updates",
    "messages",
    "messages/partial",
    "AIMessageChunk",
    "ai",
    "tool",
    "user",
    "assistant",
    "function_call",
    "tool_use",
    "tool_result",
    "task",
    "completed",
    "working",
];

/// Keys that readers look for.
const KEYS: [&str; 62] = [
    "type",
    "event",
    "data",
    "id",
    "role",
    "content",
    "text",
    "delta",
    "choices",
    "message",
    "messages",
    "index",
    "name",
    "arguments",
    "args",
    "input",
    "output",
    "tool_calls",
    "tool_call_chunks",
    "tool_call_id",
    "toolCallId",
    "toolName",
    "toolCallName",
    "parentMessageId",
    "messageId",
    "inputTextDelta",
    "finish_reason",
    "usage",
    "prompt_tokens",
    "function",
    "item",
    "response",
    "output_index",
    "status",
    "state",
    "kind",
    "parts",
    "artifact",
    "artifacts",
    "artifactId",
    "append",
    "history",
    "result",
    "error",
    "author",
    "functionCall",
    "functionResponse",
    "partial",
    "conversation_id",
    "answer",
    "tool",
    "tool_input",
    "observation",
    "steps",
    "payload",
    "from",
    "content_block",
    "partial_json",
    "values",
    "__interrupt__",
    "intermediate_steps",
    "events",
];

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => prop::sample::select(&WORDS[..]).prop_map(Value::from),
        2 => prop::sample::select(vec!["1", "2", "{\"a\":", "1}", "a;b", ""]).prop_map(Value::from),
        1 => (0_u64..3).prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(5, 96, 8, |inner| {
        let object = prop::collection::vec((prop::sample::select(&KEYS[..]), inner.clone()), 0..8);
        prop_oneof![
            prop::collection::vec(inner, 0..8).prop_map(Value::Array),
            object.prop_map(|members| members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

/// Properties of every reply.
fn check(value: &Value) {
    let Ok(reply) = read_reply(value) else { return };
    let size = value.to_string().len();
    let texts: usize = reply.steps.iter().map(|step| step.text.len()).sum();
    assert!(texts <= 2 * size, "{texts} bytes of text from {size}");
    assert!(reply.calls().count() <= size);
    assert!(reply.approval.as_ref().is_none_or(|approval| !approval.question.is_empty()));
    if reply.is_complete {
        assert!(reply.calls().all(|call| !call.name.is_empty()), "{value}");
    }
    for call in reply.calls() {
        assert!(call.success != Some(false) || call.error.is_some(), "{value}");
    }
    let again = reply.clone().followed_by(reply.clone());
    assert!(again.calls().count() <= 2 * reply.calls().count());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn reads_any_value_without_panicking(value in json_value()) {
        check(&value);
    }

    #[test]
    fn reads_any_list_of_events_without_panicking(events in prop::collection::vec(json_value(), 1..12)) {
        check(&Value::Array(events));
    }
}

/// Removes, duplicates, swaps or overwrites parts of recorded replies.
#[test]
fn reads_damaged_replies_without_panicking() {
    let mut mutator = Mutator(0x9e37_79b9_7f4a_7c15);
    for exchange in exchanges() {
        let Some(value) = exchange.value() else { continue };
        for _ in 0..10 {
            let mut damaged = value.clone();
            for _ in 0..=mutator.below(3) {
                mutator.change(&mut damaged);
            }
            check(&damaged);
        }
    }
}

/// A small generator of pseudo-random numbers (xorshift), so that failures repeat.
struct Mutator(u64);

impl Mutator {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(limit.max(1)).expect("small")).expect("small")
    }

    fn change(&mut self, value: &mut Value) {
        let descends = self.below(5) > 0;
        match value {
            Value::Array(items) if !items.is_empty() => {
                let (at, other) = (self.below(items.len()), self.below(items.len()));
                match self.below(if descends { 9 } else { 3 }) {
                    0 => drop(items.remove(at)),
                    1 => items.insert(at, items[other].clone()),
                    2 => items.swap(at, other),
                    _ => self.change(&mut items[at]),
                }
            }
            Value::Object(map) if !map.is_empty() => {
                let names: Vec<String> = map.keys().cloned().collect();
                let (name, other) = (&names[self.below(names.len())], &names[self.below(names.len())]);
                match self.below(if descends { 9 } else { 3 }) {
                    0 => drop(map.remove(name)),
                    1 => {
                        let copy = map[other].clone();
                        map.insert(name.clone(), copy);
                    }
                    2 => drop(map.insert(name.clone(), Value::Object(Map::new()))),
                    _ => self.change(&mut map[name.as_str()]),
                }
            }
            leaf => {
                let replacements =
                    [json!(null), json!(""), json!([]), json!({}), json!("{\"a\":"), json!(-1), json!("x")];
                *leaf = replacements[self.below(replacements.len())].clone();
            }
        }
    }
}
