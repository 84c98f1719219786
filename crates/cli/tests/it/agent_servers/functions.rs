//! Functions and programs of the project.

use super::shop::{CallReporting, ShopAgent};

#[test]
fn python() {
    let agent = ShopAgent::program("python-function", &["agent.py"], CallReporting::Failures);
    agent.answers_shop_cases();
    agent.isolates_concurrent_cases();
    agent.quotes_the_failure("the model is not available");
    let agent = agent.with_endpoint("python:agent:answer_async");
    agent.answers_shop_cases();
    agent.isolates_concurrent_cases();
}

/// The function takes the messages of the conversation.
#[test]
fn python_with_messages() {
    let agent = ShopAgent::program("python-function", &["agent.py"], CallReporting::Failures);
    agent.with_endpoint("python:agent:converse").answers_shop_cases();
}

#[test]
#[ignore = "needs Node"]
fn node() {
    let agent = ShopAgent::program("node-function", &["agent.mjs"], CallReporting::Failures);
    agent.answers_shop_cases();
    agent.isolates_concurrent_cases();
    agent.quotes_the_failure("the model is not available");
    let agent = agent.with_endpoint("node:agent.mjs#answerAsync");
    agent.answers_shop_cases();
    agent.isolates_concurrent_cases();
}

/// The program stays alive between cases.
#[test]
fn program() {
    let agent = ShopAgent::program("command", &["agent.py", "shop.py"], CallReporting::Failures);
    agent.answers_shop_cases();
    agent.isolates_concurrent_cases();
    agent.quotes_the_failure("the model is not available");
}
