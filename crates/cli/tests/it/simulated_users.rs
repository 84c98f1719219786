//! Cases with a simulated user, with models on a scripted server.

use karat_testkit::project::TempProject;
use karat_testkit::server::ScriptedServer;
use serde_json::{Value, json};

use crate::support::{normalised_result, only_result, project, script};

fn says(message: &str) -> Value {
    json!({"structured": {"message": message, "done": false}, "usage": [100, 10]})
}

fn done() -> Value {
    json!({"structured": {"message": "", "done": true}, "usage": [100, 10]})
}

/// Answers the agent's requests by the first message, and those of the simulated user in order.
fn server(user: &[Value]) -> ScriptedServer {
    let cancel = json!({"calls": [{"name": "cancel_order", "args": {"orderId": "4411"}}], "usage": [50, 5]});
    ScriptedServer::start(json!({
        "Please cancel my order": {"turns": [
            {"text": "Which order?", "usage": [50, 5]}, cancel, {"text": "Order 4411 is cancelled", "usage": [50, 5]},
        ]},
        "*": {"queue": user},
    }))
}

fn simulated_case() -> Value {
    json!({
        "id": "ls-orders-001",
        "description": "cancels the right order",
        "user": {"goal": "cancel the order", "facts": {"orderId": "4411"}},
        "stubs": {"cancel_order": {"ok": true}},
        "expect": {
            "calls": {"list": [{"tool": "cancel_order", "params": {"orderId": "4411"}}]},
            "responseContains": ["cancelled"],
        },
    })
}

fn orders_project(server: &ScriptedServer) -> TempProject {
    let tool = json!({"name": "cancel_order", "description": "Cancels.", "inputSchema": {"type": "object"}});
    project()
        .env("OPENAI_API_KEY", "sk-test")
        .env("OPENAI_BASE_URL", format!("{}/v1", server.base_url()))
        .file("tools.json", json!([tool]))
        .file(
            "karat.json",
            json!({
                "agentEndpoint": "openai:m", "toolRegistryPath": "tools.json", "outputDir": "results",
                "simulatedUser": {"model": "openai:u", "temperature": 0},
                "prices": {
                    "openai:m": {"inputUsdPerMillion": 100, "outputUsdPerMillion": 100},
                    "openai:u": {"inputUsdPerMillion": 10, "outputUsdPerMillion": 10},
                },
            }),
        )
        .file("evals/orders.labeled.json", json!([simulated_case()]))
}

#[test]
fn a_recorded_conversation_is_replayed_byte_for_byte() {
    let server = server(&[says("Please cancel my order"), says("It is 4411."), done()]);
    let project = orders_project(&server);
    let recorded = project.run(["run", "--record", "evals/recordings"]);
    assert_eq!(recorded.code, Some(0), "{}", recorded.both());
    let before = normalised_result(&project);
    let result = only_result(&project, "results");
    let details = &result["cases"][0]["details"];
    let messages: Vec<&str> =
        details["turns"].as_array().unwrap().iter().map(|turn| turn["message"].as_str().unwrap()).collect();
    assert_eq!(messages, ["Please cancel my order", "It is 4411."]);
    assert_eq!((&details["simulatedUser"]["end"], &details["simulatedUser"]["messages"]), (&json!("done"), &json!(2)));
    let requests = server.request_count();
    assert_eq!(requests, 6, "three of the agent and three of the simulated user");

    server.reset(json!({}));
    let replayed = project.run(["run", "--replay", "strict"]);
    assert_eq!(replayed.code, Some(0), "{}", replayed.both());
    assert_eq!(normalised_result(&project), before);
    assert_eq!(replayed.filtered_stdout(), recorded.filtered_stdout());
    assert_eq!(server.request_count(), 0);
}

#[test]
fn costs_of_the_user_are_shown_apart() {
    let server = server(&[says("Please cancel my order"), says("It is 4411."), done()]);
    let project = orders_project(&server);
    let output = project.run(["run", "--set", "gates={\"maxCostUsd\": 0.018}"]);
    let summary = only_result(&project, "results")["summary"].clone();
    let users = &summary["simulatedUser"];
    let is_cost = |value: &Value, expected: f64| (value.as_f64().unwrap() - expected).abs() < 1e-12;
    assert!(is_cost(&summary["estimatedCostUsd"], 0.0165) && is_cost(&users["costUsd"], 0.0033), "{summary}");
    assert_eq!((&users["trials"], &users["faults"]), (&json!(1), &json!(0)), "{users}");
    assert!(output.stdout.contains("simulated users: 0 of 1 conversation with a fault, $0.0033"), "{}", output.stdout);
    assert_eq!(output.code, Some(1), "both together exceed the gate: {}", output.both());
}

#[test]
fn faults_are_errored_and_counted() {
    let server = server(&[says("Please cancel my order"), says("It is 5512, I am Bob.")]);
    let project = orders_project(&server);
    let output = project.run(["run", "--report", "junit=junit.xml"]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    let result = only_result(&project, "results");
    let (case, users) = (&result["cases"][0], &result["summary"]["simulatedUser"]);
    assert_eq!(case["outcome"], "errored");
    let fault = &case["details"]["simulatedUser"]["fault"];
    assert_eq!((&fault["rule"], &fault["found"]), (&json!("number"), &json!("5512")), "{fault}");
    assert_eq!((&users["faults"], &users["faultRate"]), (&json!(1), &json!(1.0)), "{users}");
    let flat = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("the simulated user invented the number '5512'"), "{}", output.stdout);
    assert!(flat.contains("simulated users: 1 of 1 conversation with a fault (100%)"), "{}", output.stdout);
    let shown = project.run(["show", "latest", "ls-orders-001"]).stdout;
    assert!(shown.contains("Please cancel my order") && shown.contains("not sent: It is 5512"), "{shown}");
    assert!(project.read("junit.xml").contains("simulatedUserFault"), "{}", project.read("junit.xml"));
}

#[test]
fn runs_with_scripted_agents_and_users() {
    let server = server(&[done()]);
    let contains = |text: &str, value: Value| json!({"contains": [text], "value": value});
    let user = json!({"replies": [
        contains("\"agent\": \"Cancelled\"", json!({"message": "", "done": true})),
        contains("\"agent\": \"Which one?\"", json!({"message": "It is 4411", "done": false})),
        contains("\"conversation\": []", json!({"message": "Cancel it", "done": false})),
    ]});
    let mut case = simulated_case();
    case["user"]["model"] = json!("scripted:user.json");
    case["expect"] = json!({"responseContains": ["Cancelled"]});
    let project = orders_project(&server)
        .file("user.json", user)
        .file("a.json", script(&[("Cancel it", "Which one?"), ("It is 4411", "Cancelled")]))
        .file("evals/orders.labeled.json", json!([case]));
    let output = project.run(["run", "--agent-endpoint", "scripted:a.json", "--trials", "3"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let users = &only_result(&project, "results")["summary"]["simulatedUser"];
    assert_eq!((&users["trials"], &users["faults"]), (&json!(3), &json!(0)), "{users}");
}

#[test]
fn needs_a_model_before_anything_is_sent() {
    let server = server(&[done()]);
    let project = orders_project(&server).file(
        "karat.json",
        json!({"agentEndpoint": "openai:m", "toolRegistryPath": "tools.json", "outputDir": "results"}),
    );
    let output = project.run(["run"]);
    assert_eq!((output.code, server.request_count()), (Some(2), 0), "{}", output.both());
    assert!(
        output.stderr.contains("no model is configured for the simulated user of 'ls-orders-001'"),
        "{}",
        output.stderr
    );
}
