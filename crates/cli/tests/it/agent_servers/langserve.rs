//! `LangServe` with an agent executor that returns its intermediate steps.

use karat_testkit::agent_server::{AgentProduct, AgentServer};

use serde_json::json;

use super::shop::{CallReporting, ShopAgent};

#[test]
#[ignore = "needs langserve"]
fn answers_shop_cases() {
    let server = AgentServer::shared(AgentProduct::Langserve);
    ShopAgent::example("langserve", &server, CallReporting::Calls).answers_shop_cases();
}

#[test]
#[ignore = "needs langserve"]
fn isolates_concurrent_cases() {
    let server = AgentServer::shared(AgentProduct::Langserve);
    ShopAgent::example("langserve", &server, CallReporting::Calls).isolates_concurrent_cases();
}

#[test]
#[ignore = "needs langserve"]
fn quotes_failures() {
    let server = AgentServer::shared(AgentProduct::Langserve);
    ShopAgent::example("langserve", &server, CallReporting::Calls).quotes_the_failure("Internal Server Error");
    let endpoint = format!("langserve:{}", server.url("/nothing"));
    ShopAgent::at(&endpoint, CallReporting::Calls).quotes_the_failure("Not Found");
}

#[test]
#[ignore = "needs langserve"]
fn streams() {
    let server = AgentServer::shared(AgentProduct::Langserve);
    let agent = ShopAgent::example("langserve", &server, CallReporting::Calls)
        .with_agent(&json!({"request": {"url": "stream"}}));
    agent.answers_shop_cases();
    agent.quotes_the_failure("Internal Server Error");
}
