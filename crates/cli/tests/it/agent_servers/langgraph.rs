//! LangGraph's development server.

use karat_testkit::agent_server::{AgentProduct, AgentServer};

use super::shop::{ShopAgent, Told};

#[test]
#[ignore = "needs langgraph"]
fn answers_shop_cases() {
    let server = AgentServer::shared(AgentProduct::Langgraph);
    ShopAgent::example("langgraph", &server, Told::Failures).answers_shop_cases();
}

#[test]
#[ignore = "needs langgraph"]
fn keeps_concurrent_cases_apart() {
    let server = AgentServer::shared(AgentProduct::Langgraph);
    ShopAgent::example("langgraph", &server, Told::Failures).keeps_concurrent_cases_apart();
}

#[test]
#[ignore = "needs langgraph"]
fn quotes_failures() {
    let server = AgentServer::shared(AgentProduct::Langgraph);
    ShopAgent::example("langgraph", &server, Told::Failures).quotes_the_failure("the model is not available");
    let endpoint = format!("langgraph:{}?assistant=nobody", server.url(""));
    ShopAgent::at(&endpoint, Told::Failures).quotes_the_failure("nobody");
}

#[test]
#[ignore = "needs langgraph"]
fn asks_for_approval() {
    let server = AgentServer::shared(AgentProduct::Langgraph);
    ShopAgent::example("langgraph", &server, Told::Failures).asks_for_approval("Delete account 7?");
}
