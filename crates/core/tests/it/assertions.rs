//! Assertions: outcomes, failure messages, skipped checks, and properties of arbitrary cases.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use karat_core::assertion::{Evidence, Failure, Field, Mode, PendingVerdict, Strictness, Verdict, judge};
use karat_core::case::{
    CallSelector, Case, CaseLocation, EvalFile, Expectation, Input, Origin, ParamAssertion, ParamCheck,
    ToolsCalledMatch,
};
use karat_core::judgement::{Conclusion, ErrorKind, EvalError, Judgement};
use karat_core::registry::{Gap, GapKind, Known, Registry, Tool, ToolLocation, Unknown};
use karat_core::token::TokenSources;
use karat_core::tokenizer::Tokenizer;
use karat_core::trace::{ToolCall, Trace, Usage};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Map, Value, json};

const FIRST: Strictness = Strictness { all_failures: false, strict: false };
const ALL: Strictness = Strictness { all_failures: true, strict: false };
const STRICT: Strictness = Strictness { all_failures: true, strict: true };

/// A case, an answer and the rest of the evidence, as JSON.
#[derive(Clone)]
struct Scenario(Value);

impl Scenario {
    fn new(expect: Value, trace: Value) -> Self {
        let members = [("expect".to_owned(), expect), ("trace".to_owned(), trace)];
        Self(Value::Object(members.into_iter().collect()))
    }

    fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0[key] = value.into();
        self
    }

    fn case(&self) -> Case {
        let mut case = json!({ "id": "gs-x-001", "input": { "message": "How warm is it in Tokyo?" } });
        let own = self.0.get("case").and_then(Value::as_object).cloned().unwrap_or_default();
        case.as_object_mut().expect("case object").extend(own);
        case["expect"] = self.0["expect"].clone();
        let text = json!([case]).to_string();
        let file = EvalFile::parse(text.as_bytes(), Origin::new("x.golden.json"));
        file.unwrap_or_else(|invalid| panic!("{:?}", invalid.findings)).cases.remove(0)
    }

    fn trace(&self) -> Trace {
        let trace = &self.0["trace"];
        Trace {
            response: trace["response"].as_str().unwrap_or_default().to_owned(),
            tool_calls: trace
                .get("toolCalls")
                .map(|calls| serde_json::from_value(calls.clone()).expect("tool calls"))
                .unwrap_or_default(),
            usage: trace.get("usage").map(|usage| serde_json::from_value(usage.clone()).expect("usage")),
            latency_ms: trace["latencyMs"].as_f64().unwrap_or_default(),
            ..Trace::default()
        }
    }

    fn registry(&self) -> Option<Registry> {
        let location = ToolLocation { source: "tools.ts".to_owned(), position: None };
        let unknown = Unknown { location: location.clone(), reason: "the value is a call".to_owned() };
        let tool = |tool: &Value| Tool {
            name: tool["name"].as_str().expect("tool name").to_owned(),
            input_schema: match tool.get("unknown") {
                Some(_) => Known::Unknown(unknown.clone()),
                None => tool.get("inputSchema").cloned().into(),
            },
            ..Tool::default()
        };
        let tools = self.0.get("registry")?.as_array().expect("list of tools").iter().map(tool);
        let mut registry = Registry::from_tools(tools);
        if self.0.get("gap").is_some() {
            registry.add_gap(Gap { kind: GapKind::Unknown, location, message: "a loop".to_owned() });
        }
        Some(registry)
    }

    fn judge(&self, strictness: Strictness) -> Verdict {
        let mode = match self.0.get("mode").and_then(Value::as_str) {
            None => Mode::Endpoint,
            Some("stubbed") => Mode::Stubbed,
            Some("routingOnly") => Mode::RoutingOnly,
            Some(other) => panic!("unknown mode '{other}'"),
        };
        let tokenizer = self.0.get("tokenizer").and_then(Value::as_str).unwrap_or("o200k_base");
        let tokens = TokenSources { seed: self.0.get("seed").cloned(), snapshot: self.0.get("snapshot").cloned() };
        let (case, trace, registry) = (self.case(), self.trace(), self.registry());
        let evidence = Evidence {
            case: &case,
            trace: &trace,
            mode,
            tokens: &tokens,
            registry: registry.as_ref(),
            tokenizer: Tokenizer::from_name(tokenizer).expect("known tokenizer"),
        };
        let mut pending = PendingVerdict::start(evidence, strictness);
        while let Some(result) = pending.next_eval().and_then(|name| self.0["functions"].get(name)) {
            pending.record_eval(judgement(result));
        }
        pending.finish()
    }

    /// The outcome of the single check of the case.
    fn outcome(&self) -> Outcome {
        let verdict = self.judge(ALL);
        match (verdict.assertions_run, verdict.assertions_skipped, verdict.failures.len()) {
            (1, 0, 0) => Outcome::Holds,
            (1, 0, 1) => Outcome::Fails,
            (0, 1, 0) => Outcome::Skipped,
            (0, 0, 0) => Outcome::Nothing,
            other => panic!("more than one check: {other:?}"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Holds,
    Fails,
    Skipped,
    /// There was nothing to check.
    Nothing,
}

use Outcome::{Fails, Holds, Nothing, Skipped};

/// Parses the result of an eval function: `[true, reason]`, or an error as `[kind, message]`.
fn judgement(result: &Value) -> Judgement {
    let text = result[1].as_str().expect("text").to_owned();
    let conclusion = match &result[0] {
        Value::Bool(passed) => Conclusion::Verdict { passed: *passed, reason: text },
        kind => Conclusion::Error(EvalError::new(serde_json::from_value(kind.clone()).expect("error kind"), text)),
    };
    Judgement { conclusion, elapsed: Duration::from_millis(3), stdout: "printed".to_owned(), stderr: String::new() }
}

/// Successful calls of these tools.
fn calls(names: &[&str]) -> Value {
    names.iter().map(|name| json!({ "name": name, "success": true })).collect()
}

fn messages(verdict: &Verdict) -> Vec<&str> {
    verdict.failures.iter().map(|failure| failure.message.as_str()).collect()
}

// Failure messages.

#[expect(clippy::disallowed_methods, reason = "the test reads fixture files")]
fn load_examples(path: &Path) -> Vec<Scenario> {
    let document: Value = serde_json::from_slice(&std::fs::read(path).expect("corpus file")).expect("valid JSON");
    document["examples"].as_array().expect("list of examples").iter().cloned().map(Scenario).collect()
}

#[rstest]
fn failure_messages_match_the_corpus(#[files("tests/it/corpus/fails/*.json")] path: PathBuf) {
    for scenario in load_examples(&path) {
        let name = &scenario.0["name"];
        let strict = scenario.0.get("strict").is_some();
        let verdict = scenario.judge(if strict { STRICT } else { ALL });
        let found: Value = verdict.failures.iter().map(|failure| json!([failure.pointer, failure.message])).collect();
        assert_eq!(found, scenario.0["failures"], "{name}");
        for Failure { assertion, message, pointer } in &verdict.failures {
            assert!(message.starts_with(&format!("{assertion}: ")), "{name}: {message}");
            let case = json!({ "expect": scenario.0["expect"] });
            assert!(case.pointer(pointer).is_some(), "{name}: nothing at {pointer}");
        }
        let first = scenario.judge(Strictness { all_failures: false, strict });
        assert_eq!(first.failures, verdict.failures[..1], "{name}");
    }
}

#[test]
fn every_field_has_a_failing_example() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/corpus/fails");
    let failing: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .flat_map(|entry| load_examples(&entry.unwrap().path()))
        .flat_map(|scenario| scenario.judge(ALL).failures)
        .map(|failure| failure.assertion)
        .collect();
    let fields: BTreeSet<String> = Field::ALL.into_iter().map(|field| field.name().to_owned()).collect();
    assert_eq!(failing, fields);
}

// Routing.

#[rstest]
#[case(&["a"], &["a"], [true, true, true, true])]
#[case(&[], &[], [true, true, true, true])]
#[case(&[], &["a"], [false, false, true, true])]
#[case(&["a"], &[], [false, false, false, false])]
#[case(&["a"], &["A"], [false, false, false, false])]
#[case(&["a", "b"], &["a", "b"], [true, true, true, true])]
#[case(&["a", "b"], &["b", "a"], [false, true, false, true])]
#[case(&["a", "b"], &["a", "x", "b"], [false, false, true, true])]
#[case(&["a", "b"], &["b", "x", "a"], [false, false, false, true])]
#[case(&["a", "a"], &["a"], [false, false, false, false])]
#[case(&["a"], &["a", "a"], [false, false, true, true])]
#[case(&["a", "a"], &["a", "b", "a"], [false, false, true, true])]
#[case(&["a", "b", "a"], &["a", "a", "b"], [false, true, false, true])]
fn tools_called(#[case] expected: &[&str], #[case] actual: &[&str], #[case] held: [bool; 4]) {
    for (mode, held) in ["exact", "anyOrder", "inOrder", "includes"].into_iter().zip(held) {
        let scenario = Scenario::new(
            json!({ "toolsCalled": expected, "toolsCalledMatch": mode }),
            json!({ "toolCalls": calls(actual) }),
        );
        assert_eq!(scenario.outcome(), if held { Holds } else { Fails }, "{mode}");
    }
    let default = Scenario::new(json!({ "toolsCalled": expected }), json!({ "toolCalls": calls(actual) }));
    assert_eq!(default.outcome(), if held[0] { Holds } else { Fails }, "exact is the default");
}

#[rstest]
#[case(json!([["a"]]), &["a"], Holds)]
#[case(json!([["a"]]), &["a", "a", "a"], Holds)]
#[case(json!([["a", "a"]]), &["a"], Holds)]
#[case(json!([["a"], ["b", "a"]]), &["a", "b", "a"], Holds)]
#[case(json!([["a"], ["b"]]), &["a", "b"], Fails)]
#[case(json!([["a", "b"]]), &["a"], Fails)]
#[case(json!([["a"]]), &[], Fails)]
#[case(json!([["__none__"]]), &[], Holds)]
#[case(json!([[]]), &[], Holds)]
#[case(json!([["__none__"]]), &["a"], Fails)]
#[case(json!([[]]), &["a"], Fails)]
#[case(json!([["a"], ["__none__"]]), &[], Holds)]
#[case(json!([["a"], ["__none__"]]), &["a"], Holds)]
#[case(json!([["a"], ["__none__"]]), &["b"], Fails)]
fn tools_acceptable(#[case] sets: Value, #[case] actual: &[&str], #[case] outcome: Outcome) {
    let scenario = Scenario::new(json!({ "toolsAcceptable": sets }), json!({ "toolCalls": calls(actual) }));
    assert_eq!(scenario.outcome(), outcome);
}

#[rstest]
#[case(&["a"], &["b"], Holds)]
#[case(&["a"], &["b", "a"], Fails)]
#[case(&["a"], &["A", "ab"], Holds)]
#[case(&[], &["a"], Nothing)]
fn tools_not_called(#[case] forbidden: &[&str], #[case] actual: &[&str], #[case] outcome: Outcome) {
    let scenario = Scenario::new(json!({ "toolsNotCalled": forbidden }), json!({ "toolCalls": calls(actual) }));
    assert_eq!(scenario.outcome(), outcome);
}

// Parameters.

/// Three calls: the second is of another tool.
fn weather_calls() -> Value {
    json!([
        { "name": "t", "params": { "city": "Tokyo", "days": 1, "unit": "C" } },
        { "name": "u", "params": { "city": "Cairo" } },
        { "name": "t", "params": { "city": "Oslo", "days": 2, "deep": { "k": [1.0, "x"] }, "no": null } }
    ])
}

#[rstest]
// The first call is the default.
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "Tokyo" }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "tokyo" }), Fails)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "Oslo" }), Fails)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "Oslo", "call": "last" }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "Tokyo", "call": "last" }), Fails)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "Oslo", "call": "any" }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "Cairo", "call": "any" }), Fails)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "Tokyo", "call": "all" }), Fails)]
#[case(json!({ "paramName": "city", "assertion": "oneOf", "value": ["Oslo", "Tokyo"], "call": "all" }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "Tokyo", "call": 0 }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "Oslo", "call": 1 }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "Oslo", "call": 2 }), Fails)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "Oslo", "call": 2, "optional": true }), Fails)]
// Text form on both sides.
#[case(json!({ "paramName": "days", "assertion": "equals", "value": "1" }), Holds)]
#[case(json!({ "paramName": "days", "assertion": "equals", "value": 1.0 }), Holds)]
#[case(json!({ "paramName": "days", "assertion": "equals", "value": true }), Fails)]
#[case(json!({ "paramName": "deep", "assertion": "equals", "value": { "k": [1, "x"] }, "call": "last" }), Holds)]
#[case(json!({ "paramName": "deep", "assertion": "equals", "value": "{\"k\":[1,\"x\"]}", "call": "last" }), Holds)]
#[case(json!({ "paramName": "deep", "assertion": "contains", "value": "[1,\"x\"]", "call": "last" }), Holds)]
#[case(json!({ "paramName": "deep", "assertion": "contains", "value": [1, "x"], "call": "last" }), Holds)]
#[case(json!({ "paramName": "deep", "assertion": "matches", "value": "^\\{.*\\}$", "call": "last" }), Holds)]
#[case(json!({ "paramName": "days", "assertion": "oneOf", "value": [3, "1"] }), Holds)]
#[case(json!({ "paramName": "days", "assertion": "oneOf", "value": [3, 4] }), Fails)]
// Null is a value, and its text is `null`.
#[case(json!({ "paramName": "no", "assertion": "exists", "call": "last" }), Holds)]
#[case(json!({ "paramName": "no", "assertion": "notExists", "call": "last" }), Fails)]
#[case(json!({ "paramName": "no", "assertion": "equals", "value": "null", "call": "last" }), Holds)]
#[case(json!({ "paramName": "no", "assertion": "equals", "value": null, "call": "last" }), Holds)]
// `contains` and `matches` apply anywhere in the text.
#[case(json!({ "paramName": "city", "assertion": "contains", "value": "oky" }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "contains", "value": "" }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "contains", "value": "OKY" }), Fails)]
#[case(json!({ "paramName": "city", "assertion": "matches", "value": "o.y" }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "matches", "value": "^o" }), Fails)]
// An absent parameter fails, except for `notExists` and if it is optional.
#[case(json!({ "paramName": "deep", "assertion": "exists" }), Fails)]
#[case(json!({ "paramName": "deep", "assertion": "notExists" }), Holds)]
#[case(json!({ "paramName": "deep", "assertion": "contains", "value": "" }), Fails)]
#[case(json!({ "paramName": "deep", "assertion": "matches", "value": "" }), Fails)]
#[case(json!({ "paramName": "deep", "assertion": "equals", "value": "undefined" }), Fails)]
#[case(json!({ "paramName": "deep", "assertion": "equals", "value": "x", "optional": true }), Holds)]
#[case(json!({ "paramName": "deep", "assertion": "exists", "optional": true }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "x", "optional": true }), Fails)]
#[case(json!({ "paramName": "city", "assertion": "notExists", "optional": true }), Fails)]
#[case(json!({ "paramName": "unit", "assertion": "exists", "call": "all" }), Fails)]
#[case(json!({ "paramName": "unit", "assertion": "exists", "call": "all", "optional": true }), Holds)]
#[case(json!({ "paramName": "unit", "assertion": "equals", "value": "F", "call": "any", "optional": true }), Holds)]
#[case(json!({ "paramName": "unit", "assertion": "notExists", "call": "any" }), Holds)]
#[case(json!({ "paramName": "unit", "assertion": "notExists", "call": "all" }), Fails)]
// Tools that were not called are covered by the routing assertions, but a call that is asked for by its number must be
// made.
#[case(json!({ "tool": "never", "paramName": "p", "assertion": "exists" }), Skipped)]
#[case(json!({ "tool": "never", "paramName": "p", "assertion": "notExists", "call": "all" }), Skipped)]
#[case(json!({ "tool": "never", "paramName": "p", "assertion": "exists", "call": 0 }), Fails)]
#[case(json!({ "tool": "never", "paramName": "p", "assertion": "notExists", "call": 5 }), Fails)]
#[case(json!({ "tool": "T", "paramName": "city", "assertion": "exists" }), Skipped)]
// Tokens.
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "{{seed:city}}" }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "{{seed:nope}}" }), Skipped)]
#[case(json!({ "paramName": "city", "assertion": "equals", "value": "Tokyo{{seed:nope}}" }), Skipped)]
#[case(json!({ "paramName": "deep", "assertion": "equals", "value": "{{seed:nope}}" }), Skipped)]
#[case(json!({ "paramName": "city", "assertion": "exists", "value": "{{seed:nope}}" }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "oneOf", "value": "{{seed:cities}}" }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "oneOf", "value": "{{seed:city}}" }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "oneOf", "value": "{{seed:nope}}" }), Skipped)]
#[case(json!({ "paramName": "city", "assertion": "oneOf", "value": "{{seed:none}}" }), Skipped)]
#[case(json!({ "paramName": "city", "assertion": "oneOf", "value": ["{{seed:nope}}"] }), Skipped)]
#[case(json!({ "paramName": "city", "assertion": "oneOf", "value": ["{{seed:nope}}", "Oslo"] }), Fails)]
#[case(json!({ "paramName": "city", "assertion": "oneOf", "value": ["{{seed:nope}}", "{{seed:city}}"] }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "matches", "value": "^{{seed:city}}$" }), Holds)]
#[case(json!({ "paramName": "city", "assertion": "matches", "value": "{{seed:nope}}(" }), Skipped)]
#[case(json!({ "paramName": "city", "assertion": "matches", "value": "{{seed:broken}}" }), Fails)]
fn tool_params(#[case] mut assertion: Value, #[case] outcome: Outcome) {
    if assertion.get("tool").is_none() {
        assertion["tool"] = "t".into();
    }
    let scenario = Scenario::new(json!({ "toolParams": [assertion] }), json!({ "toolCalls": weather_calls() }))
        .with("seed", json!({ "city": "Tokyo", "cities": ["Oslo", "Tokyo"], "none": [], "broken": "(" }));
    assert_eq!(scenario.outcome(), outcome);
}

#[test]
fn reports_a_pattern_that_a_token_makes_invalid() {
    let expect =
        json!({ "toolParams": [{ "tool": "t", "paramName": "city", "assertion": "matches", "value": "{{seed:b}}" }] });
    let scenario = Scenario::new(expect, json!({ "toolCalls": weather_calls() })).with("seed", json!({ "b": "(" }));
    let verdict = scenario.judge(FIRST);
    assert!(messages(&verdict)[0].starts_with("toolParams: t.city: /(/ is not a valid regular expression: "));
}

// Calls.

#[rstest]
#[case(json!([]), Holds)]
#[case(json!([{ "name": "a", "success": true }]), Holds)]
#[case(json!([{ "name": "a", "success": true }, { "name": "b", "success": false }]), Fails)]
#[case(json!([{ "name": "a" }]), Skipped)]
#[case(json!([{ "name": "a" }, { "name": "b" }]), Skipped)]
#[case(json!([{ "name": "a" }, { "name": "b", "success": true }]), Holds)]
#[case(json!([{ "name": "a" }, { "name": "b", "success": false }]), Fails)]
fn no_tool_errors_with_an_endpoint(#[case] made: Value, #[case] outcome: Outcome) {
    let trace = json!({ "toolCalls": made });
    let scenario = Scenario::new(json!({ "noToolErrors": true }), trace.clone());
    assert_eq!(scenario.outcome(), outcome);
    let stubbed_file = scenario.with("case", json!({ "stubs": {} }));
    assert_eq!(stubbed_file.outcome(), outcome, "stubs do not apply to an endpoint");
    assert_eq!(Scenario::new(json!({ "noToolErrors": false }), trace).outcome(), Nothing);
}

#[test]
fn warns_about_calls_without_a_status() {
    for made in [json!([{ "name": "a" }]), json!([{ "name": "b", "success": true }, { "name": "a" }])] {
        let scenario = Scenario::new(json!({ "noToolErrors": true }), json!({ "toolCalls": made }));
        assert_eq!(scenario.judge(FIRST).warnings, ["noToolErrors: the agent does not report whether 'a' succeeded"]);
    }
    let reported = Scenario::new(json!({ "noToolErrors": true }), json!({ "toolCalls": calls(&["a"]) }));
    assert_eq!(reported.judge(FIRST).warnings, Vec::<String>::new());
}

#[rstest]
#[case(json!({ "a": { "t": 1 } }), &["a", "a"], Holds)]
#[case(json!({ "a": null }), &["a"], Holds)]
#[case(json!({ "a": null }), &["b"], Fails)]
#[case(json!({ "a": null }), &[], Holds)]
#[case(json!({}), &["a"], Fails)]
#[case(json!({}), &[], Holds)]
fn no_tool_errors_with_stubs(#[case] stubs: Value, #[case] made: &[&str], #[case] outcome: Outcome) {
    // The reported status is ignored; only the stubs matter.
    for success in [json!(true), json!(false), Value::Null] {
        let made: Value = made.iter().map(|name| json!({ "name": name, "success": success })).collect();
        let scenario = Scenario::new(json!({ "noToolErrors": true }), json!({ "toolCalls": made }))
            .with("case", json!({ "stubs": stubs }))
            .with("mode", "stubbed");
        assert_eq!(scenario.outcome(), outcome);
    }
}

#[test]
fn no_tool_errors_is_neither_run_nor_skipped_for_routing() {
    let trace = json!({ "toolCalls": [{ "name": "a", "success": false }] });
    let scenario = Scenario::new(json!({ "noToolErrors": true }), trace).with("mode", "routingOnly");
    assert_eq!(scenario.outcome(), Nothing);
    let verdict = scenario.judge(FIRST);
    assert!(verdict.vacuous && verdict.passed());
    assert_eq!(verdict.warnings, Vec::<String>::new());
}

#[rstest]
#[case(&["a", "b"], Holds)]
#[case(&["a", "x", "b", "a"], Holds)]
#[case(&["b", "a"], Fails)]
#[case(&["b", "a", "b"], Fails)]
#[case(&["b"], Fails)]
#[case(&["a"], Skipped)]
#[case(&[], Skipped)]
fn tool_order(#[case] made: &[&str], #[case] outcome: Outcome) {
    let scenario = Scenario::new(json!({ "toolOrder": [["a", "b"]] }), json!({ "toolCalls": calls(made) }));
    assert_eq!(scenario.outcome(), outcome);
}

#[rstest]
#[case(json!({ "minToolCalls": 0 }), 0, Holds)]
#[case(json!({ "minToolCalls": 2 }), 1, Fails)]
#[case(json!({ "minToolCalls": 2 }), 2, Holds)]
#[case(json!({ "maxToolCalls": 0 }), 0, Holds)]
#[case(json!({ "maxToolCalls": 0 }), 1, Fails)]
#[case(json!({ "maxToolCalls": 2 }), 2, Holds)]
#[case(json!({ "maxToolCalls": 2 }), 3, Fails)]
fn tool_call_counts(#[case] expect: Value, #[case] count: usize, #[case] outcome: Outcome) {
    let scenario = Scenario::new(expect, json!({ "toolCalls": calls(&vec!["same"; count]) }));
    assert_eq!(scenario.outcome(), outcome);
}

#[rstest]
#[case(json!([{ "name": "t", "params": { "days": 2 } }]), Holds)]
#[case(json!([{ "name": "t", "params": { "days": 2.0 } }]), Holds)]
#[case(json!([{ "name": "t", "params": { "days": "2" } }]), Fails)]
#[case(json!([{ "name": "t", "params": {} }]), Fails)]
#[case(json!([{ "name": "t", "params": { "days": 2, "more": 1 } }]), Fails)]
#[case(json!([{ "name": "free", "params": { "anything": [] } }]), Holds)]
#[case(json!([{ "name": "T", "params": { "days": 2 } }]), Fails)]
#[case(json!([{ "name": "t", "params": { "days": 2 } }, { "name": "unknown" }]), Fails)]
#[case(json!([{ "name": "loop", "params": { "x": 1 } }]), Holds)]
#[case(json!([]), Holds)]
fn tool_args_valid(#[case] made: Value, #[case] outcome: Outcome) {
    let days = json!({
        "type": "object", "properties": { "days": { "type": "integer" } }, "required": ["days"], "additionalProperties": false
    });
    let scenario = Scenario::new(json!({ "toolArgsValid": true }), json!({ "toolCalls": made }));
    let known = scenario.clone().with(
        "registry",
        json!([{ "name": "t", "inputSchema": days }, { "name": "free" }, { "name": "loop", "inputSchema": { "$ref": "#" } }]),
    );
    assert_eq!(known.outcome(), outcome);
    assert_eq!(scenario.outcome(), Skipped, "nothing to check against");
    assert_eq!(scenario.judge(FIRST).warnings, ["toolArgsValid: no tool registry to validate against"]);
}

#[rstest]
#[case::in_the_gap(&["t", "elsewhere"], Skipped, "toolArgsValid: 'elsewhere' is not in the readable part of the tool registry")]
#[case::no_schema_yet(&["late", "late"], Skipped, "toolArgsValid: the schema of 'late' is unknown: the value is a call")]
#[case::known_tool_still_fails(&["late", "strict"], Fails, "")]
#[case::all_known(&["t"], Holds, "")]
fn tool_args_valid_with_unknown_schemas(#[case] called: &[&str], #[case] outcome: Outcome, #[case] warning: &str) {
    let scenario = Scenario::new(json!({ "toolArgsValid": true }), json!({ "toolCalls": calls(called) }))
        .with(
            "registry",
            json!([
                { "name": "t" }, { "name": "late", "inputSchema": false, "unknown": true },
                { "name": "strict", "inputSchema": false },
            ]),
        )
        .with("gap", true);
    assert_eq!(scenario.outcome(), outcome);
    assert_eq!(scenario.judge(FIRST).warnings.join("\n"), warning);
}

// Responses.

#[rstest]
#[case("", Fails)]
#[case(" \n\t\r\u{2003}", Fails)]
#[case("\u{200b}", Fails)]
#[case("0", Holds)]
fn response_non_empty(#[case] response: &str, #[case] outcome: Outcome) {
    let trace = json!({ "response": response });
    assert_eq!(Scenario::new(json!({ "responseNonEmpty": true }), trace.clone()).outcome(), outcome);
    assert_eq!(Scenario::new(json!({ "responseNonEmpty": false }), trace).outcome(), Nothing);
}

#[rstest]
#[case(json!({ "responseContains": ["kyo"] }), Holds)]
#[case(json!({ "responseContains": ["KYO"] }), Fails)]
#[case(json!({ "responseContains": [""] }), Skipped)]
#[case(json!({ "responseContains": ["{{seed:city}}, "] }), Holds)]
#[case(json!({ "responseContains": ["{{seed:nope}}"] }), Skipped)]
#[case(json!({ "responseContains": ["Tokyo {{seed:nope}}"] }), Skipped)]
#[case(json!({ "responseContains": ["{{ seed:city }}"] }), Fails)]
#[case(json!({ "responseContains": [] }), Nothing)]
#[case(json!({ "responseContainsAny": [["Oslo", "Tokyo"]] }), Holds)]
#[case(json!({ "responseContainsAny": [["Oslo", "tokyo"]] }), Fails)]
#[case(json!({ "responseContainsAny": [["{{seed:nope}}", "Tokyo"]] }), Holds)]
#[case(json!({ "responseContainsAny": [["{{seed:nope}}", "Oslo"]] }), Fails)]
#[case(json!({ "responseContainsAny": [["{{seed:nope}}", "{{snapshot:x}}"]] }), Skipped)]
#[case(json!({ "responseContainsAny": [["", "Oslo"]] }), Fails)]
#[case(json!({ "responseContainsAny": [[""]] }), Skipped)]
#[case(json!({ "responseContainsAny": [[]] }), Skipped)]
#[case(json!({ "responseContainsAny": [] }), Nothing)]
#[case(json!({ "responseNotContains": ["Oslo"] }), Holds)]
#[case(json!({ "responseNotContains": ["tokyo"] }), Holds)]
#[case(json!({ "responseNotContains": ["Tokyo"] }), Fails)]
#[case(json!({ "responseNotContains": [""] }), Fails)]
#[case(json!({ "responseNotContains": ["{{seed:city}}"] }), Fails)]
#[case(json!({ "responseNotContains": ["{{seed:nope}}"] }), Skipped)]
#[case(json!({ "responseNotContains": [] }), Nothing)]
#[case(json!({ "responseMatches": ["\\d+ °C$"] }), Holds)]
#[case(json!({ "responseMatches": ["^tokyo"] }), Fails)]
#[case(json!({ "responseMatches": ["^.{12}$"] }), Holds)]
#[case(json!({ "responseMatches": ["{{seed:city}}"] }), Fails)]
#[case(json!({ "responseMatches": [] }), Nothing)]
fn response_texts(#[case] expect: Value, #[case] outcome: Outcome) {
    let scenario =
        Scenario::new(expect, json!({ "response": "Tokyo, 18 °C" })).with("seed", json!({ "city": "Tokyo" }));
    assert_eq!(scenario.outcome(), outcome);
}

#[rstest]
#[case("(a+)+$")]
#[case("(a*)*\\1$")]
#[case("(?=(a+)+b)x")]
#[case("^(\\w+\\s?)*\\1$")]
fn catastrophic_backtracking_ends(#[case] pattern: &str) {
    let scenario =
        Scenario::new(json!({ "responseMatches": [pattern] }), json!({ "response": format!("{}!", "a".repeat(60)) }));
    assert_eq!(scenario.outcome(), Fails);
}

#[rstest]
#[case(json!({ "type": "object" }), "{}", Holds)]
#[case(json!({ "type": "object" }), " \n{} ", Holds)]
#[case(json!({ "type": "string" }), "\"x\"", Holds)]
#[case(json!({ "type": "string" }), "x", Fails)]
#[case(json!({}), "null", Holds)]
#[case(json!({}), "", Fails)]
#[case(json!({}), "Here it is: {}", Fails)]
#[case(json!({}), "```json\n{}\n```", Fails)]
#[case(json!({}), "{} {}", Fails)]
#[case(json!({ "required": ["a"] }), "{\"b\": 1}", Fails)]
#[case(json!({ "$ref": "#" }), "{\"a\": [1]}", Holds)]
#[case(json!({ "allOf": [{ "$ref": "#" }], "type": "array" }), "{}", Fails)]
#[case(json!({ "pattern": "^(a|a)*$" }), "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\"", Fails)]
#[case(json!({ "pattern": "(?=(a+)+$)b" }), "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\"", Fails)]
fn response_json_schema(#[case] schema: Value, #[case] response: &str, #[case] outcome: Outcome) {
    let scenario = Scenario::new(json!({ "responseJsonSchema": schema }), json!({ "response": response }));
    assert_eq!(scenario.outcome(), outcome);
}

#[test]
fn deeply_nested_json_fails_with_a_short_message() {
    let scenario = Scenario::new(json!({ "responseJsonSchema": {} }), json!({ "response": "[".repeat(200_000) }));
    assert_eq!(scenario.outcome(), Fails);
    assert!(messages(&scenario.judge(FIRST))[0].chars().count() < 300);
}

// Budgets.

#[rstest]
#[case(json!({ "maxLatencyMs": 100 }), Holds)]
#[case(json!({ "maxLatencyMs": 99.9 }), Fails)]
#[case(json!({ "maxCostUsd": 0.25 }), Holds)]
#[case(json!({ "maxCostUsd": 0.2 }), Fails)]
// Five characters, regardless of their bytes; a combining mark counts separately.
#[case(json!({ "minLength": 5 }), Holds)]
#[case(json!({ "minLength": 6 }), Fails)]
#[case(json!({ "maxLength": 5 }), Holds)]
#[case(json!({ "maxLength": 4 }), Fails)]
#[case(json!({ "minLength": 0 }), Holds)]
#[case(json!({ "maxLength": 0 }), Fails)]
fn budgets_include_their_limit(#[case] expect: Value, #[case] outcome: Outcome) {
    let trace = json!({ "response": "日🗼ße\u{301}", "latencyMs": 100, "usage": { "costUsd": 0.25 } });
    assert_eq!(Scenario::new(expect, trace).outcome(), outcome);
}

#[rstest]
#[case(json!({}))]
#[case(json!({ "usage": {} }))]
#[case(json!({ "usage": { "inputTokens": 5, "outputTokens": 7 } }))]
fn an_unknown_cost_is_skipped_with_a_warning(#[case] trace: Value) {
    let scenario = Scenario::new(json!({ "maxCostUsd": 0.01 }), trace);
    assert_eq!(scenario.outcome(), Skipped);
    assert_eq!(scenario.judge(FIRST).warnings, ["maxCostUsd: the cost of the answer is unknown"]);
}

#[test]
fn a_cost_of_zero_is_known() {
    let scenario = Scenario::new(json!({ "maxCostUsd": 0.01 }), json!({ "usage": { "costUsd": 0.0 } }));
    assert_eq!(scenario.outcome(), Holds);
}

#[rstest]
#[case("", 0, 0)]
#[case("hello world", 2, 2)]
#[case("こんにちは世界", 2, 4)]
#[case("<|endoftext|>", 7, 7)]
fn counts_tokens_with_the_selected_tokenizer(#[case] response: &str, #[case] o200k: u64, #[case] cl100k: u64) {
    for (name, count) in [("o200k_base", o200k), ("cl100k_base", cl100k)] {
        let scenario = |max: u64| {
            Scenario::new(json!({ "maxTokens": max.max(1) }), json!({ "response": response })).with("tokenizer", name)
        };
        assert_eq!(scenario(count).outcome(), Holds, "{name}");
        if count > 1 {
            let verdict = scenario(count - 1).judge(FIRST);
            let expected =
                format!("maxTokens: expected at most {} tokens but the response has {count} ({name})", count - 1);
            assert_eq!(messages(&verdict), [expected]);
        }
    }
}

// Numbers.

#[rstest]
#[case("no number", json!([]), Holds)]
#[case("7", json!([]), Holds)]
#[case("07.0", json!([]), Holds)]
#[case("8", json!([]), Fails)]
#[case("-7", json!([]), Holds)]
#[case("it is 18.50 °C", json!([{ "name": "t", "result": { "a": [{ "b": 18.5 }] } }]), Holds)]
#[case("it is 1,234,567.5", json!([{ "name": "t", "result": 1_234_567.5 }]), Holds)]
#[case("it is 1234", json!([{ "name": "t", "result": "about 1,234 of them" }]), Holds)]
#[case("it is 1000", json!([{ "name": "t", "result": 1e3 }]), Holds)]
#[case("it is 1e21", json!([{ "name": "t", "result": 1e21 }]), Holds)]
#[case("62% or 62 %", json!([{ "name": "t", "result": 0.62 }]), Holds)]
#[case("62 of them", json!([{ "name": "t", "result": 0.62 }]), Fails)]
#[case("0.62", json!([{ "name": "t", "result": 62 }]), Fails)]
#[case("3 days", json!([{ "name": "t", "params": { "days": 3 }, "result": "ok" }]), Holds)]
#[case("3 days", json!([{ "name": "t", "params": { "days": "3" }, "result": "ok" }]), Holds)]
#[case("3 days", json!([{ "name": "t", "params": { "3": "x" }, "result": "ok" }]), Fails)]
#[case("18 and 19", json!([{ "name": "t", "result": 18 }, { "name": "u", "result": 19 }]), Holds)]
#[case("18 and 19", json!([{ "name": "t", "result": 18 }, { "name": "u" }]), Fails)]
#[case("1. Paris\n2. Rome", json!([]), Holds)]
#[case("Paris 2. Rome", json!([]), Fails)]
#[case("H2O and v2", json!([]), Holds)]
#[case("1e999", json!([{ "name": "t", "result": [0, 1, 999] }]), Fails)]
#[case("18", json!([{ "name": "t", "params": { "n": 18 } }]), Holds)]
#[case("19", json!([{ "name": "t", "params": { "n": 18 } }]), Fails)]
#[case("in 2024: 12345678901234567890", json!([{ "name": "t", "result": { "2024": 12_345_678_901_234_567_890_u64 } }]), Holds)]
fn numbers_grounded(#[case] response: &str, #[case] made: Value, #[case] outcome: Outcome) {
    let trace = json!({ "response": response, "toolCalls": made });
    let calls = trace["toolCalls"].as_array().expect("a list");
    let is_unreported = !calls.is_empty() && calls.iter().all(|call| call.get("result").is_none());
    let scenario = Scenario::new(json!({ "numbersGrounded": true }), trace.clone())
        .with("case", json!({ "input": { "message": "7 days?" } }));
    assert_eq!(scenario.outcome(), outcome);
    assert_eq!(!scenario.judge(FIRST).warnings.is_empty(), is_unreported);
    assert_eq!(Scenario::new(json!({ "numbersGrounded": false }), trace).outcome(), Nothing);
}

#[test]
fn lists_only_some_of_many_ungrounded_numbers() {
    let numbers: Vec<String> = (1_000..200_000).map(|number| number.to_string()).collect();
    let scenario = Scenario::new(json!({ "numbersGrounded": true }), json!({ "response": numbers.join(" ") }));
    let verdict = scenario.judge(FIRST);
    assert!(messages(&verdict)[0].ends_with("'1009'] and 198990 more do not"), "{:?}", verdict.failures);
}

// Eval functions.

fn with_functions(functions: Value) -> Scenario {
    let names: Vec<String> = functions.as_object().expect("functions").keys().cloned().collect();
    Scenario::new(json!({ "responseContains": ["rain"], "evals": names }), json!({ "response": "rain" }))
        .with("functions", functions)
}

#[rstest]
#[case::passed(json!({ "eval_a": [true, "fine"], "eval_b": [true, ""] }), Some(3), None, &[Some(true), Some(true)])]
#[case::failed(json!({ "eval_a": [false, "too short"], "eval_b": [true, ""] }), None, None, &[Some(false)])]
#[case::errored(
    json!({ "eval_a": ["timeout", "took longer than 5 s"], "eval_b": [false, ""] }),
    None, Some("evals: eval_a errored (timeout): took longer than 5 s"), &[None],
)]
#[case::traceback_is_shortened(
    json!({ "eval_a": [true, ""], "eval_b": ["exception", "KeyError: 'x'\nTraceback:\n…"] }),
    None, Some("evals: eval_b errored (exception): KeyError: 'x'"), &[Some(true), None],
)]
fn eval_functions_run_in_order(
    #[case] functions: Value,
    #[case] passed_with: Option<usize>,
    #[case] error: Option<&str>,
    #[case] results: &[Option<bool>],
) {
    let verdict = with_functions(functions).judge(FIRST);
    assert_eq!(verdict.passed().then_some(verdict.assertions_run), passed_with);
    assert_eq!(verdict.error.as_deref(), error);
    assert_eq!(verdict.failures.is_empty(), passed_with.is_some() || error.is_some(), "{:?}", verdict.failures);
    assert_eq!(verdict.evals.iter().map(|eval| eval.result).collect::<Vec<_>>(), results);
}

#[test]
fn records_results_of_eval_functions() {
    let verdict = with_functions(json!({ "eval_a": [true, "fine"], "eval_b": ["exception", "E\nT"] })).judge(FIRST);
    let [passed, errored] = &verdict.evals[..] else { panic!("{:?}", verdict.evals) };
    assert_eq!(
        (passed.name.as_str(), passed.reason.as_deref(), passed.error.as_deref()),
        ("eval_a", Some("fine"), None)
    );
    assert_eq!((passed.execution_time_ms, passed.stdout.as_str()), (3, "printed"));
    assert_eq!((errored.reason.as_deref(), errored.error.as_deref()), (None, Some("E\nT")));
    assert_eq!(errored.error_kind, Some(ErrorKind::Exception));
}

#[test]
fn eval_functions_do_not_run_if_the_case_is_decided() {
    let mut scenario = with_functions(json!({ "eval_a": [true, ""] }));
    scenario.0["trace"]["response"] = json!("sun");
    assert_eq!(scenario.judge(FIRST).evals, []);
    assert_eq!(scenario.judge(ALL).evals.len(), 1);
}

#[test]
fn an_earlier_failure_outweighs_a_function_error() {
    let mut scenario =
        with_functions(json!({ "eval_a": ["memory", "too much"], "eval_b": [false, "rude"], "eval_c": [true, ""] }));
    scenario.0["trace"]["response"] = json!("sun");
    let verdict = scenario.judge(ALL);
    assert_eq!(verdict.error, None);
    assert_eq!(verdict.warnings, ["evals: eval_a errored (memory): too much"]);
    assert_eq!(messages(&verdict)[1..], ["evals: eval_b failed: rude"]);
    assert_eq!((verdict.evals.len(), verdict.assertions_run), (3, 3));
}

#[test]
fn a_function_error_ends_the_case_without_a_failure() {
    let scenario = Scenario::new(json!({ "evals": ["eval_a", "eval_b"] }), json!({}))
        .with("functions", json!({ "eval_a": ["return", "must return (bool, str)"], "eval_b": [false, ""] }));
    for strictness in [FIRST, ALL, STRICT] {
        let verdict = scenario.judge(strictness);
        assert!(!verdict.passed() && !verdict.vacuous && verdict.failures.is_empty(), "{verdict:?}");
        assert_eq!((verdict.evals.len(), verdict.assertions_run, verdict.assertions_skipped), (1, 0, 0));
    }
}

#[test]
fn a_function_that_did_not_run_is_skipped() {
    let verdict = Scenario::new(json!({ "evals": ["eval_a"] }), json!({})).judge(ALL);
    assert_eq!((verdict.assertions_run, verdict.assertions_skipped, verdict.vacuous), (0, 1, true));
    assert_eq!(verdict.warnings, ["evals: eval_a was not run"]);
}

// Counting, order, strictness.

#[test]
fn fields_are_judged_in_the_order_of_the_spec() {
    let expected = [
        "toolsCalled",
        "toolsAcceptable",
        "toolsNotCalled",
        "toolParams",
        "noToolErrors",
        "responseNonEmpty",
        "responseContains",
        "responseContainsAny",
        "responseNotContains",
        "responseMatches",
        "maxLatencyMs",
        "maxTokens",
        "toolOrder",
        "minToolCalls",
        "maxToolCalls",
        "toolArgsValid",
        "responseJsonSchema",
        "minLength",
        "maxLength",
        "maxCostUsd",
        "numbersGrounded",
        "evals",
    ];
    assert_eq!(Field::ALL.map(Field::name), expected);
}

/// Checks of every kind that is counted: values, groups, tools, parameters, flags.
fn many_checks() -> Scenario {
    Scenario::new(
        json!({
            "toolsCalled": ["t"],
            "toolsNotCalled": ["x", "y"],
            "toolParams": [
                { "tool": "t", "paramName": "p", "assertion": "exists" },
                { "tool": "t", "paramName": "p", "assertion": "equals", "value": "{{seed:nope}}" },
                { "tool": "never", "paramName": "p", "assertion": "exists" }
            ],
            "noToolErrors": true,
            "responseNonEmpty": true,
            "responseContains": ["one", "{{snapshot:b}}", "missing", "{{seed:nope}} {{snapshot:a}}"],
            "responseContainsAny": [["one", "{{seed:late}}"], ["{{seed:nope}}"], ["absent"]],
            "responseNotContains": ["absent", "{{snapshot:a}}"],
            "toolOrder": []
        }),
        json!({ "response": "one", "toolCalls": [{ "name": "t", "success": true, "params": { "p": 1 } }] }),
    )
}

#[test]
fn stops_at_the_first_failure() {
    let verdict = many_checks().judge(FIRST);
    assert_eq!(messages(&verdict), ["responseContains: expected 'missing' in response but not found"]);
    // The failed check counts as run; later ones are not evaluated.
    assert_eq!((verdict.assertions_run, verdict.assertions_skipped), (8, 3));
    assert_eq!(verdict.skipped_tokens, ["{{seed:nope}}", "{{snapshot:b}}"]);
}

#[test]
fn reports_all_failures_on_request() {
    let verdict = many_checks().judge(ALL);
    let expected = [
        "responseContains: expected 'missing' in response but not found",
        "responseContainsAny: expected one of ['absent'] in response but none found",
    ];
    assert_eq!(messages(&verdict), expected);
    assert_eq!((verdict.assertions_run, verdict.assertions_skipped), (11, 6));
    // Each token once, in order of occurrence.
    assert_eq!(verdict.skipped_tokens, ["{{seed:nope}}", "{{snapshot:b}}", "{{snapshot:a}}", "{{seed:late}}"]);
    assert_eq!(many_checks().judge(STRICT), verdict, "the case is not vacuous");
}

#[rstest]
#[case::nothing_asserted(json!({}), 0)]
#[case::empty_lists(json!({ "responseContains": [], "toolParams": [], "toolOrder": [] }), 0)]
#[case::false_flags(json!({ "noToolErrors": false, "responseNonEmpty": false, "numbersGrounded": false }), 0)]
#[case::token(json!({ "responseContains": ["{{seed:nope}}"] }), 1)]
#[case::unknown_cost(json!({ "maxCostUsd": 1 }), 1)]
#[case::no_registry(json!({ "toolArgsValid": true }), 1)]
#[case::tool_never_called(json!({ "toolParams": [{ "tool": "t", "paramName": "p", "assertion": "exists" }] }), 1)]
#[case::order_without_calls(json!({ "toolOrder": [["a", "b"], ["b", "a"]] }), 2)]
fn a_case_without_run_assertions_is_vacuous(#[case] expect: Value, #[case] skipped: usize) {
    let scenario = Scenario::new(expect, json!({ "response": "x" }));
    let verdict = scenario.judge(FIRST);
    assert!(verdict.vacuous && verdict.passed());
    assert_eq!((verdict.assertions_run, verdict.assertions_skipped), (0, skipped));
    let strict = scenario.judge(Strictness { all_failures: false, strict: true });
    assert!(strict.vacuous && !strict.passed());
    assert_eq!(messages(&strict), ["strict: no assertion ran"]);
    assert_eq!((strict.assertions_run, strict.assertions_skipped), (0, skipped));
}

#[test]
fn a_near_miss_of_a_forbidden_text_fails_strictly() {
    let expect = json!({ "responseNotContains": ["Paris", "I don't know"] });
    let scenario = Scenario::new(expect, json!({ "response": "Sorry, I Don’t know." }));
    let verdict = scenario.judge(FIRST);
    assert!(verdict.passed());
    let near = &verdict.near_misses[0];
    assert_eq!((near.pointer.as_str(), near.found.as_str()), ("/expect/responseNotContains/1", "I Don’t know"));
    let message = "responseNotContains: expected no 'I don't know' in response but found 'I Don’t know', which is \
                   nearly the same";
    assert_eq!(messages(&scenario.judge(STRICT)), [message]);
    let exact = json!({ "responseNotContains": ["I don't know"], "textMatch": "exact" });
    assert!(Scenario::new(exact, json!({ "response": "I Don’t know" })).judge(STRICT).passed());
}

#[rstest]
#[case(json!({ "responseNonEmpty": true, "responseNotContains": ["{{ seed:city }}"] }))]
#[case(json!({ "responseNonEmpty": true, "toolParams": [
    { "tool": "t", "paramName": "p", "assertion": "equals", "value": { "city": ["{{ seed:city }}"] } }
] }))]
fn a_misspelt_token_is_a_warning_and_fails_strictly(#[case] expect: Value) {
    let scenario = Scenario::new(expect, json!({ "response": "x" }));
    let verdict = scenario.judge(FIRST);
    assert!(verdict.passed());
    assert_eq!(verdict.warnings, ["'{{ seed:city }}' is not a token and is compared as text"]);
    assert_eq!(messages(&scenario.judge(STRICT)), ["strict: '{{ seed:city }}' is not a token and is compared as text"]);
}

#[rstest]
#[case("{{ row:city }}")]
#[case("{{Row:city}}")]
fn a_misspelt_row_token_is_a_warning_and_fails_strictly(#[case] text: &str) {
    let scenario = Scenario::new(json!({ "responseNotContains": [text] }), json!({ "response": "x" }));
    let message = format!("'{text}' is not a token and is compared as text");
    assert!(scenario.judge(FIRST).passed());
    assert_eq!(scenario.judge(FIRST).warnings, [message.as_str()]);
    assert_eq!(messages(&scenario.judge(STRICT)), [format!("strict: {message}").as_str()]);
}

#[test]
fn an_invalid_schema_in_the_registry_is_no_verdict() {
    let trace = json!({ "toolCalls": [{ "name": "t", "params": {} }] });
    let scenario = Scenario::new(json!({ "toolArgsValid": true }), trace)
        .with("registry", json!([{ "name": "t", "inputSchema": { "type": "dict" } }]));
    let verdict = scenario.judge(FIRST);
    let error = verdict.error.as_deref().expect("no verdict");
    assert!(error.starts_with("toolArgsValid: the registry's schema of 't' is not a valid JSON Schema:"), "{error}");
    assert!(verdict.failures.is_empty() && !verdict.vacuous);
}

#[rstest]
#[case(json!({ "toolsCalled": [] }))]
#[case(json!({ "maxToolCalls": 0 }))]
#[case(json!({ "toolArgsValid": true, "responseNonEmpty": true }))]
fn one_run_assertion_is_enough(#[case] expect: Value) {
    let verdict = Scenario::new(expect, json!({ "response": "x" })).judge(STRICT);
    assert!(!verdict.vacuous && verdict.passed());
}

#[test]
fn warnings_are_not_repeated() {
    let scenario = Scenario::new(
        json!({ "noToolErrors": true, "maxCostUsd": 1, "numbersGrounded": true }),
        json!({ "toolCalls": [{ "name": "a" }, { "name": "a" }] }),
    );
    let warnings = scenario.judge(ALL).warnings;
    let distinct: BTreeSet<&String> = warnings.iter().collect();
    assert_eq!((warnings.len(), distinct.len()), (3, 3), "{warnings:?}");
}

// Properties.

fn tool_name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "__none__", ""]).prop_map(str::to_owned)
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[abc1. é]{0,4}",
        Just("{{seed:a}}".to_owned()),
        Just("x{{seed:nope}}".to_owned()),
        Just("{{snapshot:b[0]}}".to_owned()),
        any::<String>(),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(word(), inner, 0..3).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    let key = prop_oneof![Just("p".to_owned()), Just("type".to_owned()), Just("$ref".to_owned()), word()];
    prop::collection::btree_map(key, value(), 0..3).prop_map(|map| map.into_iter().collect())
}

fn words() -> impl Strategy<Value = Option<Vec<String>>> {
    prop::option::of(prop::collection::vec(word(), 0..3))
}

fn tools() -> impl Strategy<Value = Option<Vec<String>>> {
    prop::option::of(prop::collection::vec(tool_name(), 0..4))
}

fn param_assertion() -> impl Strategy<Value = ParamAssertion> {
    let checks = ParamCheck::NAMES.map(|name| ParamCheck::from_name(name).expect("a check"));
    let paths = prop::sample::select(vec!["", "/0", "/type", "/~x"]);
    let call = prop_oneof![
        prop::sample::select(vec![CallSelector::First, CallSelector::Last, CallSelector::Any, CallSelector::All]),
        (0_usize..4).prop_map(CallSelector::Number),
        Just(CallSelector::Number(usize::MAX)),
    ];
    let checks = prop::sample::select(checks.to_vec());
    (tool_name(), paths, checks, prop::option::of(value()), call, any::<bool>()).prop_map(
        |(tool, path, assertion, value, call, optional)| ParamAssertion {
            tool,
            param_name: "p".to_owned(),
            path: path.to_owned(),
            tolerance: (assertion == ParamCheck::CloseTo).then(|| 1.into()),
            assertion,
            value,
            call,
            optional,
        },
    )
}

fn match_mode() -> impl Strategy<Value = ToolsCalledMatch> {
    prop::sample::select(vec![
        ToolsCalledMatch::Exact,
        ToolsCalledMatch::AnyOrder,
        ToolsCalledMatch::InOrder,
        ToolsCalledMatch::Includes,
    ])
}

prop_compose! {
    fn routing()(
        tools_called in tools(),
        tools_called_match in prop::option::of(match_mode()),
        tools_acceptable in prop::option::of(prop::collection::vec(prop::collection::vec(tool_name(), 0..3), 0..3)),
        tools_not_called in tools(),
        tool_params in prop::option::of(prop::collection::vec(param_assertion(), 0..4)),
        no_tool_errors in any::<Option<bool>>(),
        tool_order in prop::option::of(prop::collection::vec((tool_name(), tool_name()), 0..3)),
        min_tool_calls in prop::option::of(0_u64..4),
        max_tool_calls in prop::option::of(0_u64..4),
        tool_args_valid in any::<Option<bool>>(),
    ) -> Expectation {
        Expectation {
            tools_called, tools_called_match, tools_acceptable, tools_not_called, tool_params, no_tool_errors, tool_order,
            min_tool_calls, max_tool_calls, tool_args_valid,
            ..Expectation::default()
        }
    }
}

prop_compose! {
    fn expectation()(
        routing in routing(),
        response_non_empty in any::<Option<bool>>(),
        response_contains in words(),
        response_contains_any in prop::option::of(prop::collection::vec(prop::collection::vec(word(), 0..3), 0..3)),
        response_not_contains in words(),
        response_matches in words(),
        (max_latency_ms, max_cost_usd) in any::<(Option<f64>, Option<f64>)>(),
        max_tokens in prop::option::of(0_u64..5),
        response_json_schema in prop::option::of(object()),
        (min_length, max_length) in (prop::option::of(0_u64..5), prop::option::of(0_u64..5)),
        numbers_grounded in any::<Option<bool>>(),
        evals in words(),
    ) -> Expectation {
        Expectation {
            response_non_empty, response_contains, response_contains_any, response_not_contains, response_matches,
            max_latency_ms, max_tokens, response_json_schema, min_length, max_length, max_cost_usd, numbers_grounded,
            evals,
            ..routing
        }
    }
}

prop_compose! {
    fn tool_call()(
        name in tool_name(),
        success in any::<Option<bool>>(),
        params in object(),
        result in prop::option::of(value()),
    ) -> ToolCall {
        ToolCall { name, success, params, result, ..ToolCall::default() }
    }
}

prop_compose! {
    fn trace()(
        response in prop_oneof![word(), any::<String>(), object().prop_map(|object| Value::Object(object).to_string())],
        tool_calls in prop::collection::vec(tool_call(), 0..5),
        cost in prop::option::of(any::<Option<f64>>()),
        latency_ms in any::<f64>(),
    ) -> Trace {
        let usage = cost.map(|cost_usd| Usage { cost_usd, ..Usage::default() });
        Trace { response, tool_calls, usage, latency_ms, ..Trace::default() }
    }
}

prop_compose! {
    /// Arbitrary evidence, sensible or not.
    fn any_evidence()(
        expect in expectation(),
        stubs in prop::option::of(object()),
        message in word(),
        trace in trace(),
        mode in prop::sample::select(vec![Mode::Endpoint, Mode::RoutingOnly, Mode::Stubbed]),
        (seed, snapshot) in (prop::option::of(value()), prop::option::of(value())),
        schemas in prop::option::of(prop::collection::vec((tool_name(), prop::option::of(value())), 0..3)),
        tokenizer in prop::sample::select(Tokenizer::ALL.to_vec()),
    ) -> OwnedEvidence {
        let tool = |(name, schema): (String, Option<Value>)| Tool { name, input_schema: schema.into(), ..Tool::default() };
        let registry = schemas.map(|tools| Registry::from_tools(tools.into_iter().map(tool)));
        OwnedEvidence { case: case(expect, stubs, message), trace, mode, tokens: TokenSources { seed, snapshot }, registry, tokenizer }
    }
}

fn case(expect: Expectation, stubs: Option<Map<String, Value>>, message: String) -> Case {
    Case {
        id: "gs-x-001".to_owned(),
        description: String::new(),
        difficulty: None,
        created_at: None,
        bug_ref: None,
        input: Input { message },
        stubs,
        max_turns: None,
        expect,
        tags: Vec::new(),
        skip: None,
        location: CaseLocation { line: 1, ..CaseLocation::default() },
    }
}

#[derive(Debug, Clone)]
struct OwnedEvidence {
    case: Case,
    trace: Trace,
    mode: Mode,
    tokens: TokenSources,
    registry: Option<Registry>,
    tokenizer: Tokenizer,
}

impl OwnedEvidence {
    fn judge(&self, strictness: Strictness) -> Verdict {
        let OwnedEvidence { case, trace, mode, tokens, registry, tokenizer } = self;
        let evidence =
            Evidence { case, trace, mode: *mode, tokens, registry: registry.as_ref(), tokenizer: *tokenizer };
        judge(evidence, strictness)
    }

    /// The number of checks: one for each flag, number, value, group, tool and parameter.
    fn checks(&self) -> usize {
        let expect = &self.case.expect;
        let once = [
            expect.tools_called.is_some(),
            expect.tools_acceptable.is_some(),
            expect.no_tool_errors == Some(true) && self.mode != Mode::RoutingOnly,
            expect.response_non_empty == Some(true),
            expect.max_latency_ms.is_some(),
            expect.max_tokens.is_some(),
            expect.min_tool_calls.is_some(),
            expect.max_tool_calls.is_some(),
            expect.tool_args_valid == Some(true),
            expect.response_json_schema.is_some(),
            expect.min_length.is_some(),
            expect.max_length.is_some(),
            expect.max_cost_usd.is_some(),
            expect.numbers_grounded == Some(true),
        ];
        let lists = [
            expect.tools_not_called.iter().flatten().count(),
            expect.tool_params.iter().flatten().count(),
            expect.response_contains.iter().flatten().count(),
            expect.response_contains_any.iter().flatten().count(),
            expect.response_not_contains.iter().flatten().count(),
            expect.response_matches.iter().flatten().count(),
            expect.tool_order.iter().flatten().count(),
            expect.evals.iter().flatten().count(),
        ];
        once.into_iter().filter(|is_set| *is_set).count() + lists.iter().sum::<usize>()
    }
}

fn holds(mode: ToolsCalledMatch, expected: &[String], actual: &[String]) -> bool {
    let expect =
        Expectation { tools_called: Some(expected.to_vec()), tools_called_match: Some(mode), ..Expectation::default() };
    evidence(expect, actual).judge(FIRST).passed()
}

fn evidence(expect: Expectation, actual: &[String]) -> OwnedEvidence {
    let call = |name: &String| ToolCall { name: name.clone(), ..ToolCall::default() };
    OwnedEvidence {
        case: case(expect, None, String::new()),
        trace: Trace { tool_calls: actual.iter().map(call).collect(), ..Trace::default() },
        mode: Mode::Endpoint,
        tokens: TokenSources::default(),
        registry: None,
        tokenizer: Tokenizer::default(),
    }
}

fn some_tools() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(tool_name(), 0..6)
}

/// Expected tools and related calls.
fn expected_and_actual() -> impl Strategy<Value = (Vec<String>, Vec<String>)> {
    let related = some_tools().prop_flat_map(|expected| {
        let shuffled = Just(expected.clone()).prop_shuffle();
        let longer = (Just(expected.clone()), some_tools()).prop_map(|(mut calls, more)| {
            calls.extend(more);
            calls
        });
        (Just(expected.clone()), prop_oneof![Just(expected), shuffled, longer.prop_shuffle()])
    });
    prop_oneof![related, (some_tools(), some_tools())]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn stricter_match_modes_imply_looser_ones((expected, actual) in expected_and_actual()) {
        use ToolsCalledMatch::{AnyOrder, Exact, InOrder, Includes};
        let [exact, any_order, in_order, includes] =
            [Exact, AnyOrder, InOrder, Includes].map(|mode| holds(mode, &expected, &actual));
        prop_assert!(!exact || any_order);
        prop_assert!(!exact || in_order);
        prop_assert!(!any_order || includes);
        prop_assert!(!in_order || includes);
        // With as many calls as expected there are no extra ones, so looser modes equal stricter ones.
        if expected.len() == actual.len() {
            prop_assert_eq!(includes, any_order);
            prop_assert_eq!(in_order, exact);
        }
    }

    #[test]
    fn any_order_and_includes_ignore_the_order(
        ((expected, actual), shuffled) in expected_and_actual()
            .prop_flat_map(|pair| (Just(pair.clone()), Just(pair.1).prop_shuffle()))
    ) {
        for mode in [ToolsCalledMatch::AnyOrder, ToolsCalledMatch::Includes] {
            prop_assert_eq!(holds(mode, &expected, &actual), holds(mode, &expected, &shuffled));
        }
    }

    #[test]
    fn acceptable_sets_ignore_order_and_repetition(
        sets in prop::collection::vec(prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 0..3), 1..3),
        (actual, shuffled) in prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 0..5)
            .prop_flat_map(|calls| (Just(calls.clone()), Just(calls).prop_shuffle())),
    ) {
        let owned = |tools: &[&str]| tools.iter().map(|tool| (*tool).to_owned()).collect::<Vec<String>>();
        let sets = Some(sets.iter().map(|set| owned(set)).collect());
        let expect = Expectation { tools_acceptable: sets, ..Expectation::default() };
        let passes = |calls: &[&str]| evidence(expect.clone(), &owned(calls)).judge(FIRST).passed();
        let twice = [shuffled.as_slice(), actual.as_slice()].concat();
        prop_assert_eq!(passes(&actual), passes(&shuffled));
        prop_assert_eq!(passes(&actual), passes(&twice));
    }

    #[test]
    fn the_first_failure_does_not_depend_on_strictness(evidence in any_evidence()) {
        let (first, all) = (evidence.judge(FIRST), evidence.judge(ALL));
        prop_assert_eq!(first.failures.first(), all.failures.first());
        prop_assert!(first.failures.len() <= 1);
        prop_assert!(first.assertions_run <= all.assertions_run);
        prop_assert!(first.assertions_skipped <= all.assertions_skipped);
        prop_assert!(all.skipped_tokens.starts_with(&first.skipped_tokens));
        if all.passed() {
            prop_assert_eq!(first, all);
        }
    }

    #[test]
    fn every_check_is_counted_once(evidence in any_evidence()) {
        let all = evidence.judge(ALL);
        prop_assert_eq!(all.assertions_run + all.assertions_skipped, evidence.checks());
        prop_assert!(all.failures.len() <= all.assertions_run);
        prop_assert_eq!(all.vacuous, all.assertions_run == 0);
        let first = evidence.judge(FIRST);
        prop_assert!(first.assertions_run + first.assertions_skipped <= evidence.checks());
        let strict = evidence.judge(STRICT);
        prop_assert_eq!(strict.passed(), all.passed() && !all.vacuous);
    }

    #[test]
    fn every_failure_has_its_field_and_a_valid_pointer(evidence in any_evidence()) {
        let case = serde_json::to_value(&evidence.case).unwrap();
        for Failure { assertion, message, pointer } in evidence.judge(ALL).failures {
            let prefix = format!("{assertion}: ");
            prop_assert!(message.starts_with(&prefix) && message.len() > prefix.len());
            prop_assert!(case.pointer(&pointer).is_some(), "nothing at {}", pointer);
        }
    }

    #[test]
    fn judging_is_deterministic(evidence in any_evidence()) {
        prop_assert_eq!(evidence.judge(ALL), evidence.judge(ALL));
    }
}
