//! Reads any JSON, or lines of JSON, as an agent's reply: reading never panics, invents nothing, and a complete reply
//! has only whole calls.

#![no_main]

use karat_chat::{Reply, read_reply};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let value = serde_json::from_slice(bytes).unwrap_or_else(|_| json_lines(bytes));
    let Ok(reply) = read_reply(&value) else { return };
    assert_bounded(&reply, bytes.len());
    for call in reply.calls() {
        assert!(!reply.is_complete || !call.name.is_empty(), "{reply:?}");
        assert!(call.success != Some(false) || call.error.is_some(), "{call:?}");
    }
    if let Some(approval) = &reply.approval {
        assert!(!approval.question.is_empty());
    }
    if let Some(event) = reply.first_text_event {
        assert!(value.as_array().is_none_or(|events| event < events.len()));
    }
    // A reply that repeats the one before adds no calls with known ids.
    let calls = reply.calls().count();
    let again = reply.clone().followed_by(reply);
    assert!(again.calls().count() <= 2 * calls);
});

/// Reads the lines that are JSON.
fn json_lines(bytes: &[u8]) -> Value {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok()).collect()
}

/// Text is at most that of the reply: nothing is read twice. Escapes make it shorter, joining adds line ends.
fn assert_bounded(reply: &Reply, size: usize) {
    // A lone byte of an escape may become a replacement character of three.
    let limit = 3 * size + 16;
    let text: usize = reply.steps.iter().map(|step| step.text.len()).sum();
    assert!(text <= limit, "{text} bytes of text from {size}");
    assert!(reply.calls().count() + reply.late_results.len() <= size);
}
