//! Irregular replies: calls under another key, malformed arguments, errors in the body, parts of text.

use karat_testkit::project::{Output, TempProject};
use karat_testkit::server::ScriptedServer;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{case, newest_result, project};

/// Runs a case; returns it as in the result file.
fn run_case(project: TempProject, endpoint: &str, expect: Value, flags: &[&str]) -> (Value, Output) {
    let project = project.file("evals/x.golden.json", json!([case("gs-x-001", "hi", expect)]));
    let arguments = ["run", "--no-store", "--agent-endpoint", endpoint, "--output-dir", "results"];
    let output = project.run(arguments.iter().chain(flags).copied());
    let case = newest_result(&project, "results")["cases"][0].clone();
    (case, output)
}

fn ask(reply: &Value, expect: Value, flags: &[&str]) -> (Value, Output) {
    let server = ScriptedServer::start(json!({"hi": {"json": reply}}));
    run_case(project(), &server.endpoint(), expect, flags)
}

#[rstest]
fn calls_under_another_key_count_as_unreported(
    #[values("tool_calls", "toolcalls", "tools", "steps", "intermediate_steps", "intermediateSteps")] key: &str,
) {
    let reply = json!({"response": "done", key: [{"name": "delete_account", "success": false}]});
    let expect = json!({
        "toolsNotCalled": ["delete_account"], "noToolErrors": true, "maxToolCalls": 0, "responseContains": ["done"],
    });
    let (case, output) = ask(&reply, expect.clone(), &[]);
    assert_eq!((&case["outcome"], &case["assertionsSkipped"]), (&json!("passed"), &json!(3)), "{case:#}");
    assert!(output.stdout.contains("the agent does not report its tool calls"), "{}", output.both());
    let (case, output) = ask(&reply, expect, &["--strict"]);
    assert_eq!((output.code, &case["outcome"]), (Some(3), &json!("errored")), "{}", output.both());
}

/// The arguments are kept as text: the call was made, but no assertion about its parameters holds.
#[rstest]
#[case::empty("", Value::Null)]
#[case::cut_off("{\"city\": ", json!("{\"city\": "))]
#[case::text("Rome", json!("Rome"))]
fn keeps_calls_with_malformed_arguments(
    #[case] params: &str,
    #[case] raw: Value,
    #[values(false, true)] is_program: bool,
) {
    let reply = json!({"response": "ok", "toolCalls": [{"name": "get_weather", "params": params}]});
    let ask = |expect: Value| {
        if is_program {
            let project = project().file("reply.json", &reply);
            run_case(project, "command:cat reply.json", expect, &[]).0
        } else {
            ask(&reply, expect, &[]).0
        }
    };
    let called = ask(json!({"toolsCalled": ["get_weather"]}));
    assert_eq!(called["outcome"], "passed", "{called:#}");
    assert_eq!(called["details"]["toolCalls"][0].get("rawParams").cloned().unwrap_or_default(), raw, "{called:#}");
    for (assertion, outcome) in [("exists", "failed"), ("notExists", if raw.is_null() { "passed" } else { "failed" })] {
        let city = json!([{"tool": "get_weather", "paramName": "city", "assertion": assertion}]);
        let judged = ask(json!({"toolsCalled": ["get_weather"], "toolParams": city}));
        assert_eq!(judged["outcome"], outcome, "{assertion}: {judged:#}");
    }
}

#[rstest]
#[case(json!({"__error__": {"error": "RuntimeError", "message": "no model"}}), "RuntimeError: no model")]
#[case(json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "no model"}}), "no model")]
#[case(json!({"detail": "no model"}), "no model")]
fn an_error_in_the_body_is_quoted(#[case] reply: Value, #[case] message: &str) {
    let (case, output) = ask(&reply, json!({"responseNonEmpty": true}), &[]);
    assert_eq!((output.code, &case["outcome"]), (Some(3), &json!("errored")), "{}", output.both());
    assert_eq!(case["error"], format!("the agent replied with an error: {message}"), "{case:#}");
}

#[test]
fn parts_of_text_are_joined() {
    let parts = json!([{"type": "text", "text": "It is "}, {"type": "text", "text": "18 degrees."}]);
    let (case, _) = ask(&json!({ "response": parts }), json!({"responseContains": ["It is 18 degrees."]}), &[]);
    assert_eq!(case["outcome"], "passed", "{case:#}");
    assert_eq!(case["details"]["response"], "It is 18 degrees.", "{case:#}");
}

#[test]
fn variables_in_url_and_body_are_replaced_and_masked() {
    let server = ScriptedServer::start(json!({"hi": {"response": "you sent tk-from-environment"}}));
    let endpoint = format!("{}?team=${{TEAM_VALUE}}", server.endpoint());
    let config = json!({"agent": {"request": {"body": {"team": "${TEAM_VALUE}"}}}});
    let with_config = || project().file("karat.json", &config);
    let expect = json!({"responseNonEmpty": true});
    let (case, output) = run_case(with_config().env("TEAM_VALUE", "tk-from-environment"), &endpoint, expect, &[]);
    assert_eq!(case["outcome"], "passed", "{case:#}");
    let request = server.requests().remove(0);
    assert!(request.path.ends_with("?team=tk-from-environment"), "{}", request.path);
    assert_eq!(request.body["team"], "tk-from-environment");
    assert!(!case.to_string().contains("tk-from") && !output.both().contains("tk-from"), "{case:#}");
    let missing = with_config().run(["run", "--agent-endpoint", &endpoint]);
    assert_eq!(missing.code, Some(2), "{}", missing.both());
}
