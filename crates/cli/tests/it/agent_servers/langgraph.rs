//! The development server of `LangGraph`.

use karat_testkit::agent_server::{AgentProduct, AgentServer};

use rstest::rstest;
use serde_json::json;

use super::shop::{CallReporting, ShopAgent};

#[test]
#[ignore = "needs langgraph"]
fn answers_shop_cases() {
    let server = AgentServer::shared(AgentProduct::Langgraph);
    ShopAgent::example("langgraph", &server, CallReporting::Failures).answers_shop_cases();
}

#[test]
#[ignore = "needs langgraph"]
fn isolates_concurrent_cases() {
    let server = AgentServer::shared(AgentProduct::Langgraph);
    ShopAgent::example("langgraph", &server, CallReporting::Failures).isolates_concurrent_cases();
}

#[test]
#[ignore = "needs langgraph"]
fn quotes_failures() {
    let server = AgentServer::shared(AgentProduct::Langgraph);
    ShopAgent::example("langgraph", &server, CallReporting::Failures).quotes_the_failure("the model is not available");
    let endpoint = format!("langgraph:{}?assistant=nobody", server.url(""));
    ShopAgent::at(&endpoint, CallReporting::Failures).quotes_the_failure("nobody");
}

#[test]
#[ignore = "needs langgraph"]
fn asks_for_approval() {
    let server = AgentServer::shared(AgentProduct::Langgraph);
    ShopAgent::example("langgraph", &server, CallReporting::Failures).asks_for_approval("Delete account 7?");
}

/// Every stream mode; the parts of text come one by one in the last two.
#[rstest]
#[case("values")]
#[case("updates")]
#[case("messages-tuple")]
#[case("messages")]
#[ignore = "needs langgraph"]
fn streams(#[case] mode: &str) {
    let server = AgentServer::shared(AgentProduct::Langgraph);
    let url = "threads/{{conversationId}}/runs/stream";
    let agent = ShopAgent::example("langgraph", &server, CallReporting::Failures)
        .with_agent(&json!({"request": {"url": url, "body": {"stream_mode": mode}}}));
    agent.answers_shop_cases();
    agent.quotes_the_failure("the model is not available");
    let case = agent.ask("hello");
    assert!(case["details"]["firstTokenMs"].is_number(), "{case:#}");
}
