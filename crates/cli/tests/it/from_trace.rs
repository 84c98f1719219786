//! Cases from stored traces: `karat regress add --from-trace`, and `karat forge --drafter traces`.

use jiff::Timestamp;
use karat_core::port::TraceStore;
use karat_core::rating::Rating;
use karat_testkit::project::{Output, TempProject};
use serde_json::{Value, json};

use crate::eval_stored::{store_location, with_store};
use crate::forge::forge_project;
use crate::project_store::{ProjectStore, new_trace};
use crate::support::project;

const FILE: &str = "evals/get-weather.regression.json";

fn put_trace(project: &TempProject, source: &str, document: &Value) {
    let trace = new_trace(document["trace_id"].as_str().unwrap(), source, &document.to_string());
    with_store(&store_location(project), async |store| {
        store.put_traces(&[trace], Timestamp::UNIX_EPOCH).await.unwrap()
    });
}

fn step(message: Option<&str>, response: &str, tools: &[&str]) -> Value {
    let messages = message.map(|text| json!({"role": "user", "content": text}));
    let call =
        |name: &&str| json!({"name": name, "arguments": {"city": "Paris"}, "result": {"celsius": 21}, "error": null});
    let calls: Vec<Value> = tools.iter().map(call).collect();
    let messages: Vec<Value> = messages.into_iter().collect();
    let input = json!({"message": message, "messages": messages});
    json!({"input": input, "output": {"response": response}, "tool_calls": calls, "error": null})
}

/// Creates a project with a trace of two turns.
fn project_with_trace() -> TempProject {
    let tools = json!([
        {"name": "get_weather", "description": "Fetches the weather."},
        {"name": "get_forecast", "description": "Fetches the forecast."},
    ]);
    let project = project().file("karat.json", json!({"toolRegistryPath": "tools.json"})).file("tools.json", tools);
    let steps = [
        step(Some("Weather in Paris?"), "", &["get_weather"]),
        step(None, "It rains, says {\"celsius\": 21}", &[]),
        step(Some("And tomorrow? Write to jo@example.org"), "Sun", &["get_forecast", "get_weather"]),
    ];
    put_trace(&project, "langfuse", &json!({"trace_id": "4bf92f3577b34da6", "steps": steps}));
    project
}

fn add(project: &TempProject, more: &[&str]) -> Output {
    project.run(["regress", "add"].into_iter().chain(more.iter().copied()))
}

#[test]
fn adds_a_trace_as_a_case_once() {
    let project = project_with_trace();
    ProjectStore::open(&project).add_feedback(
        "ada",
        "4bf92f3577b34da6",
        Rating::Negative,
        Some("answered with raw JSON"),
    );
    let arguments = ["--from-trace", "4bf9", "--step", "1", "--response-not-contains", "{\""];
    insta::assert_snapshot!(add(&project, &arguments).filtered(), @"
    exit: 0
    ----- stdout -----
    added rg-get-weather-001 to evals/get-weather.regression.json (new file)
    ----- stderr -----
    ");
    let case = &project.read_json(FILE)["cases"][0];
    let expected = json!({
        "id": "rg-get-weather-001",
        "description": "regression — answered with raw JSON",
        "difficulty": "regression",
        "createdAt": case["createdAt"],
        "bugRef": "trace 4bf92f3577b34da6 step 1",
        "input": {"message": "Weather in Paris?"},
        "expect": {"responseNotContains": ["{\""]},
    });
    assert_eq!(*case, expected);
    let before = project.read(FILE);
    insta::assert_snapshot!(add(&project, &arguments).filtered(), @"
    exit: 0
    ----- stdout -----
    rg-get-weather-001 in evals/get-weather.regression.json already covers trace 4bf92f3577b34da6 step 1
    ----- stderr -----
    nothing was written; pass TOOL and --message to add another case
    ");
    let more = ["--from-trace", "4bf9", "--step", "2", "--bug-ref", "#7", "--no-tool-errors", "--format", "json"];
    let again = add(&project, &more);
    let report: Value = serde_json::from_str(&again.stdout).expect("valid report");
    assert_eq!((&report["written"], &report["cases"][0]["id"]), (&json!(false), &json!("rg-get-weather-001")));
    assert_eq!(project.read(FILE), before);
    assert_eq!(project.run(["check"]).code, Some(0));
}

#[test]
fn several_messages_become_a_conversation() {
    let project = project_with_trace();
    assert_eq!(add(&project, &["--from-trace", "4bf9", "--step", "1", "--no-tool-errors"]).code, Some(0));
    let arguments = ["get_forecast", "--from-trace", "4bf9", "--bug-ref", "#7", "--tools-not-called", "get_weather"];
    let output = add(&project, &arguments);
    insta::assert_snapshot!(output.filtered(), @"
    exit: 0
    ----- stdout -----
    added rg-get-forecast-001 to evals/get-forecast.regression.json (new file)
    ----- stderr -----
    warning: a message has personal data (an e-mail address): replace it with
      --message unless it may be stored
    ");
    let case = &project.read_json("evals/get-forecast.regression.json")["cases"][0];
    let messages = json!([{"message": "Weather in Paris?"}, {"message": "And tomorrow? Write to jo@example.org"}]);
    assert_eq!((&case["turns"], case.get("input")), (&messages, None));
    assert_eq!(case["bugRef"], "#7 (trace 4bf92f3577b34da6)");
    assert_eq!(case["description"], "regression — called get_weather, get_forecast, get_weather, and answered: Sun");
    let again = add(&project, &arguments);
    assert!(again.stdout.contains("already covers") && again.code == Some(0), "{}", again.both());
}

#[test]
fn a_message_replaces_those_of_the_trace() {
    let project = project_with_trace();
    let output =
        add(&project, &["get_forecast", "--from-trace", "4bf9", "--message", "Paris tomorrow?", "--no-tool-errors"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let case = &project.read_json("evals/get-forecast.regression.json")["cases"][0];
    assert_eq!((&case["input"]["message"], case.get("turns")), (&json!("Paris tomorrow?"), None));
}

#[test]
fn errors_have_hints() {
    let project = project_with_trace();
    put_trace(&project, "karat", &json!({"trace_id": "silent", "steps": [step(None, "Hello!", &[])]}));
    put_trace(&project, "karat", &json!({"trace_id": "shapeless", "steps": "none"}));
    let late = [
        step(Some("Good morning"), "Hello!", &[]),
        step(None, "How can I help?", &[]),
        step(Some("Weather in Rome?"), "Sun", &["get_weather"]),
    ];
    put_trace(&project, "karat", &json!({"trace_id": "late", "steps": late}));
    let cases: [(&[&str], i32, &str); 10] = [
        (&["--from-trace", "zzz", "--no-tool-errors"], 2, "run 'karat trace list' to list traces"),
        (&["--from-trace", "4bf9", "--step", "1"], 2, "the case would always pass"),
        (&["--from-trace", "4bf9", "--step", "9", "--no-tool-errors"], 2, "the user's turns are steps 1 to 3"),
        (&["--from-trace", "4bf9", "--no-tool-errors"], 2, "several tools were called: get_forecast, get_weather"),
        (
            &["--from-trace", "late", "--step", "2", "--no-tool-errors"],
            2,
            "no tool was called in the turns of the case (steps 1 to 2)",
        ),
        (
            &["--from-trace", "late", "--step", "1", "--no-tool-errors"],
            2,
            "hint: other turns call get_weather (--step 3)\n",
        ),
        (&["--from-trace", "silent", "--no-tool-errors"], 2, "has no user message"),
        (&["--from-trace", "shapeless", "--no-tool-errors"], 2, "the trace has no 'steps' list"),
        (&["get_wether", "--from-trace", "4bf9", "--no-tool-errors"], 2, "did you mean 'get_weather'?"),
        (
            &["--from-trace", "4bf9", "--from-run", "latest", "--case", "x", "--no-tool-errors"],
            2,
            "cannot be used with",
        ),
    ];
    for (arguments, code, expected) in cases {
        let output = add(&project, arguments);
        assert_eq!(output.code, Some(code), "{arguments:?}: {}", output.both());
        let text = output.stdout.clone() + &output.unwrapped_stderr();
        assert!(text.contains(expected), "{arguments:?}: {text}");
    }
    assert!(!project.path().join("evals").exists());
}

#[test]
fn drafts_cases_from_the_store() {
    let project = forge_project(3);
    let forge = |more: &[&str]| {
        let arguments = ["forge", "get_weather", "--dry-run", "--tier", "golden", "--drafter", "traces"];
        project.run(arguments.into_iter().chain(more.iter().copied()))
    };
    let mistyped = forge(&["--store", "karta.db"]);
    assert_eq!(mistyped.code, Some(4), "{}", mistyped.both());
    assert!(mistyped.stderr.contains("error: the store karta.db does not exist\n"), "{}", mistyped.stderr);
    assert!(!project.path().join("karta.db").exists());
    let steps = |message: &str| {
        json!([step(Some(message), "", &["get_weather"]), step(None, "21 degrees, north-west wind", &[])])
    };
    put_trace(&project, "otlp", &json!({"trace_id": "real", "steps": steps("Do I need a coat in Lisbon?")}));
    put_trace(&project, "run", &json!({"trace_id": "of-a-run", "steps": steps("Is it windy up in Aberdeen?")}));
    let output = forge(&[]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stdout.contains("Do I need a coat in Lisbon?"), "{}", output.both());
    assert!(!output.stdout.contains("Aberdeen"), "{}", output.both());
    assert!(output.stderr.contains("1 of 1 traces call get_weather"), "{}", output.stderr);
    let narrow = forge(&["--rating", "positive"]);
    assert_eq!(narrow.code, Some(4), "{}", narrow.both());
    assert!(narrow.stderr.contains("remove --since and --rating"), "{}", narrow.both());
    ProjectStore::open(&project).add_feedback("ada", "real", Rating::Positive, None);
    assert_eq!(forge(&["--rating", "positive"]).code, Some(0));
    let other = project.run(["forge", "get_weather", "--dry-run", "--drafter", "template", "--since", "7d"]);
    assert!(other.both().contains("pass --drafter traces"), "{}", other.both());
}
