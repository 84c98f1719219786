//! Agents behind an API of their own, by configuration only.

use karat_testkit::agent_server::{AgentProduct, AgentServer};
use rstest::rstest;
use serde_json::json;

use super::shop::{CallReporting, ShopAgent};

#[test]
fn own_api() {
    let server = AgentServer::shared(AgentProduct::OwnApi);
    let agent = ShopAgent::example("own-api", &server, CallReporting::Failures);
    agent.answers_shop_cases();
    agent.isolates_concurrent_cases();
    agent.quotes_the_failure("the model is not available");
    let case = agent.ask("Where is order 1?");
    let usage = json!({"inputTokens": 20, "outputTokens": 10});
    assert_eq!((&case["details"]["usage"], &case["details"]["model"]), (&usage, &json!("scripted-1")));
}

/// A session with a cookie, a message, then polls for the answer.
#[test]
fn session_and_poll() {
    let server = AgentServer::shared(AgentProduct::SessionPoll);
    let agent = ShopAgent::example("session-poll", &server, CallReporting::Failures);
    agent.answers_shop_cases();
    agent.isolates_concurrent_cases();
    agent.quotes_the_failure("the model is not available");
}

/// The calls of a reply are mapped; a stream is read as a whole.
#[rstest]
fn flowise(#[values(false, true)] stream: bool) {
    let server = AgentServer::shared(AgentProduct::Flowise);
    let session = json!({"sessionId": "{{conversationId}}"});
    let agent = ShopAgent::at(&server.url("/api/v1/prediction/shop"), CallReporting::Failures).with_agent(&json!({
        "request": {"message": "/question", "body": {"streaming": stream, "overrideConfig": session}},
        "response": {"conversation": ""},
    }));
    agent.answers_shop_cases();
    agent.isolates_concurrent_cases();
    agent.quotes_the_failure("the model is not available");
}

/// The question and the decision are mapped.
#[test]
fn approval_of_flowise() {
    let server = AgentServer::shared(AgentProduct::Flowise);
    let agent = ShopAgent::at(&server.url("/api/v1/prediction/shop"), CallReporting::Nothing).with_agent(&json!({
        "request": {"message": "/question", "body": {"chatId": "{{conversationId}}"}},
        "response": {"response": "/text", "approval": {"when": {"path": "/action", "notNull": true}, "question": "/text"}},
        "resume": {
            "body": {
                "chatId": "{{conversationId}}",
                "humanInput": {"type": "{{decision}}", "startNodeId": "{{reply:/action/data/nodeId}}", "feedback": ""},
            },
            "approve": "proceed",
            "deny": "reject",
        },
    }));
    agent.asks_for_approval("Delete account 7?");
}
