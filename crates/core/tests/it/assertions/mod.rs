//! Assertions: outcomes, failure messages, skipped checks, and properties of arbitrary cases.

mod budgets;
mod calls;
mod counting;
mod evals;
mod messages;
mod params;
mod properties;
mod responses;
mod routing;
mod state;
mod unreported_calls;
mod whole_calls;

use std::time::Duration;

use karat_cases::registry::{Gap, GapKind, Known, Registry, Tool, ToolLocation, Unknown};
use karat_cases::token::TokenSources;
use karat_cases::{Case, EvalFile, Origin};
use karat_core::assertion::{Evidence, Mode, PendingVerdict, Strictness, Verdict};
use karat_core::judgement::{Conclusion, EvalError, Judgement};
use karat_core::tokenizer::Tokenizer;
use karat_core::trace::Trace;
use serde_json::{Value, json};

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
            steps: trace["steps"].as_u64(),
            latency_ms: trace["latencyMs"].as_f64().unwrap_or_default(),
            first_token_ms: trace["firstTokenMs"].as_f64(),
            calls_unreported: trace["callsUnreported"] == true,
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
            earlier: &[],
            mode,
            tokens: &tokens,
            registry: registry.as_ref(),
            tokenizer: Tokenizer::from_name(tokenizer).expect("known tokenizer"),
        };
        let mut pending = PendingVerdict::start(evidence, strictness);
        while let Some(call) = pending.next_eval() {
            let Some(result) = self.0["functions"].get(call.name) else { break };
            pending.record_eval(call, judgement(result));
        }
        let states = self.0.get("states").map(|states| serde_json::from_value(states.clone()).expect("states"));
        match &states {
            Some(states) => pending.with_states(states).finish(),
            None => pending.finish(),
        }
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

/// Parses the result of an eval function: `[true, reason]`, `[null, reason]` if it is not applicable, or an error as
/// `[kind, message]`; a third element is the score.
fn judgement(result: &Value) -> Judgement {
    let text = result[1].as_str().expect("text").to_owned();
    let conclusion = match &result[0] {
        Value::Bool(passed) => Conclusion::Verdict { passed: *passed, reason: text },
        Value::Null => Conclusion::NotApplicable { reason: text },
        kind => Conclusion::Error(EvalError::new(serde_json::from_value(kind.clone()).expect("error kind"), text)),
    };
    Judgement {
        conclusion,
        score: result[2].as_f64(),
        elapsed: Duration::from_millis(3),
        stdout: "printed".to_owned(),
        stderr: String::new(),
    }
}

/// Successful calls of these tools.
fn calls(names: &[&str]) -> Value {
    names.iter().map(|name| json!({ "name": name, "success": true })).collect()
}

fn messages(verdict: &Verdict) -> Vec<&str> {
    verdict.failures.iter().map(|failure| failure.message.as_str()).collect()
}
