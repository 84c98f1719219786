//! Stand-ins for products that are too big to install, or need a key.

use std::time::Duration;

use karat_testkit::agent_server::{AgentProduct, AgentServer, read_example};
use rstest::rstest;
use serde_json::{Value, json};

use super::shop::{CallReporting, ShopAgent, calls};
use crate::documented::{blocks, page};
use crate::support::project;

/// What the model selects, whole and streamed.
#[rstest]
#[case("shop", CallReporting::MadeCalls)]
#[case("shop-text", CallReporting::Nothing)]
fn chat(#[case] model: &str, #[case] reporting: CallReporting, #[values(false, true)] stream: bool) {
    let server = AgentServer::shared(AgentProduct::Chat);
    let agent = with_model(ShopAgent::example("chat", &server, reporting), model, stream);
    agent.answers_shop_cases();
    agent.isolates_concurrent_cases();
    agent.quotes_the_failure("the model is not available");
    let options = json!({"request": {"body": {"stream_options": {"include_usage": true}}}});
    let case = agent.with_agent(&options).ask("hello");
    assert!(case["details"]["usage"]["outputTokens"].as_u64().unwrap() > 0, "{case:#}");
    assert_eq!(case["details"].get("firstTokenMs").is_some(), stream, "{case:#}");
}

/// Only items of MCP report failures, but the guide shows a rule for the others.
#[rstest]
#[case("shop-mcp", false, CallReporting::Failures)]
#[case("shop", false, CallReporting::Calls)]
#[case("shop", true, CallReporting::Failures)]
fn responses(
    #[case] model: &str,
    #[case] has_rule: bool,
    #[case] reporting: CallReporting,
    #[values(false, true)] stream: bool,
) {
    let server = AgentServer::shared(AgentProduct::Responses);
    let agent = with_model(ShopAgent::example("responses", &server, reporting), model, stream);
    let agent = if has_rule { agent.with_agent(&agent_of_guide("responses:")) } else { agent };
    agent.answers_shop_cases();
    agent.isolates_concurrent_cases();
    agent.quotes_the_failure("the model is not available");
}

#[rstest]
fn approval_of_responses(#[values(false, true)] stream: bool) {
    let server = AgentServer::shared(AgentProduct::Responses);
    let agent = with_model(ShopAgent::example("responses", &server, CallReporting::Failures), "shop-mcp", stream);
    let agent = agent.with_agent(&json!({"resume": {"body": {"stream": stream}}}));
    agent.asks_for_approval(r#"delete_account {"account_id": "7"}"#);
}

#[rstest]
fn messages(#[values(false, true)] stream: bool) {
    let server = AgentServer::shared(AgentProduct::Messages);
    let agent = with_model(ShopAgent::example("messages", &server, CallReporting::Failures), "shop", stream);
    agent.answers_shop_cases();
    agent.isolates_concurrent_cases();
    agent.quotes_the_failure("the model is not available");
}

/// Apps without tools report nothing; agents only stream.
#[rstest]
#[case("app-chat", "blocking", CallReporting::Nothing)]
#[case("app-chat", "streaming", CallReporting::Nothing)]
#[case("app-agent", "streaming", CallReporting::Failures)]
#[case("app-react", "streaming", CallReporting::Failures)]
fn dify(#[case] key: &str, #[case] mode: &str, #[case] reporting: CallReporting) {
    let server = AgentServer::shared(AgentProduct::Dify);
    let agent = ShopAgent::example("dify", &server, reporting).with_variable("DIFY_API_KEY", key);
    let agent = match mode {
        "blocking" => agent.with_agent(&json!({
            "request": {"body": {"response_mode": mode}},
            "response": {"format": "json", "conversationId": "/conversation_id"},
        })),
        _ => agent,
    };
    agent.answers_shop_cases();
    agent.isolates_concurrent_cases();
    agent.quotes_the_failure("the model is not available");
}

/// The cause of an error is only in a stream.
#[rstest]
#[case("shop", CallReporting::Failures, "Error in workflow")]
#[case("shop-array", CallReporting::Failures, "Error in workflow")]
#[case("shop-plain", CallReporting::Nothing, "Error in workflow")]
#[case("shop-stream", CallReporting::Nothing, "the model is not available")]
fn n8n(#[case] webhook: &str, #[case] reporting: CallReporting, #[case] error: &str) {
    let server = AgentServer::shared(AgentProduct::N8n);
    let agent = ShopAgent::example("n8n", &server, reporting);
    let agent = agent.with_endpoint(&format!("n8n:{}", server.url(&format!("/webhook/{webhook}/chat"))));
    let agent = match webhook {
        "shop-stream" => agent.with_agent(&json!({"response": {"format": "jsonl"}})),
        _ => agent,
    };
    agent.answers_shop_cases();
    agent.isolates_concurrent_cases();
    agent.quotes_the_failure(error);
}

#[rstest]
fn flowise(#[values(false, true)] stream: bool) {
    let server = AgentServer::shared(AgentProduct::Flowise);
    let agent = ShopAgent::example("flowise", &server, CallReporting::Failures)
        .with_agent(&json!({"request": {"body": {"streaming": stream}}}));
    agent.answers_shop_cases();
    agent.isolates_concurrent_cases();
    agent.quotes_the_failure("the model is not available");
}

#[test]
fn approval_of_flowise() {
    let server = AgentServer::shared(AgentProduct::Flowise);
    ShopAgent::example("flowise", &server, CallReporting::Nothing).asks_for_approval("Delete account 7?");
}

/// Each sentence is a message.
#[test]
fn rasa() {
    let server = AgentServer::shared(AgentProduct::Rasa);
    let agent = ShopAgent::example("rasa", &server, CallReporting::Nothing);
    agent.answers_shop_cases();
    agent.isolates_concurrent_cases();
    // Rasa does not report that an action failed.
    assert_ne!(agent.ask("Fail now")["outcome"], "passed");
}

/// The guide shows how to read the tracker. It has the actions; their arguments are slots.
#[test]
fn rasa_with_tracker() {
    let server = AgentServer::shared(AgentProduct::Rasa);
    let agent = ShopAgent::example("rasa", &server, CallReporting::Failures).with_agent(&agent_of_guide("rasa:"));
    let case = agent.ask("Order 1044 and the weather in Oslo?");
    let response = "Order 1044 has shipped.\nThe weather in Oslo is not available.";
    assert_eq!(case["details"]["response"], response, "{case:#}");
    let order = ("action_get_order", json!({"order_id": "1044"}), json!(true));
    let weather = ("action_get_weather", json!({"city": "Oslo"}), json!(false));
    assert_eq!(calls(&case), [order, weather], "{case:#}");
    let case = agent.ask("hello");
    assert_eq!((calls(&case), &case["details"]["callsUnreported"]), (Vec::new(), &json!(null)), "{case:#}");
    agent.isolates_concurrent_cases();
}

/// Returns `agent` in the configuration that the guide shows for a preset.
fn agent_of_guide(preset: &str) -> Value {
    let configurations = blocks(&page("guides/agents.md"), &["json"]);
    let configurations = configurations.iter().map(|block| serde_json::from_str::<Value>(block).unwrap());
    let mut of_preset = configurations.filter(|config| config["agentEndpoint"].as_str().unwrap().starts_with(preset));
    of_preset.next().expect(preset)["agent"].clone()
}

fn with_model(agent: ShopAgent, model: &str, stream: bool) -> ShopAgent {
    let endpoint = agent.config["agentEndpoint"].as_str().unwrap();
    let (url, _) = endpoint.split_once("?model=").unwrap();
    let endpoint = format!("{url}?model={model}");
    let agent = agent.with_endpoint(&endpoint);
    if stream { agent.with_agent(&json!({"request": {"body": {"stream": true}}})) } else { agent }
}

/// Presets in a matrix: each product answers the same cases.
#[test]
fn products_are_compared() {
    let products = [AgentProduct::Chat, AgentProduct::Responses, AgentProduct::Messages];
    let servers = products.map(AgentServer::shared);
    let endpoints: Vec<Value> = ["chat", "responses", "messages"]
        .iter()
        .zip(&servers)
        .map(|(name, server)| server.config(name)["agentEndpoint"].clone())
        .collect();
    let project = project()
        .file("karat.json", json!({"matrix": endpoints}))
        .file("evals/x.golden.json", read_example("shop.json"));
    let output = project.command(["run", "--no-store", "--format", "json"]).timeout(Duration::from_mins(3)).run();
    assert_eq!(output.code, Some(0), "{}", output.both());
    let document: Value = serde_json::from_str(&output.stdout).unwrap();
    let suites = document["suites"].as_array().unwrap();
    let agents: Vec<Value> = suites.iter().map(|suite| suite["agentEndpoint"].clone()).collect();
    assert_eq!(agents, endpoints);
    let agents = document["matrix"]["agents"].as_array().unwrap();
    assert_eq!(agents.iter().map(|agent| &agent["passed"]).collect::<Vec<_>>(), [4; 3]);
}

/// The table of the guide says what replies report without further configuration.
#[rstest]
#[case(AgentProduct::Chat, "chat", "/v1?model=shop")]
#[case(AgentProduct::Responses, "responses", "/v1?model=shop-mcp")]
#[case(AgentProduct::Messages, "messages", "/v1?model=shop")]
#[case(AgentProduct::Dify, "dify", "/v1")]
#[case(AgentProduct::N8n, "n8n", "/webhook/shop/chat")]
#[case(AgentProduct::Flowise, "flowise", "/api/v1/prediction/shop")]
#[case(AgentProduct::Rasa, "rasa", "")]
fn the_guide_says_what_replies_report(#[case] product: AgentProduct, #[case] preset: &str, #[case] path: &str) {
    let guide = page("guides/agents.md");
    let row = guide.lines().find(|line| line.contains(&format!("| `{preset}:URL`"))).expect(preset);
    let documented: Vec<&str> = row.split('|').map(str::trim).skip(3).take(4).collect();
    let server = AgentServer::shared(product);
    let agent = ShopAgent::at(&format!("{preset}:{}", server.url(path)), CallReporting::Nothing);
    let case = agent.with_variable("DIFY_API_KEY", "app-agent").ask("Order 1044 and the weather in Oslo?");
    let calls = calls(&case);
    let details = &case["details"];
    let reported = [
        !calls.is_empty(),
        calls.iter().any(|(_, _, success)| success == false),
        details.get("steps").is_some(),
        details["usage"]["outputTokens"].is_u64(),
    ];
    for (documented, reported) in documented.into_iter().zip(reported) {
        let agrees = match documented {
            "yes" => reported,
            "no" => !reported,
            other => other == "some",
        };
        assert!(agrees, "{row}\n{case:#}");
    }
}
