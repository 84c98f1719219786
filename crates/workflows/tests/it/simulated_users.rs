use std::path::PathBuf;

use karat_core::port::RunStore;
use karat_core::simulated_user::SimulatedUserSummary;
use karat_workflows::run_suites::{Request, SelectionRequest, run_suites};
use karat_workflows::{CancellationToken, ErrorKind};
use serde_json::{Value, json};

use crate::project::TestProject;

fn project(config: Value, user: &Value) -> TestProject {
    let case = json!({
        "id": "ls-orders-001",
        "user": user,
        "expect": {"responseContains": ["cancelled"]},
    });
    let reply = |contains: &str, message: &str| json!({"contains": [contains], "value": {"message": message, "done": message.is_empty()}});
    let script = json!({"replies": [
        reply("is cancelled", ""), reply("Which order?", "It is 4411"), reply("\"conversation\": []", "Cancel my order"),
    ]});
    let replies =
        json!({"Cancel my order": {"response": "Which order?"}, "It is 4411": {"response": "4411 is cancelled"}});
    let mut config = config;
    config["agentEndpoint"] = json!("scripted:agent.json");
    TestProject::new()
        .file("evals/orders.labeled.json", json!([case]))
        .file("agent.json", json!({"replies": replies}))
        .file("user.json", script)
        .file("karat.json", config)
}

fn request(store: bool) -> Request {
    Request { paths: vec![PathBuf::from("evals")], selection: SelectionRequest::default(), store, telemetry: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configured_model_plays_the_user_and_the_conversation_is_stored() {
    let config = json!({"simulatedUser": {"model": "scripted:user.json"}});
    let project = project(config, &json!({"goal": "cancel the order", "facts": ["My order is 4411."]}));
    let outcome =
        run_suites(request(true), &project.context(), |_| Ok(Vec::new()), &CancellationToken::new()).await.unwrap();
    assert_eq!((outcome.totals.passed, outcome.totals.errored), (1, 0));
    let expected = SimulatedUserSummary { trials: 1, faults: 0, fault_rate: Some(0.0), cost_usd: None };
    assert_eq!(outcome.totals.simulated_user, Some(expected));
    let store = project.context().open_store().await.unwrap();
    assert_eq!(store.cases_of_run(&outcome.run_id).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_is_errored_and_counted() {
    let config = json!({"simulatedUser": {"model": "scripted:user.json"}});
    let project = project(config, &json!({"goal": "cancel the order"}));
    let outcome =
        run_suites(request(false), &project.context(), |_| Ok(Vec::new()), &CancellationToken::new()).await.unwrap();
    assert_eq!((outcome.totals.passed, outcome.totals.errored), (0, 1));
    assert_eq!(outcome.totals.simulated_user.map(|users| users.faults), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_model_nothing_is_run() {
    let project = project(json!({}), &json!({"goal": "cancel the order"}));
    let result = run_suites(request(false), &project.context(), |_| Ok(Vec::new()), &CancellationToken::new()).await;
    let Err(error) = result else { panic!("expected an error") };
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert!(error.message.contains("'ls-orders-001'"), "{}", error.message);
}
