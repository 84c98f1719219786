//! The A2A protocol: its Python SDK, and the bridge of Google's Agent Development Kit.

use karat_testkit::agent_server::{AgentProduct, AgentServer};

use serde_json::json;

use super::shop::{CallReporting, ShopAgent};

#[test]
#[ignore = "needs a2a-sdk"]
fn answers_shop_cases() {
    let server = AgentServer::shared(AgentProduct::A2a);
    ShopAgent::example("a2a", &server, CallReporting::Nothing).answers_shop_cases();
}

#[test]
#[ignore = "needs google-adk"]
fn answers_shop_cases_of_the_bridge() {
    let server = AgentServer::shared(AgentProduct::A2aAdk);
    ShopAgent::example("a2a-adk", &server, CallReporting::Failures).answers_shop_cases();
}

#[test]
#[ignore = "needs a2a-sdk"]
fn isolates_concurrent_cases() {
    let server = AgentServer::shared(AgentProduct::A2a);
    ShopAgent::example("a2a", &server, CallReporting::Nothing).isolates_concurrent_cases();
}

#[test]
#[ignore = "needs google-adk"]
fn isolates_concurrent_cases_of_the_bridge() {
    let server = AgentServer::shared(AgentProduct::A2aAdk);
    ShopAgent::example("a2a-adk", &server, CallReporting::Failures).isolates_concurrent_cases();
}

#[test]
#[ignore = "needs a2a-sdk"]
fn quotes_failures() {
    let server = AgentServer::shared(AgentProduct::A2a);
    ShopAgent::example("a2a", &server, CallReporting::Nothing).quotes_the_failure("the model is not available");
}

#[test]
#[ignore = "needs google-adk"]
fn quotes_failures_of_the_bridge() {
    let server = AgentServer::shared(AgentProduct::A2aAdk);
    ShopAgent::example("a2a-adk", &server, CallReporting::Failures).quotes_the_failure("the model is not available");
}

#[test]
#[ignore = "needs a2a-sdk"]
fn asks_for_approval() {
    let server = AgentServer::shared(AgentProduct::A2a);
    ShopAgent::example("a2a", &server, CallReporting::Nothing).asks_for_approval("Delete account 7?");
}

#[test]
#[ignore = "needs google-adk"]
fn asks_for_approval_through_the_bridge() {
    let server = AgentServer::shared(AgentProduct::A2aAdk);
    let part = json!({
        "kind": "data",
        "data": {"id": "{{approval:/id}}", "name": "adk_request_confirmation", "response": {"confirmed": "{{decision}}"}},
        "metadata": {"adk_type": "function_response"},
    });
    let resume = json!({"body": {"params": {"message": {"parts": [part]}}}, "approve": true, "deny": false});
    let agent = ShopAgent::example("a2a-adk", &server, CallReporting::Failures).with_agent(&json!({"resume": resume}));
    agent.asks_for_approval("Delete account 7?");
}

/// Version 1.0 of the protocol.
#[test]
#[ignore = "needs a2a-sdk"]
fn version_1() {
    let server = AgentServer::shared(AgentProduct::A2a);
    let agent = ShopAgent::at(&format!("a2a-v1:{}", server.url("/")), CallReporting::Nothing);
    agent.answers_shop_cases();
    agent.isolates_concurrent_cases();
    agent.quotes_the_failure("the model is not available");
    agent.asks_for_approval("Delete account 7?");
}

#[test]
#[ignore = "needs google-adk"]
fn version_1_of_the_bridge() {
    let server = AgentServer::shared(AgentProduct::A2aAdk);
    let agent = ShopAgent::at(&format!("a2a-v1:{}", server.url("")), CallReporting::Failures);
    agent.answers_shop_cases();
    agent.quotes_the_failure("the model is not available");
}

#[test]
#[ignore = "needs google-adk"]
fn streams() {
    let server = AgentServer::shared(AgentProduct::A2a);
    let stream = json!({"request": {"body": {"method": "message/stream"}}, "poll": null});
    let agent = ShopAgent::example("a2a", &server, CallReporting::Nothing).with_agent(&stream);
    agent.answers_shop_cases();
    agent.quotes_the_failure("the model is not available");
    let server = AgentServer::shared(AgentProduct::A2aAdk);
    let agent = ShopAgent::example("a2a-adk", &server, CallReporting::Failures).with_agent(&stream);
    agent.answers_shop_cases();
    agent.quotes_the_failure("the model is not available");
}

/// Does not wait for the answer, but polls.
#[test]
#[ignore = "needs a2a-sdk"]
fn polls() {
    let server = AgentServer::shared(AgentProduct::A2a);
    let configuration = json!({"request": {"body": {"params": {"configuration": {"blocking": false}}}}});
    let agent = ShopAgent::example("a2a", &server, CallReporting::Nothing).with_agent(&configuration);
    agent.answers_shop_cases();
}
