//! Functions of the project.

use super::shop::{ShopAgent, Told};

#[test]
fn python() {
    let agent = ShopAgent::program("python-function", "agent.py", Told::Failures);
    agent.answers_shop_cases();
    agent.keeps_concurrent_cases_apart();
    agent.quotes_the_failure("the model is not available");
    let agent = agent.with_endpoint("python:agent:answer_async");
    agent.answers_shop_cases();
    agent.keeps_concurrent_cases_apart();
}

/// The function takes the messages of the conversation.
#[test]
fn python_with_messages() {
    let agent = ShopAgent::program("python-function", "agent.py", Told::Failures);
    agent.with_endpoint("python:agent:converse").answers_shop_cases();
}

#[test]
#[ignore = "needs Node"]
fn node() {
    let agent = ShopAgent::program("node-function", "agent.mjs", Told::Failures);
    agent.answers_shop_cases();
    agent.keeps_concurrent_cases_apart();
    agent.quotes_the_failure("the model is not available");
    let agent = agent.with_endpoint("node:agent.mjs#answerAsync");
    agent.answers_shop_cases();
    agent.keeps_concurrent_cases_apart();
}
