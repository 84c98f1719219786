//! The API server of Google's Agent Development Kit.

use karat_testkit::agent_server::{AgentProduct, AgentServer};

use rstest::rstest;
use serde_json::{Value, json};

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
    ShopAgent::example("adk", &server, CallReporting::Failures).quotes_the_failure("the model is not available");
    let endpoint = format!("adk:{}?app=nobody", server.url(""));
    ShopAgent::at(&endpoint, CallReporting::Failures).quotes_the_failure("Agent not found: 'nobody'");
}

#[test]
#[ignore = "needs google-adk"]
fn asks_for_approval() {
    let server = AgentServer::shared(AgentProduct::Adk);
    ShopAgent::example("adk", &server, CallReporting::Failures).asks_for_approval("Delete account 7?");
}

/// A stream that repeats the parts of a text as a whole, and a reply that is not a stream, which does not report the
/// failure.
#[rstest]
#[case::parts(json!({"body": {"streaming": true}}), "the model is not available")]
#[case::whole(json!({"url": "run"}), "Internal Server Error")]
#[ignore = "needs google-adk"]
fn other_formats(#[case] request: Value, #[case] failure: &str) {
    let server = AgentServer::shared(AgentProduct::Adk);
    let agent = ShopAgent::example("adk", &server, CallReporting::Failures).with_agent(&json!({"request": request}));
    agent.answers_shop_cases();
    agent.quotes_the_failure(failure);
}
