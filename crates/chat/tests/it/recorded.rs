//! Replies recorded from real agents. The expected values come from the products' documentation.

use std::fmt::Debug;

use karat_chat::{Reply, ReplyError, read_reply};
use karat_core::trace::ToolCall;
use serde_json::Value;

use crate::exchange::{Exchange, Expected, ExpectedCall, exchanges, read};

/// Agents whose replies are mapped by configuration, not read as a conversation.
const MAPPED: [&str; 4] = ["own-api", "session-poll", "python-function", "otel-agent"];

/// Exchanges whose expectation contradicts their body.
const WRONG_EXPECTATIONS: [&str; 1] = ["ai-sdk/failed-call-default-text.json"];

/// Replies to requests that did not wait for the end.
const STILL_RUNNING: [&str; 4] = ["a2a/poll-1.json", "a2a/poll-2.json", "a2a/v1-poll-1.json", "a2a/v1-poll-2.json"];

#[test]
fn reads_replies_as_documented() {
    let exchanges = exchanges();
    let is_mapped = |exchange: &&Exchange| MAPPED.iter().any(|product| exchange.name.starts_with(product));
    let read = exchanges
        .iter()
        .filter(|exchange| !is_mapped(exchange) && !WRONG_EXPECTATIONS.contains(&exchange.name.as_str()));
    let problems: Vec<Vec<String>> = read.map(problems).collect();
    assert!(problems.len() > 250, "found only {} exchanges", problems.len());
    let count = problems.len();
    let problems: Vec<String> = problems.into_iter().flatten().collect();
    assert!(problems.is_empty(), "{} problems in {count} exchanges:\n{}", problems.len(), problems.join("\n"));
}

fn problems(exchange: &Exchange) -> Vec<String> {
    let name = &exchange.name;
    let expected = &exchange.expected;
    // The text of a reply that is neither JSON nor a stream is not read here.
    let Some(value) = exchange.value() else {
        assert!(expected.error.is_some(), "{name} is neither JSON nor a stream");
        return Vec::new();
    };
    let later = match read_reply(&value) {
        Ok(reply) => reply,
        // Rasa returns an empty list when it fails.
        Err(ReplyError::Empty) if exchange.body.trim() == "[]" => return Vec::new(),
        Err(error) => return vec![format!("{name}: {error}")],
    };
    let mut usage = [expected.input_tokens, expected.output_tokens];
    let reply = match first_part(exchange) {
        Some((first, reply)) => {
            usage[0] = add(first.input_tokens, usage[0]);
            usage[1] = add(first.output_tokens, usage[1]);
            reply.followed_by(later.clone())
        }
        None => later.clone(),
    };
    let mut problems = Vec::new();
    let mut compare = |part: &str, actual: &dyn Debug, expected: &dyn Debug| {
        let (actual, expected) = (format!("{actual:?}"), format!("{expected:?}"));
        if actual != expected {
            let label = format!("{name} ({}): {part}", reply.protocol);
            problems.push(format!("{label}:\n    read     {actual}\n    expected {expected}"));
        }
    };
    compare("text", &reply.response(), &expected.text);
    let is_denied = ["/deny", "/cancel"].iter().any(|word| name.contains(word));
    compare_calls(&reply, &later, expected, is_denied, &mut compare);
    compare("approval", &reply.approval.as_ref().map(|approval| &approval.question), &expected.approval.as_ref());
    if let Some(error) = &expected.error {
        let stop_reason = reply.stop_reason.as_ref().filter(|reason| *reason == error);
        let actual = reply.error.as_ref().or(stop_reason);
        if !is_same_error(actual, error) {
            compare("error", &actual, &Some(error));
        }
        return problems;
    }
    compare("error", &reply.error, &None::<String>);
    let read = reply.usage.clone().unwrap_or_default();
    if usage != [None, None] {
        compare("usage", &[read.input_tokens, read.output_tokens], &usage);
    }
    compare("calls reported", &!reply.calls_unreported, &expected.reports_calls);
    compare("complete", &reply.is_complete, &!STILL_RUNNING.contains(&name.as_str()));
    problems
}

fn add(left: Option<u64>, right: Option<u64>) -> Option<u64> {
    if left.is_none() { right } else { Some(left? + right.unwrap_or(0)) }
}

/// For a list of problems, the reader returns all; the expected text may quote one of them or the whole list.
fn is_same_error(actual: Option<&String>, expected: &str) -> bool {
    let Some(actual) = actual else { return false };
    match serde_json::from_str::<Vec<Value>>(expected) {
        Ok(list) => list.iter().all(|problem| problem["message"].as_str().is_some_and(|text| actual.contains(text))),
        Err(_) => actual == expected || actual.split("; ").any(|problem| problem.ends_with(&format!(": {expected}"))),
    }
}

fn compare_calls(
    reply: &Reply,
    later: &Reply,
    expected: &Expected,
    is_denied: bool,
    compare: &mut dyn FnMut(&str, &dyn Debug, &dyn Debug),
) {
    // The expected reply knows that a denied call did not run, regardless of what the agent reports.
    // Without the first request, a denied call may be unknown.
    let reply = if expected.calls.is_empty() { later } else { reply };
    let calls: Vec<CallSummary> = reply.calls().map(CallSummary::from).collect();
    let mut expected: Vec<CallSummary> = expected.calls.iter().map(CallSummary::from).collect();
    for (expected, call) in expected.iter_mut().zip(&calls) {
        expected.arguments = expected.arguments.take().or_else(|| call.arguments.clone());
        if is_denied && expected.failed.is_none() {
            expected.failed = call.failed;
        }
    }
    if calls != expected {
        compare("calls", &calls, &expected);
    }
}

/// Returns the reply that asked for the approval on which an exchange decides.
fn first_part(exchange: &Exchange) -> Option<(Expected, Reply)> {
    let name = exchange.file.file_name()?.to_str()?.strip_suffix("-2.json")?;
    let first = exchange.file.with_file_name(format!("{name}-1.json"));
    let first = first.exists().then(|| read(&first))?;
    let reply = read_reply(&first.value()?).ok()?;
    reply.approval.as_ref()?;
    Some((first.expected, reply))
}

#[derive(Debug, PartialEq)]
struct CallSummary {
    name: String,
    arguments: Option<Value>,
    result: Option<Value>,
    failed: Option<bool>,
}

impl From<&ToolCall> for CallSummary {
    fn from(call: &ToolCall) -> Self {
        let arguments = call.raw_params.clone().map_or_else(|| Value::Object(call.params.clone()), Value::String);
        Self {
            name: call.name.clone(),
            arguments: Some(arguments),
            result: call.result.clone().map(without_fractions),
            failed: call.success.map(|success| !success),
        }
    }
}

impl From<&ExpectedCall> for CallSummary {
    fn from(call: &ExpectedCall) -> Self {
        Self {
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            // The JSON text of a result is read as JSON.
            result: call.result.as_ref().map(karat_chat::parse_result).map(without_fractions),
            failed: call.failed,
        }
    }
}

/// Writes 18.0, which Protocol Buffers make of 18, as 18.
fn without_fractions(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.to_string().strip_suffix(".0").map(str::parse::<i64>) {
            Some(Ok(whole)) => whole.into(),
            _ => Value::Number(number),
        },
        Value::Array(items) => items.into_iter().map(without_fractions).collect(),
        Value::Object(map) => map.into_iter().map(|(name, value)| (name, without_fractions(value))).collect(),
        other => other,
    }
}
