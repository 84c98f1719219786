//! Cases with several turns: verdicts, reports, recordings.

use karat_testkit::agent_server::{AgentProduct, AgentServer};
use karat_testkit::project::TempProject;
use karat_testkit::server::ScriptedServer;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{newest_result, normalised_result, project};

/// A case in which the agent asks which order to cancel.
fn cancellation() -> Value {
    json!([{
        "id": "ls-shop-001",
        "description": "asks which order",
        "turns": [
            {"message": "Cancel my order", "expect": {
                "toolsCalled": [], "responseContainsAny": [["which order", "Which order"]],
            }},
            {"message": "4411", "expect": {
                "calls": {"list": [{"tool": "cancel_order", "params": {"order_id": "4411"}, "paramsMatch": "includes"}]},
                "responseContains": ["4411"],
            }},
        ],
        "expect": {"maxToolCalls": 1, "noToolErrors": true, "responseContains": ["cancelled"]},
    }])
}

fn shop_script(second: &str) -> Value {
    let call = json!({"name": "cancel_order", "params": {"order_id": second}, "success": true, "result": {"ok": true}});
    json!({"replies": {
        "Cancel my order": {"turns": [
            {"response": "Which order?"},
            {"response": "Order 4411 is cancelled.", "toolCalls": [call]},
            {"response": "You are welcome."},
        ]},
    }})
}

fn shop_project(cases: &Value, script: &Value) -> TempProject {
    project()
        .file("karat.json", json!({"agentEndpoint": "scripted:script.json", "outputDir": "results"}))
        .file("script.json", script)
        .file("evals/shop.labeled.json", cases)
}

#[test]
fn judges_each_turn_and_the_whole_case() {
    let project = shop_project(&cancellation(), &shop_script("4411"));
    let output = project.run(["run"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let result = newest_result(&project, "results");
    let case = &result["cases"][0];
    // Three checks of the case, two of the first turn and two of the second.
    assert_eq!((&case["assertionsRun"], &case["details"]["response"]), (&json!(7), &json!("Order 4411 is cancelled.")));
    let turns = case["details"]["turns"].as_array().unwrap();
    assert_eq!(turns.len(), 2);
    assert_eq!((&turns[1]["outcome"], &turns[1]["message"]), (&json!("passed"), &json!("4411")));
    assert_eq!(turns[1]["toolCalls"][0]["name"], "cancel_order");
    assert_eq!(case.get("message"), None, "the messages are in the turns");
}

#[test]
fn a_failed_turn_ends_the_conversation_and_is_shown() {
    let mut cases = cancellation();
    cases[0]["turns"].as_array_mut().unwrap().push(json!({"message": "Thanks"}));
    let project = shop_project(&cases, &shop_script("4141"));
    let arguments = ["run", "--report", "junit=junit.xml", "--report", "markdown=report.md"];
    let output = project.run(arguments);
    assert_eq!(output.code, Some(1), "{}", output.both());
    let result = newest_result(&project, "results");
    let case = &result["cases"][0];
    assert!(case["error"].as_str().unwrap().starts_with("turn 2: calls: "), "{case}");
    assert_eq!(case["failures"][0]["pointer"], "/turns/1/expect/calls");
    let outcomes: Vec<&Value> =
        case["details"]["turns"].as_array().unwrap().iter().map(|turn| &turn["outcome"]).collect();
    assert_eq!(outcomes, ["passed", "failed", "notRun"]);
    for text in ["turn 1", "Cancel my order", "Which order?", "turn 2", "4141", "1 more turn was not run"] {
        assert!(output.stdout.contains(text), "{text}: {}", output.stdout);
    }
    let (junit, markdown) = (project.read("junit.xml"), project.read("report.md"));
    for text in ["turn 1 (passed): Cancel my order", "turn 2 (failed): 4411", "1 more turn was not run"] {
        assert!(junit.contains(text) && markdown.contains(text), "{text}: {junit}\n{markdown}");
    }
    let shown = project.run(["show", "ls-shop-001"]);
    for text in ["turn 1: passed", "turn 2: failed", "turn 3: not run", "Which order?", "turn 1: toolsCalled"] {
        assert!(shown.stdout.contains(text), "{text}: {}", shown.stdout);
    }
}

#[rstest]
#[case(&[], Some("turn 1: responseContains: "), ["failed", "passed"], 1)]
#[case(&["--all-failures"], Some("turn 1: responseContains: "), ["failed", "passed"], 2)]
fn continues_after_a_failed_turn(
    #[case] flags: &[&str],
    #[case] error: Option<&str>,
    #[case] outcomes: [&str; 2],
    #[case] failures: usize,
) {
    let cases = json!([{
        "id": "ls-shop-001", "onTurnFailure": "continue",
        "turns": [{"message": "a", "expect": {"responseContains": ["no"]}}, {"message": "b"}],
        "expect": {"responseContains": ["no"]},
    }]);
    let script = json!({"otherwise": {"response": "yes"}, "replies": {}});
    let project = shop_project(&cases, &script);
    let output = project.run([&["run"][..], flags].concat());
    assert_eq!(output.code, Some(1), "{}", output.both());
    let result = newest_result(&project, "results");
    let case = &result["cases"][0];
    assert!(case["error"].as_str().unwrap().starts_with(error.unwrap()), "{case}");
    assert_eq!(case["failures"].as_array().map(Vec::len), Some(failures), "{case}");
    for (index, outcome) in outcomes.iter().enumerate() {
        assert_eq!(case["details"]["turns"][index]["outcome"], *outcome);
    }
}

/// The agents that a conversation is recorded with.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// A server that keeps the messages of a session.
    Server,
    Openai,
    Anthropic,
    Command,
    KeptAlive,
}

/// A program that answers from the history in the request.
const PROGRAM: &str = r#"
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    texts = [message["content"] for message in request.get("messages", [])]
    if "Cancel my order" in texts:
        call = {"name": "cancel_order", "params": {"order_id": request["message"]}, "success": True}
        reply = {"response": f"Order {request['message']} is cancelled.", "toolCalls": [call]}
    else:
        reply = {"response": "Which order?"}
    print(json.dumps(reply), flush=True)
"#;

#[rstest]
#[case(Kind::Server)]
#[case(Kind::Openai)]
#[case(Kind::Anthropic)]
#[case(Kind::Command)]
#[case(Kind::KeptAlive)]
fn a_replay_is_equal_byte_for_byte(#[case] kind: Kind) {
    let call = json!({"name": "cancel_order", "args": {"order_id": "4411"}});
    let model = ScriptedServer::start(json!({"Cancel my order": {"turns": [
        {"text": "Which order?", "usage": [10, 5]},
        {"calls": [call], "usage": [20, 5]},
        {"text": "Order 4411 is cancelled.", "usage": [30, 5]},
    ]}}));
    let mut cases = cancellation();
    cases[0]["stubs"] = json!({"cancel_order": {"status": "open"}});
    cases[0]["turns"][1]["stubs"] = json!({"cancel_order": {"status": "cancelled"}});
    let mut server = None;
    let mut config = match kind {
        Kind::Server => {
            let started = AgentServer::start(AgentProduct::SessionPoll);
            let config = started.config("session-poll");
            server = Some(started);
            config
        }
        Kind::Openai => json!({"agentEndpoint": "openai:test-model"}),
        Kind::Anthropic => json!({"agentEndpoint": "anthropic:test-model"}),
        Kind::Command => json!({"agentEndpoint": "command:python3 agent.py"}),
        Kind::KeptAlive => json!({"agentEndpoint": "command:python3 agent.py", "agent": {"keepAlive": true}}),
    };
    config["outputDir"] = "results".into();
    config["toolRegistryPath"] = "tools.json".into();
    config.as_object_mut().unwrap().shift_remove("$schema");
    let tools = json!([{"name": "cancel_order", "description": "Cancels.", "inputSchema": {"type": "object"}}]);
    let project = project()
        .env("OPENAI_API_KEY", "key-of-the-test")
        .env("OPENAI_BASE_URL", format!("{}/v1", model.base_url()))
        .env("ANTHROPIC_API_KEY", "key-of-the-test")
        .env("ANTHROPIC_BASE_URL", model.base_url())
        .file("karat.json", config)
        .file("tools.json", tools)
        .file("agent.py", PROGRAM)
        .file("evals/shop.labeled.json", cases);
    let recorded = project.run(["run", "--record", "evals/recordings", "--trials", "2"]);
    assert_eq!(recorded.code, Some(0), "{}", recorded.both());
    assert!(recorded.stderr.contains("recorded 4 answers in evals/recordings"), "{}", recorded.stderr);
    if matches!(kind, Kind::Openai | Kind::Anthropic) {
        assert_eq!(model.refusals(), Vec::<String>::new());
        let last = model.bodies().pop().unwrap();
        assert!(last.to_string().contains("Which order?"), "the history is sent: {last}");
        assert!(last.to_string().contains("cancelled"), "with the stub of the turn: {last}");
    }
    let before = normalised_result(&project);
    let requests = model.request_count();
    drop(server);
    project.write("agent.py", "raise SystemExit(1)\n");

    let replayed = project.run(["run", "--replay", "strict", "--trials", "2"]);
    assert_eq!(replayed.code, Some(0), "{}", replayed.both());
    assert!(replayed.stderr.contains("replayed 4 answers from evals/recordings"), "{}", replayed.stderr);
    assert_eq!(normalised_result(&project), before);
    assert_eq!(replayed.filtered_stdout(), recorded.filtered_stdout());
    assert_eq!(model.request_count(), requests);
}

#[test]
fn a_conversation_is_replayed_as_a_whole_or_not_at_all() {
    let server = ScriptedServer::start(json!({"*": {"response": "yes ok"}}));
    let turns = |messages: &[&str]| messages.iter().map(|message| json!({"message": message})).collect::<Value>();
    let cases = |messages: &[&str]| json!([{"id": "ls-x-001", "turns": turns(messages), "expect": {"responseContains": ["ok"]}}]);
    let project = project()
        .file("karat.json", json!({"agentEndpoint": server.endpoint(), "outputDir": "results"}))
        .file("evals/x.labeled.json", cases(&["a", "b"]));
    let first = project.run(["run", "--replay"]);
    assert!(first.stderr.contains("replayed 0 answers, requested 2"), "{}", first.stderr);
    let second = project.run(["run", "--replay"]);
    assert!(second.stderr.contains("replayed 2 answers"), "{}", second.stderr);
    // The agent must see the whole conversation, since it may keep its history.
    project.write("evals/x.labeled.json", cases(&["a", "b", "c"]));
    let third = project.run(["run", "--replay"]);
    assert!(third.stderr.contains("replayed 0 answers, requested 3"), "{}", third.stderr);
    // A conversation that begins like another one is recorded apart.
    project.write("evals/x.labeled.json", cases(&["a", "x"]));
    let strict = project.run(["run", "--replay", "strict"]);
    assert_eq!(strict.code, Some(3), "{}", strict.both());
    assert!(strict.both().contains("turn 1: no recording for this request"), "{}", strict.both());
}

#[test]
fn errors_and_timeouts_end_the_conversation() {
    let turn = |message: &str| json!({"message": message, "expect": {"responseContains": ["ok"]}});
    let case = |id: &str, second: &str| json!({"id": id, "turns": [turn("a"), turn(second), turn("c")]});
    let script = json!({
        "replies": {"slow": {"response": "ok", "delayMs": 5000}, "broken": {"error": "out of memory"}},
        "otherwise": {"response": "ok"},
    });
    let cases = json!([case("ls-x-001", "slow"), case("ls-x-002", "broken")]);
    let project = shop_project(&cases, &script);
    let output = project.run(["run", "--timeout-ms", "400"]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    let result = newest_result(&project, "results");
    let outcome = |index: usize| {
        let case = &result["cases"][index];
        let turns = case["details"]["turns"].as_array().unwrap();
        let turns: Vec<String> = turns.iter().map(|turn| turn["outcome"].as_str().unwrap().to_owned()).collect();
        (case["outcome"].as_str().unwrap(), case["error"].as_str().unwrap(), turns.join(" "))
    };
    assert_eq!(outcome(0), ("failed", "timeout", "passed failed notRun".to_owned()));
    assert_eq!(outcome(1), ("errored", "turn 2: out of memory", "passed errored notRun".to_owned()));
}

#[test]
fn a_failed_conversation_becomes_a_regression_case() {
    let project = shop_project(&cancellation(), &shop_script("4141"));
    assert_eq!(project.run(["run"]).code, Some(1));
    let arguments = ["regress", "add", "--from-run", "latest", "--case", "ls-shop-001", "--bug-ref", "#7"];
    let added = project.run(arguments);
    assert_eq!(added.code, Some(0), "{}", added.both());
    let case = project.read_json("evals/shop.regression.json")["cases"][0].clone();
    assert_eq!(case["turns"], cancellation()[0]["turns"]);
    assert_eq!(case.get("input"), None);
    assert_eq!(project.run(["check", "evals/shop.regression.json"]).code, Some(0));
    let again = project.run(arguments);
    assert!(again.stdout.contains("already covers"), "{}", again.both());
    let with_message = project.run([&arguments[..], &["--message", "Hello"]].concat());
    assert_eq!(with_message.code, Some(2), "{}", with_message.both());
}

#[test]
fn the_judge_of_a_rubric_sees_the_whole_conversation() {
    let rubric = json!([{
        "id": "rb-shop-001",
        "turns": [{"message": "Cancel my order"}, {"message": "4411"}],
        "rubric": [{"dimension": "clarity", "maxScore": 2, "criteria": "2: asks first. 0: otherwise."}],
    }]);
    let judge = json!({"replies": [
        {"contains": ["\"conversation\"", "Which order?", "Order 4411 is cancelled.", "cancel_order"],
         "value": {"score": 2, "reason": "asks"}},
    ], "otherwise": {"value": {"score": 0, "reason": "sees nothing"}}});
    let project = shop_project(&cancellation(), &shop_script("4411"))
        .file("judge.json", judge)
        .file("evals/shop.rubric.json", rubric);
    let output = project.run(["run", "--judge", "scripted:judge.json"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stdout.contains("2/2"), "{}", output.stdout);
}

#[test]
fn the_store_has_a_step_per_turn() {
    let project = shop_project(&cancellation(), &shop_script("4411"));
    assert_eq!(project.run(["run"]).code, Some(0));
    let list = project.run(["trace", "list", "--source", "runs", "--format", "jsonl"]);
    let item: Value = serde_json::from_str(list.stdout.lines().next().unwrap_or_default()).expect("a trace");
    assert_eq!((&item["steps"], &item["tool_calls"]), (&json!(2), &json!(1)), "{item}");
    let shown = project.run(["trace", "show", item["trace_id"].as_str().unwrap(), "--format", "json"]);
    let document: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    assert!(shown.stdout.contains("\"turn\""), "{document}");
}
