//! Mastra's server.

use karat_testkit::agent_server::{AgentProduct, AgentServer};

use serde_json::json;

use super::shop::{CallReporting, ShopAgent};

#[test]
#[ignore = "needs the JavaScript libraries of agents"]
fn answers_shop_cases() {
    let server = AgentServer::shared(AgentProduct::Mastra);
    ShopAgent::example("mastra", &server, CallReporting::Failures).answers_shop_cases();
}

#[test]
#[ignore = "needs the JavaScript libraries of agents"]
fn isolates_concurrent_cases() {
    let server = AgentServer::shared(AgentProduct::Mastra);
    ShopAgent::example("mastra", &server, CallReporting::Failures).isolates_concurrent_cases();
}

#[test]
#[ignore = "needs the JavaScript libraries of agents"]
fn quotes_failures() {
    let server = AgentServer::shared(AgentProduct::Mastra);
    ShopAgent::example("mastra", &server, CallReporting::Failures).quotes_the_failure("the model is not available");
    let endpoint = format!("mastra:{}?agent=nobody", server.url(""));
    ShopAgent::at(&endpoint, CallReporting::Failures).quotes_the_failure("Agent with id nobody not found");
}

/// The protocol has no question.
#[test]
#[ignore = "needs the JavaScript libraries of agents"]
fn asks_for_approval() {
    let server = AgentServer::shared(AgentProduct::Mastra);
    ShopAgent::example("mastra", &server, CallReporting::Failures)
        .asks_for_approval(r#"delete_account {"account_id":"7"}"#);
}

#[test]
#[ignore = "needs the JavaScript libraries of agents"]
fn streams() {
    let server = AgentServer::shared(AgentProduct::Mastra);
    let agent = ShopAgent::example("mastra", &server, CallReporting::Failures)
        .with_agent(&json!({"request": {"url": "api/agents/shop/stream"}}));
    agent.answers_shop_cases();
    agent.quotes_the_failure("the model is not available");
}
