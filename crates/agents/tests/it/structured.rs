//! A model that is asked for an answer of a given shape, and gives none.

use std::sync::Arc;

use karat_agents::{Api, Budget, ModelClient, ModelSettings, Parameters, Price, Provider, Throttle};
use karat_core::chat::{ChatModel, ChatPrompt, ChatReply};
use karat_core::port::{AgentError, Unwatched};
use karat_testkit::server::ScriptedServer;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::serve;

fn client(server: &ScriptedServer, api: Api) -> ModelClient {
    let base_url = format!("{}/v1", server.base());
    let key = Some("test-key".to_owned());
    let provider =
        Provider { name: "p".to_owned(), api, base_url, has_configured_base: false, key, headers: Vec::new() };
    let settings = ModelSettings {
        parameters: Parameters::default(),
        max_retries: 2,
        max_response_bytes: 1 << 20,
        price: Price::listed("openai:gpt-4o"),
        throttle: Arc::new(Throttle::new(1, None)),
        budget: Arc::new(Budget::new(None)),
    };
    ModelClient::new(provider, "m".to_owned(), settings).unwrap()
}

async fn complete(entry: Value, api: Api) -> Result<ChatReply, AgentError> {
    let server = serve(json!({"*": {"queue": [entry]}}));
    let schema = json!({"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"],
        "additionalProperties": false});
    let prompt = ChatPrompt { system: "Count.".to_owned(), user: "one".to_owned(), name: "count".to_owned(), schema };
    let completed = client(&server, api).complete(&prompt, &Unwatched).await;
    assert_eq!(server.refusals(), Vec::<String>::new());
    completed
}

#[rstest]
#[tokio::test]
async fn what_was_asked_for_is_a_reply(#[values(Api::Openai, Api::Anthropic)] api: Api) {
    let reply = complete(json!({"structured": {"a": 1}, "usage": [5, 2]}), api).await.unwrap();
    assert_eq!(reply.value, json!({"a": 1}));
    assert_eq!(reply.usage.and_then(|usage| usage.output_tokens), Some(2));
}

#[rstest]
#[case(json!({"rawStructured": "{\"a\": "}), "{\"a\": ")]
#[case(json!({"text": "Sure, here you are."}), "Sure, here you are.")]
#[case(json!({"refusal": "I can't do that."}), "I can't do that.")]
#[case(json!({"text": "{\"a\":", "cutOff": true}), "{\"a\":")]
#[tokio::test]
async fn a_model_that_says_something_else_can_be_asked_again(
    #[case] entry: Value,
    #[case] said: &str,
    #[values(Api::Openai, Api::Anthropic)] api: Api,
) {
    let error = complete(entry, api).await.unwrap_err();
    let reply = error.unusable_reply().expect("the model spoke").clone();
    assert_eq!(reply.text, said);
    let usage = reply.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (Some(7), Some(3)), "that costs too");
    assert!(usage.cost_usd.is_some());
}

#[rstest]
#[case(json!({"status": 429, "text": "slow down", "headers": {"retry-after": "0"}}))]
#[case(json!({"status": 400, "text": "no"}))]
#[case(json!({"raw": "<html>"}))]
#[case(json!({"hangup": true}))]
#[tokio::test]
async fn a_model_that_is_not_reached_says_nothing(
    #[case] entry: Value,
    #[values(Api::Openai, Api::Anthropic)] api: Api,
) {
    let error = complete(entry, api).await.unwrap_err();
    assert_eq!(error.unusable_reply(), None, "{error}");
}
