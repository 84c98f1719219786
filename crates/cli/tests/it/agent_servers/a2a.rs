//! The Agent2Agent protocol: its Python SDK, and the bridge of Google's Agent Development Kit.

use karat_testkit::agent_server::{AgentProduct, AgentServer};

use super::shop::{ShopAgent, Told};

#[test]
#[ignore = "needs a2a-sdk"]
fn answers_shop_cases() {
    let server = AgentServer::shared(AgentProduct::A2a);
    ShopAgent::example("a2a", &server, Told::Nothing).answers_shop_cases();
}

#[test]
#[ignore = "needs google-adk"]
fn answers_shop_cases_of_the_bridge() {
    let server = AgentServer::shared(AgentProduct::A2aAdk);
    ShopAgent::example("a2a-adk", &server, Told::Failures).answers_shop_cases();
}

#[test]
#[ignore = "needs a2a-sdk"]
fn keeps_concurrent_cases_apart() {
    let server = AgentServer::shared(AgentProduct::A2a);
    ShopAgent::example("a2a", &server, Told::Nothing).keeps_concurrent_cases_apart();
}

#[test]
#[ignore = "needs google-adk"]
fn keeps_concurrent_cases_of_the_bridge_apart() {
    let server = AgentServer::shared(AgentProduct::A2aAdk);
    ShopAgent::example("a2a-adk", &server, Told::Failures).keeps_concurrent_cases_apart();
}

#[test]
#[ignore = "needs a2a-sdk"]
fn quotes_failures() {
    let server = AgentServer::shared(AgentProduct::A2a);
    ShopAgent::example("a2a", &server, Told::Nothing).quotes_the_failure("the model is not available");
}

#[test]
#[ignore = "needs google-adk"]
fn quotes_failures_of_the_bridge() {
    let server = AgentServer::shared(AgentProduct::A2aAdk);
    ShopAgent::example("a2a-adk", &server, Told::Failures).quotes_the_failure("the model is not available");
}

#[test]
#[ignore = "needs a2a-sdk"]
fn asks_for_approval() {
    let server = AgentServer::shared(AgentProduct::A2a);
    ShopAgent::example("a2a", &server, Told::Nothing).asks_for_approval("Delete account 7?");
}

#[test]
#[ignore = "needs google-adk"]
fn asks_for_approval_through_the_bridge() {
    let server = AgentServer::shared(AgentProduct::A2aAdk);
    ShopAgent::example("a2a-adk", &server, Told::Failures).asks_for_approval("Delete account 7?");
}
