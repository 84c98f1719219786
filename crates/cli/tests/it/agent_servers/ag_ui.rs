//! Agents that speak AG-UI: a server with AG-UI's SDK, and `TanStack` AI.

use karat_testkit::agent_server::{AgentProduct, AgentServer};

use super::shop::{CallReporting, ShopAgent};

#[test]
#[ignore = "needs the JavaScript libraries of agents"]
fn answers_shop_cases() {
    let server = AgentServer::shared(AgentProduct::AgUi);
    ShopAgent::example("ag-ui", &server, CallReporting::Failures).answers_shop_cases();
}

#[test]
#[ignore = "needs the JavaScript libraries of agents"]
fn answers_shop_cases_of_tanstack_ai() {
    let server = AgentServer::shared(AgentProduct::TanstackAi);
    ShopAgent::example("tanstack-ai", &server, CallReporting::Failures).answers_shop_cases();
}

#[test]
#[ignore = "needs the JavaScript libraries of agents"]
fn isolates_concurrent_cases() {
    let server = AgentServer::shared(AgentProduct::AgUi);
    ShopAgent::example("ag-ui", &server, CallReporting::Failures).isolates_concurrent_cases();
    let server = AgentServer::shared(AgentProduct::TanstackAi);
    ShopAgent::example("tanstack-ai", &server, CallReporting::Failures).isolates_concurrent_cases();
}

#[test]
#[ignore = "needs the JavaScript libraries of agents"]
fn quotes_failures() {
    let server = AgentServer::shared(AgentProduct::AgUi);
    ShopAgent::example("ag-ui", &server, CallReporting::Failures).quotes_the_failure("the model is not available");
    let server = AgentServer::shared(AgentProduct::TanstackAi);
    ShopAgent::example("tanstack-ai", &server, CallReporting::Failures)
        .quotes_the_failure("the model is not available");
}

#[test]
#[ignore = "needs the JavaScript libraries of agents"]
fn asks_for_approval() {
    let server = AgentServer::shared(AgentProduct::AgUi);
    ShopAgent::example("ag-ui", &server, CallReporting::Failures).asks_for_approval("Delete account 7?");
}

#[test]
#[ignore = "needs the JavaScript libraries of agents"]
fn asks_for_approval_of_tanstack_ai() {
    let server = AgentServer::shared(AgentProduct::TanstackAi);
    let agent = ShopAgent::example("tanstack-ai", &server, CallReporting::Failures);
    agent.asks_for_approval("Approval required to run delete_account");
}
