//! Helpers to call agents.

use std::time::{Duration, Instant};

use karat_agents::{HttpAgent, HttpConfig};
use karat_cases::{Case, CaseLocation, Expectation, Input};
use karat_core::port::{Agent, AgentError, IgnoreWaits, TrialContext};
use karat_core::trace::Trace;
use karat_json::{Path, Problems};
use karat_testkit::server::{HttpsServer, ScriptedServer};
use serde_json::{Value, json};

/// Starts a server on its own thread, because it cannot share the test's runtime.
pub(crate) fn serve(script: Value) -> ScriptedServer {
    std::thread::spawn(|| ScriptedServer::start(script)).join().unwrap()
}

pub(crate) fn serve_securely() -> HttpsServer {
    std::thread::spawn(HttpsServer::start).join().unwrap()
}

pub(crate) fn case(message: &str) -> Case {
    Case {
        id: "gs-x-001".to_owned(),
        description: String::new(),
        difficulty: None,
        created_at: None,
        bug_ref: None,
        input: Some(Input { message: message.to_owned() }),
        turns: None,
        user: None,
        on_turn_failure: None,
        stubs: None,
        injections: None,
        max_turns: None,
        expect: Expectation::default(),
        safety: None,
        tags: Vec::new(),
        skip: None,
        location: CaseLocation { line: 1, ..CaseLocation::default() },
    }
}

/// Reads a valid configuration.
pub(crate) fn config(value: &Value) -> HttpConfig {
    let mut problems = Problems::default();
    let config = HttpConfig::read(value, &Path::Root, &mut problems);
    assert!(problems.is_empty(), "{:?}", problems.into_list());
    config.unwrap()
}

/// Creates an agent for a URL; there are no environment variables.
pub(crate) fn agent_at(url: &str, value: &Value) -> HttpAgent {
    HttpAgent::new(url, config(value), &|_| None).unwrap()
}

pub(crate) fn agent(server: &ScriptedServer) -> HttpAgent {
    agent_at(&server.endpoint(), &json!({}))
}

pub(crate) async fn ask(agent: &impl Agent, message: &str) -> Result<Trace, AgentError> {
    let case = case(message);
    agent.start(trial(&case, 0)).send(message).await
}

pub(crate) fn trial(case: &Case, sample: u32) -> TrialContext<'_> {
    TrialContext { run_id: "run", number: 0, case, sample, has_turns: false, wait_observer: &IgnoreWaits }
}

/// Asks a server that always replies with `entry`.
pub(crate) async fn ask_server(entry: Value) -> Result<Trace, String> {
    let server = serve(json!({"*": entry}));
    ask(&agent(&server), "hi").await.map_err(|error| error.message)
}

/// Returns the error for a server that always replies with `entry`.
pub(crate) async fn error_of(entry: Value) -> String {
    ask_server(entry).await.expect_err("expected an error")
}

/// Waits until a condition holds, with a timeout.
pub(crate) async fn wait_until(description: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < deadline, "timed out waiting until {description}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
