//! Vercel's AI SDK, which streams UI messages.

use karat_testkit::agent_server::{AgentProduct, AgentServer};

use super::shop::{CallReporting, ShopAgent};

#[test]
#[ignore = "needs the JavaScript libraries of agents"]
fn answers_shop_cases() {
    let server = AgentServer::shared(AgentProduct::AiSdk);
    ShopAgent::example("ai-sdk", &server, CallReporting::Failures).answers_shop_cases();
}

#[test]
#[ignore = "needs the JavaScript libraries of agents"]
fn isolates_concurrent_cases() {
    let server = AgentServer::shared(AgentProduct::AiSdk);
    ShopAgent::example("ai-sdk", &server, CallReporting::Failures).isolates_concurrent_cases();
}

#[test]
#[ignore = "needs the JavaScript libraries of agents"]
fn quotes_failures() {
    let server = AgentServer::shared(AgentProduct::AiSdk);
    ShopAgent::example("ai-sdk", &server, CallReporting::Failures).quotes_the_failure("the model is not available");
    let endpoint = format!("ai-sdk:{}", server.url("/nothing"));
    ShopAgent::at(&endpoint, CallReporting::Failures).quotes_the_failure("Not found");
}

#[test]
#[ignore = "needs the JavaScript libraries of agents"]
fn asks_for_approval() {
    let server = AgentServer::shared(AgentProduct::AiSdk);
    ShopAgent::example("ai-sdk", &server, CallReporting::Failures).asks_for_approval("Delete account 7?");
}

#[test]
#[ignore = "needs the JavaScript libraries of agents"]
fn measures_the_time_to_the_first_text() {
    let server = AgentServer::shared(AgentProduct::AiSdk);
    let case = ShopAgent::example("ai-sdk", &server, CallReporting::Failures).ask("Slow hello 1");
    let (first, whole) = (case["details"]["firstTokenMs"].as_f64().unwrap(), case["durationMs"].as_f64().unwrap());
    assert!((50.0..=whole + 1.0).contains(&first), "{case:#}");
}
