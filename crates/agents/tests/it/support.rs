//! How the tests ask.

use std::time::{Duration, Instant};

use karat_agents::{HttpAgent, HttpConfig};
use karat_core::case::{Case, Expectation, Input};
use karat_core::port::{Agent, AgentError, Ask, Unwatched};
use karat_core::trace::Trace;
use karat_json::{Path, Problems};
use karat_testkit::server::{ScriptedServer, SecureServer};
use serde_json::{Value, json};

/// Starts a server from within a test's runtime, which it cannot share.
pub(crate) fn serve(script: Value) -> ScriptedServer {
    std::thread::spawn(|| ScriptedServer::start(script)).join().unwrap()
}

pub(crate) fn serve_securely() -> SecureServer {
    std::thread::spawn(SecureServer::start).join().unwrap()
}

pub(crate) fn case(message: &str) -> Case {
    Case {
        id: "gs-x-001".to_owned(),
        description: String::new(),
        difficulty: None,
        created_at: None,
        bug_ref: None,
        input: Input { message: message.to_owned() },
        stubs: None,
        max_turns: None,
        expect: Expectation::default(),
        line: 1,
    }
}

/// Reads a configuration that has no fault.
pub(crate) fn config(value: &Value) -> HttpConfig {
    let mut problems = Problems::default();
    let config = HttpConfig::read(value, &Path::Root, &mut problems);
    assert!(problems.is_empty(), "{:?}", problems.into_list());
    config.unwrap()
}

/// Makes an agent for a URL with this configuration, its headers as they are.
pub(crate) fn agent_at(url: &str, value: &Value) -> HttpAgent {
    let config = config(value);
    let headers: Vec<(String, String)> = config.headers.clone().into_iter().collect();
    HttpAgent::new(url, &headers, config).unwrap()
}

pub(crate) fn agent(server: &ScriptedServer) -> HttpAgent {
    agent_at(&server.endpoint(), &json!({}))
}

pub(crate) async fn ask(agent: &impl Agent, message: &str) -> Result<Trace, AgentError> {
    agent.answer(Ask { case: &case(message), sample: 0, waiting: &Unwatched }).await
}

/// Asks a server that has only one answer.
pub(crate) async fn answered(entry: Value) -> Result<Trace, String> {
    let server = serve(json!({"*": entry}));
    ask(&agent(&server), "hi").await.map_err(|error| error.message)
}

/// Returns why a server's only answer was none.
pub(crate) async fn error_of(entry: Value) -> String {
    answered(entry).await.expect_err("no answer to judge")
}

/// Waits until something is so, but not for ever.
pub(crate) async fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
