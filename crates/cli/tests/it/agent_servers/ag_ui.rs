//! Agents that speak AG-UI: a server with AG-UI's SDK, and `TanStack` AI.

use karat_testkit::agent_server::{AgentProduct, AgentServer};

use super::shop::{ShopAgent, Told};

#[test]
#[ignore = "needs the JavaScript libraries of agents"]
fn answers_shop_cases() {
    let server = AgentServer::shared(AgentProduct::AgUi);
    ShopAgent::example("ag-ui", &server, Told::Failures).answers_shop_cases();
}

#[test]
#[ignore = "needs the JavaScript libraries of agents"]
fn answers_shop_cases_of_tanstack_ai() {
    let server = AgentServer::shared(AgentProduct::TanstackAi);
    ShopAgent::example("tanstack-ai", &server, Told::Failures).answers_shop_cases();
}

#[test]
#[ignore = "needs the JavaScript libraries of agents"]
fn keeps_concurrent_cases_apart() {
    let server = AgentServer::shared(AgentProduct::AgUi);
    ShopAgent::example("ag-ui", &server, Told::Failures).keeps_concurrent_cases_apart();
    let server = AgentServer::shared(AgentProduct::TanstackAi);
    ShopAgent::example("tanstack-ai", &server, Told::Failures).keeps_concurrent_cases_apart();
}

#[test]
#[ignore = "needs the JavaScript libraries of agents"]
fn quotes_failures() {
    let server = AgentServer::shared(AgentProduct::AgUi);
    ShopAgent::example("ag-ui", &server, Told::Failures).quotes_the_failure("the model is not available");
    let server = AgentServer::shared(AgentProduct::TanstackAi);
    ShopAgent::example("tanstack-ai", &server, Told::Failures).quotes_the_failure("the model is not available");
}

#[test]
#[ignore = "needs the JavaScript libraries of agents"]
fn asks_for_approval() {
    let server = AgentServer::shared(AgentProduct::AgUi);
    ShopAgent::example("ag-ui", &server, Told::Failures).asks_for_approval("Delete account 7?");
}

#[test]
#[ignore = "needs the JavaScript libraries of agents"]
fn asks_for_approval_of_tanstack_ai() {
    let server = AgentServer::shared(AgentProduct::TanstackAi);
    let agent = ShopAgent::example("tanstack-ai", &server, Told::Failures);
    agent.asks_for_approval("Approval required to run delete_account");
}
