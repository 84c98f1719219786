//! Structured answers of models.

use std::sync::Arc;

use karat_agents::{Api, Budget, ModelClient, ModelSettings, Parameters, Price, Provider, Throttle};
use karat_core::chat::{ChatModel, ChatPrompt, ChatReply};
use karat_core::port::{AgentError, IgnoreWaits};
use karat_testkit::server::ScriptedServer;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::serve;

fn client(server: &ScriptedServer, api: Api) -> ModelClient {
    let base_url = format!("{}/v1", server.base_url());
    let key = Some("test-key".to_owned());
    let provider =
        Provider { name: "p".to_owned(), api, base_url, is_base_url_configured: false, key, headers: Vec::new() };
    let settings = ModelSettings {
        parameters: Parameters::default(),
        max_retries: 2,
        max_response_bytes: 1 << 20,
        price: Price::list_price("openai:gpt-4o"),
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
    let result = client(&server, api).complete(&prompt, &IgnoreWaits).await;
    assert_eq!(server.refusals(), Vec::<String>::new());
    result
}

#[rstest]
#[tokio::test]
async fn returns_a_structured_answer(#[values(Api::Openai, Api::Anthropic)] api: Api) {
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
async fn an_unusable_answer_is_returned_with_its_usage(
    #[case] entry: Value,
    #[case] text: &str,
    #[values(Api::Openai, Api::Anthropic)] api: Api,
) {
    let error = complete(entry, api).await.unwrap_err();
    let reply = error.unusable_reply().expect("the model answered").clone();
    assert_eq!(reply.text, text);
    let usage = reply.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (Some(7), Some(3)), "an unusable answer is billed too");
    assert!(usage.cost_usd.is_some());
}

#[rstest]
#[case(json!({"status": 429, "text": "slow down", "headers": {"retry-after": "0"}}))]
#[case(json!({"status": 400, "text": "no"}))]
#[case(json!({"raw": "<html>"}))]
#[case(json!({"hangup": true}))]
#[tokio::test]
async fn a_failed_call_has_no_unusable_reply(#[case] entry: Value, #[values(Api::Openai, Api::Anthropic)] api: Api) {
    let error = complete(entry, api).await.unwrap_err();
    assert_eq!(error.unusable_reply(), None, "{error}");
}
