//! Recorded streams that end early.

use karat_chat::{Reply, read_reply};
use serde_json::Value;

use crate::exchange::{Exchange, exchanges};

/// Protocols whose streams have no last event, so that a reader cannot know that one was cut off.
const WITHOUT_END: [&str; 2] = ["langgraph", "adk"];

fn streams() -> Vec<(Exchange, Vec<Value>, Reply)> {
    let streams = exchanges().into_iter().filter_map(|exchange| {
        let Some(Value::Array(events)) = exchange.value() else { return None };
        let reply = read_reply(&Value::Array(events.clone())).ok()?;
        Some((exchange, events, reply))
    });
    let streams: Vec<_> = streams.collect();
    assert!(streams.len() > 100, "found only {} streams", streams.len());
    streams
}

fn summary(reply: &Reply) -> (String, Vec<Value>, bool) {
    let calls = reply.calls().map(|call| serde_json::to_value(call).expect("JSON")).collect();
    (reply.response().to_owned(), calls, reply.approval.is_some())
}

#[test]
fn a_stream_that_is_cut_off_is_not_complete() {
    for (exchange, events, whole) in streams() {
        if WITHOUT_END.contains(&whole.protocol) || whole.protocol == "rasa" || whole.protocol == "messages" {
            continue;
        }
        for length in 1..events.len() {
            let Ok(part) = read_reply(&Value::Array(events[..length].to_vec())) else { continue };
            let is_all = summary(&part) == summary(&whole);
            assert!(
                is_all || part.error.is_some() || !part.is_complete,
                "{}: the first {length} of {} events are taken for the whole: {part:?}",
                exchange.name,
                events.len()
            );
        }
    }
}

#[test]
fn the_first_text_is_that_of_the_event_with_it() {
    let mut count = 0;
    for (exchange, events, whole) in streams() {
        let Some(first) = whole.first_text_event else { continue };
        count += 1;
        let text = |length: usize| {
            let part = read_reply(&Value::Array(events[..length].to_vec())).ok()?;
            part.steps.iter().map(|step| step.text.clone()).find(|text| !text.is_empty())
        };
        assert_eq!(text(first), None, "{}: there is text before event {first}", exchange.name);
        // The progress of a task is not part of the answer, but shows that the agent is answering.
        if whole.protocol != "a2a" {
            assert!(text(first + 1).is_some(), "{}: there is no text in event {first}", exchange.name);
        }
    }
    assert!(count > 100, "found only {count} streams with text");
}
