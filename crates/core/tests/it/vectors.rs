//! Runs the conformance vectors against the core: an expectation, an agent's reply, and the verdict.
//!
//! The CLI tests run the same files through the binary; these are faster and need no agent.

use karat_cases::registry::{Registry, Tool};
use karat_cases::token::TokenSources;
use karat_cases::{EvalFile, Origin};
use karat_core::assertion::{Evidence, Mode, PendingVerdict, Strictness, Verdict, judge};
use karat_core::tokenizer::Tokenizer;
use karat_core::trace::{ToolCall, Trace};
use rstest::rstest;
use serde_json::{Value, json};

use crate::model_turns::{mode_for, trace_of_turns};

#[rstest]
#[case::routing(include_str!("../../../../conformance/routing.json"), 33)]
#[case::params(include_str!("../../../../conformance/params.json"), 31)]
#[case::calls(include_str!("../../../../conformance/calls.json"), 213)]
#[case::response(include_str!("../../../../conformance/response.json"), 27)]
#[case::trajectories(include_str!("../../../../conformance/trajectories.json"), 108)]
#[case::tokens(include_str!("../../../../conformance/tokens.json"), 31)]
#[case::values(include_str!("../../../../conformance/values.json"), 115)]
#[case::state(include_str!("../../../../conformance/state.json"), 68)]
#[case::model_openai(include_str!("../../../../conformance/model-openai.json"), 13)]
#[case::model_anthropic(include_str!("../../../../conformance/model-anthropic.json"), 13)]
#[case::model_own(include_str!("../../../../conformance/model-own.json"), 44)]
fn verdicts_match_the_vectors(#[case] file: &str, #[case] count: usize) {
    let document: Value = serde_json::from_str(file).unwrap();
    let vectors = document["vectors"].as_array().unwrap();
    let problems: Vec<String> = vectors.iter().flat_map(|vector| check_vector(&document, vector)).collect();
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(vectors.len(), count, "not all vectors ran");
}

/// Judges one vector and returns the differences from the expected result.
fn check_vector(document: &Value, vector: &Value) -> Vec<String> {
    let (verdict, trace) = judge_vector(document, vector);
    let name = vector["name"].as_str().expect("name");
    let mut problems = Vec::new();
    for (key, want) in vector["want"].as_object().expect("want") {
        if let Some(problem) = difference(key, want, &verdict, &trace) {
            problems.push(format!("{name}: {key}: {problem}"));
        }
    }
    problems
}

fn judge_vector(document: &Value, vector: &Value) -> (Verdict, Trace) {
    let mut case = json!({"id": "gs-vector-001", "description": vector["name"], "input": {"message": vector["name"]}});
    let own = vector.get("case").and_then(Value::as_object).cloned().unwrap_or_default();
    case.as_object_mut().expect("case object").extend(own);
    case["expect"] = vector["expect"].clone();
    let bytes = json!([case]).to_string();
    let file = EvalFile::parse(bytes.as_bytes(), Origin::new("vector.golden.json"))
        .unwrap_or_else(|invalid| panic!("{}: {:?}", vector["name"], invalid.findings));
    let setting = |key: &str| vector.get(key).or_else(|| document.get(key)).cloned();
    let tokens = TokenSources { seed: setting("seed"), snapshot: setting("snapshot") };
    let registry = document.get("tools").map(registry_of);
    let case = &file.cases[0];
    let (trace, mode) = match setting("mode").as_ref().and_then(Value::as_str) {
        None | Some("endpoint") => (trace_of(&vector["reply"]), Mode::Endpoint),
        Some("openai" | "anthropic") => (trace_of_turns(&vector["reply"], case), mode_for(case)),
        Some(other) => panic!("unknown mode '{other}'"),
    };
    let evidence = Evidence {
        case,
        trace: &trace,
        earlier: &[],
        mode,
        tokens: &tokens,
        registry: registry.as_ref(),
        tokenizer: Tokenizer::default(),
    };
    let arguments = setting("args");
    let has = |flag: &str| arguments.as_ref().and_then(Value::as_array).is_some_and(|list| list.contains(&json!(flag)));
    let strictness = Strictness { all_failures: has("--all-failures"), strict: has("--strict") };
    let verdict = match vector.get("state") {
        Some(state) => {
            let states = serde_json::from_value(state.clone()).expect("states");
            PendingVerdict::start(evidence, strictness).with_states(&states).finish()
        }
        None => judge(evidence, strictness),
    };
    (verdict, trace)
}

fn registry_of(tools: &Value) -> Registry {
    let tool = |tool: &Value| Tool {
        name: tool["name"].as_str().expect("tool name").to_owned(),
        input_schema: tool.get("inputSchema").cloned().into(),
        ..Tool::default()
    };
    Registry::from_tools(tools.as_array().into_iter().flatten().map(tool))
}

/// Keys that agents use for their tool calls; without `toolCalls`, the calls are not reported.
const CALL_KEYS: [&str; 6] = ["tool_calls", "toolcalls", "tools", "steps", "intermediate_steps", "intermediateSteps"];

/// Converts a reply to a trace; the scripted delay becomes the latency.
fn trace_of(reply: &Value) -> Trace {
    let known = ["response", "toolCalls", "usage", "model", "delayMs"];
    for key in reply.as_object().expect("reply object").keys().map(String::as_str) {
        assert!(known.contains(&key) || CALL_KEYS.contains(&key), "unknown key '{key}' in the reply");
    }
    let part = |key: &str| reply.get(key).cloned();
    Trace {
        response: reply["response"].as_str().unwrap_or_default().to_owned(),
        tool_calls: part("toolCalls")
            .as_ref()
            .and_then(Value::as_array)
            .map_or_else(Vec::new, |calls| calls.iter().map(tool_call).collect()),
        usage: part("usage").map(|usage| serde_json::from_value(usage).expect("usage")),
        model: reply["model"].as_str().map(str::to_owned),
        latency_ms: reply["delayMs"].as_f64().unwrap_or_default(),
        calls_unreported: reply.get("toolCalls").is_none() && CALL_KEYS.iter().any(|key| reply.get(key).is_some()),
        ..Trace::default()
    }
}

/// Reads a call; arguments that are text are not JSON.
fn tool_call(call: &Value) -> ToolCall {
    let mut call = call.clone();
    if let Some(Value::String(text)) = call.get("params").cloned() {
        call["rawParams"] = json!(text);
        call.as_object_mut().expect("call object").remove("params");
    }
    serde_json::from_value(call).expect("tool call")
}

/// Returns the actual value if it differs from the expected one.
fn difference(key: &str, want: &Value, verdict: &Verdict, trace: &Trace) -> Option<String> {
    let failure = verdict.failures.first().map(|failure| &failure.message);
    let error = verdict.error.as_ref().map(|error| &error.message).or(failure).map_or("", String::as_str);
    let is_in_error = |part: &Value| part.as_str().is_some_and(|part| error.contains(part));
    match key {
        "passed" => unless(want == verdict.passed(), &json!([verdict.passed(), error])),
        "run" => unless(*want == json!(verdict.assertions_run), &json!(verdict.assertions_run)),
        "skipped" => unless(*want == json!(verdict.assertions_skipped), &json!(verdict.assertions_skipped)),
        "error" => unless(want.as_str().is_some_and(|start| error.starts_with(start)), &json!(error)),
        "errorHas" => {
            let single = std::slice::from_ref(want);
            unless(want.as_array().map_or(single, Vec::as_slice).iter().all(is_in_error), &json!(error))
        }
        "details" => want.as_object().expect("details object").iter().find_map(|(key, want)| {
            let got = match key.as_str() {
                "toolsCalled" => json!(trace.tool_names()),
                "skippedTokens" => json!(verdict.skipped_tokens),
                "nearMisses" => json!((!verdict.near_misses.is_empty()).then_some(&verdict.near_misses)),
                "response" => json!(trace.response),
                "toolCalls" => json!(trace.tool_calls),
                "usage" => json!(trace.usage),
                "stopReason" => json!(trace.stop_reason),
                "calls" => json!(verdict.calls),
                "stateChanges" => json!(verdict.state_changes),
                "callsUnreported" => json!(trace.calls_unreported.then_some(true)),
                other => return Some(format!("unknown key '{other}'")),
            };
            let is_absent = *want == json!({"$absent": true}) && got.is_null();
            unless(is_absent || matches(want, &got), &got)
        }),
        other => Some(format!("unknown key '{other}'")),
    }
}

/// Whether the actual value matches: objects as subsets, lists element by element.
fn matches(want: &Value, got: &Value) -> bool {
    match (want, got) {
        (Value::Object(want), Value::Object(got)) => want.iter().all(|(key, want)| match got.get(key) {
            _ if *want == json!({"$absent": true}) => got.get(key).is_none_or(Value::is_null),
            got => got.is_some_and(|got| matches(want, got)),
        }),
        (Value::Array(want), Value::Array(got)) => {
            want.len() == got.len() && want.iter().zip(got).all(|(want, got)| matches(want, got))
        }
        _ => want == got,
    }
}

fn unless(is_expected: bool, got: &Value) -> Option<String> {
    (!is_expected).then(|| got.to_string())
}
