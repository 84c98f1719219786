//! Determinants of a model's answers.

use std::sync::Arc;

use karat_agents::{
    AllowedTools, Api, Budget, ModelAgent, ModelClient, ModelSettings, Parameters, Provider, Throttle, ToolExecution,
};
use karat_cases::Case;
use karat_cases::registry::Tool;
use karat_core::port::{Agent, BoxFuture, ToolOutcome, ToolRunner, ToolUnavailable};
use rstest::rstest;
use serde_json::{Map, Value, json};

use crate::support::case;

struct NoTools;

impl ToolRunner for NoTools {
    fn call<'a>(
        &'a self,
        _tool: &'a str,
        _arguments: &'a Map<String, Value>,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolUnavailable>> {
        Box::pin(async { Ok(ToolOutcome { result: Value::Null, error: None }) })
    }
}

fn model(execution: ToolExecution, schema: Value) -> ModelAgent {
    let provider = Provider {
        name: "openai".to_owned(),
        api: Api::Openai,
        base_url: "http://127.0.0.1:9/v1".to_owned(),
        is_base_url_configured: false,
        key: None,
        headers: Vec::new(),
    };
    let settings = ModelSettings {
        parameters: Parameters::default(),
        max_retries: 0,
        max_response_bytes: 1000,
        price: None,
        throttle: Arc::new(Throttle::new(1, None)),
        budget: Arc::new(Budget::new(None)),
    };
    let client = ModelClient::new(provider, "m".to_owned(), settings).unwrap();
    let tool = Tool { name: "t".to_owned(), input_schema: Some(schema).into(), ..Tool::default() };
    ModelAgent::new(client, None, &[tool], execution).unwrap()
}

/// Cases that differ in parts that only some agents use.
fn variants() -> Vec<Case> {
    let stubs = [
        None,
        Some(json!({})),
        Some(json!({"a": 1, "b": 2})),
        Some(json!({"b": 2, "a": 1})),
        Some(json!({"a": 1.0, "b": 2})),
        Some(json!({"a": 9_007_199_254_740_992_u64})),
        Some(json!({"a": 9_007_199_254_740_993_u64})),
    ];
    let mut cases = Vec::new();
    for message in ["m", "m\n5\n{}", "m\n5\n", "m\n\n", ""] {
        for max_turns in [None, Some(5), Some(6)] {
            for stubs in &stubs {
                let stubs = stubs.as_ref().map(|stubs| stubs.as_object().cloned().unwrap());
                cases.push(Case { max_turns, stubs, ..case(message) });
            }
        }
    }
    cases
}

#[rstest]
#[case(ToolExecution::Stubs)]
#[case(ToolExecution::Live { runner: Arc::new(NoTools), allowed: AllowedTools::All })]
fn equality_keys_match_if_and_only_if_determinants_match(#[case] execution: ToolExecution) {
    let agent = model(execution, json!({}));
    let cases = variants();
    for left in &cases {
        for right in &cases {
            let same = agent.determinants(left, 0) == agent.determinants(right, 0);
            assert_eq!(agent.equality_key(left) == agent.equality_key(right), same, "{left:?} {right:?}");
        }
    }
}

#[test]
fn large_numbers_in_schemas_are_compared_exactly() {
    let tools = |maximum: u64| model(ToolExecution::Stubs, json!({"maximum": maximum})).determinants(&case("m"), 0);
    assert_ne!(tools(9_007_199_254_740_993), tools(9_007_199_254_740_992));
}
