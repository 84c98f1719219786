//! Builds a trace from a model's scripted turns: an independent implementation of the agent's loop.

use karat_cases::Case;
use karat_core::assertion::Mode;
use karat_core::trace::{ToolCall, Trace, Usage};
use serde_json::{Map, Value, json};

/// Usage of a turn without `usage`.
const DEFAULT_USAGE: [u64; 2] = [7, 3];

/// Returns the mode in which a model answers this case.
pub(crate) fn mode_for(case: &Case) -> Mode {
    if case.stubs.is_some() { Mode::Stubbed } else { Mode::RoutingOnly }
}

/// Plays the turns of a reply: one without stubs, otherwise until a turn has no calls or the maximum is reached.
pub(crate) fn trace_of_turns(reply: &Value, case: &Case) -> Trace {
    let single = std::slice::from_ref(reply);
    let turns = reply.get("turns").and_then(Value::as_array).map_or(single, Vec::as_slice);
    let max_turns = if case.stubs.is_some() { case.max_turns.unwrap_or(5) } else { 1 };
    let mut trace = Trace { stop_reason: Some("maxTurns".to_owned()), ..Trace::default() };
    let mut used = [0, 0];
    let repeated = turns.iter().chain(std::iter::repeat(&turns[turns.len() - 1]));
    for (step, turn) in (0..max_turns).zip(repeated) {
        trace.steps = Some(step + 1);
        let known = ["text", "calls", "usage"];
        let unknown = turn.as_object().expect("turn object").keys().find(|key| !known.contains(&key.as_str()));
        assert_eq!(unknown, None, "unknown key in a turn");
        let usage: [u64; 2] =
            turn.get("usage").map_or(DEFAULT_USAGE, |usage| serde_json::from_value(usage.clone()).expect("usage"));
        used = [used[0] + usage[0], used[1] + usage[1]];
        let calls = turn.get("calls").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let calls_made = calls.iter().map(|call| tool_call(call, case.stubs.as_ref()));
        trace.tool_calls.extend(calls_made.map(|call| ToolCall { step: Some(step), ..call }));
        if calls.is_empty() || case.stubs.is_none() {
            turn["text"].as_str().unwrap_or_default().clone_into(&mut trace.response);
            trace.stop_reason = case.stubs.is_some().then(|| "final".to_owned());
            break;
        }
    }
    trace.usage = Some(Usage { input_tokens: Some(used[0]), output_tokens: Some(used[1]), ..Usage::default() });
    trace
}

fn tool_call(call: &Value, stubs: Option<&Map<String, Value>>) -> ToolCall {
    let name = call["name"].as_str().expect("call name").to_owned();
    let arguments = match call.get("rawArgs").and_then(Value::as_str) {
        Some(raw) => serde_json::from_str(raw).map_err(|_| raw.to_owned()),
        None => Ok(call.get("args").cloned().unwrap_or_else(|| json!({}))),
    };
    let arguments = match arguments {
        Ok(Value::Object(map)) => Ok(map),
        Ok(other) => Err(call["rawArgs"].as_str().map_or_else(|| other.to_string(), str::to_owned)),
        Err(raw) => Err(raw),
    };
    let stub = stubs.map(|stubs| stubs.get(&name).cloned());
    match arguments {
        Err(raw) => ToolCall { name, raw_params: Some(raw), success: Some(false), ..ToolCall::default() },
        Ok(params) => {
            let success = stub.as_ref().map(Option::is_some);
            ToolCall { name, params, success, result: stub.flatten(), ..ToolCall::default() }
        }
    }
}
