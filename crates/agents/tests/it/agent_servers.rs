//! Conversations of several turns with agents of many products.

use std::sync::Arc;

use karat_agents::{HttpAgent, Preset};
use karat_core::port::{Agent as _, IgnoreWaits, TrialContext};
use karat_core::trace::Trace;
use karat_testkit::agent_server::{AgentProduct, AgentServer};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{agent_at, case};

fn agent(endpoint: &str, overrides: &Value) -> HttpAgent {
    match Preset::split(endpoint) {
        Some((preset, url)) => {
            let endpoint = preset.endpoint(url, overrides).unwrap();
            HttpAgent::new(&endpoint.url, endpoint.config, &|_| None).unwrap()
        }
        None => agent_at(endpoint, overrides),
    }
}

/// Uses `karat.json` of an example.
fn example(product: AgentProduct, name: &str, overrides: &Value) -> (Arc<AgentServer>, HttpAgent) {
    let server = AgentServer::shared(product);
    let config = server.config(name);
    let own = config.get("agent").cloned().unwrap_or_else(|| json!({}));
    let overrides = if overrides.is_null() { &own } else { overrides };
    let agent = agent(config["agentEndpoint"].as_str().unwrap(), overrides);
    (server, agent)
}

/// What a protocol reports about tool calls.
#[derive(Debug, Clone, Copy, PartialEq)]
enum CallReporting {
    Nothing,
    /// A reply without calls does not mean that there were none.
    MadeCalls,
    Calls,
}

/// Two conversations take turns; each remembers its own messages, and each turn has only its own calls.
async fn remembers(agent: &HttpAgent, reporting: CallReporting) {
    let case = case("Remember the number 41.");
    let trial = |number| TrialContext {
        run_id: "run",
        number,
        case: &case,
        sample: 0,
        has_turns: true,
        wait_observer: &IgnoreWaits,
    };
    let (mut first, mut second) = (agent.start(trial(0)), agent.start(trial(1)));
    let response = |trace: &Trace| trace.response.replace('\n', " ");
    for (conversation, number) in [(&mut first, 41), (&mut second, 42)] {
        let answer = conversation.send(&format!("Remember the number {number}.")).await.unwrap();
        assert_eq!(response(&answer), format!("I will remember {number}."));
    }
    for (conversation, order) in [(&mut first, "51"), (&mut second, "52")] {
        let answer = conversation.send(&format!("Where is order {order}?")).await.unwrap();
        assert_eq!(response(&answer), format!("Order {order} has shipped."));
        if reporting != CallReporting::Nothing {
            assert_eq!(answer.tool_names(), ["get_order"]);
            assert_eq!(answer.tool_calls[0].params["order_id"], order);
        }
    }
    for (conversation, number) in [(&mut first, 41), (&mut second, 42)] {
        let answer = conversation.send("Which number?").await.unwrap();
        assert_eq!(response(&answer), format!("The number was {number}."));
        assert!(answer.tool_calls.is_empty(), "{answer:?}");
        assert_eq!(answer.calls_unreported, reporting != CallReporting::Calls, "{answer:?}");
    }
}

#[rstest]
#[case("shop", CallReporting::MadeCalls)]
#[case("shop-text", CallReporting::Nothing)]
#[tokio::test]
async fn chat(#[case] model: &str, #[case] reporting: CallReporting, #[values(false, true)] stream: bool) {
    let server = AgentServer::shared(AgentProduct::Chat);
    let overrides = json!({"request": {"body": {"stream": stream}}});
    remembers(&agent(&format!("chat:{}?model={model}", server.url("")), &overrides), reporting).await;
}

#[rstest]
#[tokio::test]
async fn responses(#[values("shop", "shop-mcp")] model: &str, #[values(false, true)] stream: bool) {
    let server = AgentServer::shared(AgentProduct::Responses);
    let overrides = json!({"request": {"body": {"stream": stream}}});
    remembers(&agent(&format!("responses:{}?model={model}", server.url("")), &overrides), CallReporting::Calls).await;
}

/// A conversation is never lost silently.
#[tokio::test]
async fn a_part_of_the_previous_reply_must_be_there() {
    let server = AgentServer::shared(AgentProduct::Responses);
    let overrides = json!({"request": {"body": {"previous_response_id": "{{reply:/previous ?? $..previous}}"}}});
    let agent = agent(&format!("responses:{}?model=shop", server.url("")), &overrides);
    let case = case("Remember the number 41.");
    let trial = TrialContext { has_turns: true, ..crate::support::trial(&case, 0) };
    let mut conversation = agent.start(trial);
    conversation.send("Remember the number 41.").await.unwrap();
    let error = conversation.send("Which number?").await.unwrap_err();
    assert_eq!(error.message, "the reply has no value at '/previous ?? $..previous', which the next request needs");
}

#[rstest]
#[tokio::test]
async fn messages(#[values(false, true)] stream: bool) {
    let server = AgentServer::shared(AgentProduct::Messages);
    let overrides = json!({"request": {"body": {"stream": stream}}});
    remembers(&agent(&format!("messages:{}?model=shop", server.url("")), &overrides), CallReporting::Calls).await;
}

#[rstest]
#[case("app-chat", CallReporting::Nothing)]
#[case("app-agent", CallReporting::Calls)]
#[case("app-react", CallReporting::Calls)]
#[tokio::test]
async fn dify(#[case] key: &str, #[case] reporting: CallReporting) {
    let server = AgentServer::shared(AgentProduct::Dify);
    let overrides = json!({"headers": {"authorization": format!("Bearer {key}")}});
    remembers(&agent(&format!("dify:{}", server.url("")), &overrides), reporting).await;
}

#[rstest]
#[case("shop", CallReporting::Calls)]
#[case("shop-plain", CallReporting::Nothing)]
#[tokio::test]
async fn n8n(#[case] webhook: &str, #[case] reporting: CallReporting) {
    let server = AgentServer::shared(AgentProduct::N8n);
    let url = server.url(&format!("/webhook/{webhook}/chat"));
    remembers(&agent(&format!("n8n:{url}"), &json!({})), reporting).await;
}

#[tokio::test]
async fn rasa() {
    let server = AgentServer::shared(AgentProduct::Rasa);
    remembers(&agent(&format!("rasa:{}", server.url("")), &json!({})), CallReporting::Nothing).await;
}

#[tokio::test]
async fn flowise() {
    let server = AgentServer::shared(AgentProduct::Flowise);
    let url = server.url("/api/v1/prediction/shop");
    remembers(&agent(&format!("flowise:{url}"), &json!({})), CallReporting::Calls).await;
}

#[rstest]
#[case(AgentProduct::OwnApi, "own-api")]
#[case(AgentProduct::SessionPoll, "session-poll")]
#[tokio::test]
async fn own_apis(#[case] product: AgentProduct, #[case] name: &str) {
    let (_server, agent) = example(product, name, &Value::Null);
    remembers(&agent, CallReporting::Calls).await;
}

#[rstest]
#[case(json!({}))]
#[case(json!({"request": {"url": "threads/{{conversationId}}/runs/stream", "body": {"stream_mode": "updates"}}}))]
#[tokio::test]
#[ignore = "needs langgraph"]
async fn langgraph(#[case] overrides: Value) {
    let (_server, agent) = example(AgentProduct::Langgraph, "langgraph", &overrides);
    remembers(&agent, CallReporting::Calls).await;
}

#[tokio::test]
#[ignore = "needs langserve"]
async fn langserve() {
    let (_server, agent) = example(AgentProduct::Langserve, "langserve", &Value::Null);
    remembers(&agent, CallReporting::Calls).await;
}

#[tokio::test]
#[ignore = "needs google-adk"]
async fn adk() {
    let (_server, agent) = example(AgentProduct::Adk, "adk", &Value::Null);
    remembers(&agent, CallReporting::Calls).await;
}

#[rstest]
#[case(AgentProduct::A2a, "a2a", CallReporting::Nothing)]
#[case(AgentProduct::A2aAdk, "a2a-adk", CallReporting::Calls)]
#[tokio::test]
#[ignore = "needs google-adk"]
async fn a2a(#[case] product: AgentProduct, #[case] name: &str, #[case] reporting: CallReporting) {
    let (_server, agent) = example(product, name, &Value::Null);
    remembers(&agent, reporting).await;
}

#[rstest]
#[case(AgentProduct::AiSdk, "ai-sdk")]
#[case(AgentProduct::AgUi, "ag-ui")]
#[case(AgentProduct::TanstackAi, "tanstack-ai")]
#[case(AgentProduct::Mastra, "mastra")]
#[tokio::test]
#[ignore = "needs the JavaScript libraries of agents"]
async fn javascript(#[case] product: AgentProduct, #[case] name: &str) {
    let (_server, agent) = example(product, name, &Value::Null);
    remembers(&agent, CallReporting::Calls).await;
}
