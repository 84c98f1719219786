//! The API server of Google's Agent Development Kit.

use karat_testkit::agent_server::{AgentProduct, AgentServer};

use rstest::rstest;
use serde_json::json;

use super::shop::{CallReporting, ShopAgent};

#[test]
#[ignore = "needs google-adk"]
fn answers_shop_cases() {
    let server = AgentServer::shared(AgentProduct::Adk);
    ShopAgent::example("adk", &server, CallReporting::Failures).answers_shop_cases();
}

#[test]
#[ignore = "needs google-adk"]
fn isolates_concurrent_cases() {
    let server = AgentServer::shared(AgentProduct::Adk);
    ShopAgent::example("adk", &server, CallReporting::Failures).isolates_concurrent_cases();
}

#[test]
#[ignore = "needs google-adk"]
fn quotes_failures() {
    let server = AgentServer::shared(AgentProduct::Adk);
    ShopAgent::example("adk", &server, CallReporting::Failures).quotes_the_failure("Internal Server Error");
    let endpoint = format!("adk:{}?app=nobody", server.url(""));
    ShopAgent::at(&endpoint, CallReporting::Failures).quotes_the_failure("Agent not found: 'nobody'");
}

#[test]
#[ignore = "needs google-adk"]
fn asks_for_approval() {
    let server = AgentServer::shared(AgentProduct::Adk);
    ShopAgent::example("adk", &server, CallReporting::Failures).asks_for_approval("Delete account 7?");
}

/// Whole texts, and parts of texts that come again as a whole.
#[rstest]
#[ignore = "needs google-adk"]
fn streams(#[values(false, true)] parts: bool) {
    let server = AgentServer::shared(AgentProduct::Adk);
    let agent = ShopAgent::example("adk", &server, CallReporting::Failures)
        .with_agent(&json!({"request": {"url": "run_sse", "body": {"streaming": parts}}}));
    agent.answers_shop_cases();
    agent.quotes_the_failure("the model is not available");
}
