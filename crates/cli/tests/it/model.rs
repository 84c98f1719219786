//! Models as agents: requests, results, retries, rate limits and budgets.

use std::time::Duration;

use karat_testkit::project::TempProject;
use karat_testkit::server::ScriptedServer;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{case, ok_case, only_result, project};

const KEY: &str = "sk-a-secret-key-7";

/// Creates a project that sends model requests to this server.
fn model_project(server: &ScriptedServer) -> TempProject {
    project()
        .env("OPENAI_API_KEY", KEY)
        .env("OPENAI_BASE_URL", format!("{}/v1", server.base_url()))
        .env("ANTHROPIC_API_KEY", KEY)
        .env("ANTHROPIC_BASE_URL", server.base_url())
        .file("tools.json", json!([{"name": "look", "description": "Looks.", "inputSchema": {"type": "object"}}]))
}

fn config(more: Value) -> Value {
    let mut config =
        json!({"agentEndpoint": "openai:test-model", "toolRegistryPath": "tools.json", "outputDir": "results"});
    let Value::Object(more) = more else { panic!("not an object: {more}") };
    config.as_object_mut().unwrap().extend(more);
    config
}

fn many_cases(count: usize) -> Value {
    (1..=count).map(|number| ok_case(&format!("gs-x-{number:03}"), &format!("m{number}"))).collect()
}

#[test]
fn survives_a_burst_of_rate_limit_errors() {
    let server = ScriptedServer::start(json!({"*": {
        "text": "ok", "delayMs": 20,
        "storm": {"every": 2, "status": 429, "text": "slow down", "headers": {"retry-after": "1"}},
    }}));
    let providers = json!({"openai": {"requestsPerMinute": 3000}});
    // Longer than any call, but shorter than the pauses that the server asks for, which must not count.
    let project = model_project(&server)
        .file("karat.json", config(json!({"concurrency": 8, "timeoutMs": 900, "providers": providers})))
        .file("evals/x.golden.json", many_cases(14));
    let output = project.command(["run"]).timeout(Duration::from_mins(2)).run();
    assert_eq!(output.code, Some(0), "{}", output.both());
    let result = only_result(&project, "results");
    assert_eq!(result["summary"]["passed"], 14, "{result}");
    let slowest = result["cases"].as_array().unwrap().iter().map(|case| case["durationMs"].as_u64().unwrap()).max();
    assert!(slowest < Some(500), "waiting was counted as latency: {slowest:?}");
    // 50 calls per second are allowed. After a 429, none may start for a second; calls in flight finish.
    assert!(
        server.max_requests_within(Duration::from_secs(1)) <= 51,
        "{}",
        server.max_requests_within(Duration::from_secs(1))
    );
    assert!(
        server.max_requests_within(Duration::from_millis(19)) <= 2,
        "{}",
        server.max_requests_within(Duration::from_millis(19))
    );
    let arrivals: Vec<_> = server.requests().into_iter().map(|request| request.at).collect();
    let refused = arrivals.iter().enumerate().filter(|(index, _)| (index + 1) % 2 == 0).map(|(_, at)| *at);
    for refusal in refused {
        let answered_at = refusal + Duration::from_millis(20);
        let too_soon = arrivals.iter().filter(|at| **at > answered_at + Duration::from_millis(250));
        let too_soon = too_soon.filter(|at| **at < answered_at + Duration::from_millis(950)).count();
        assert_eq!(too_soon, 0, "calls started during the pause");
    }
}

#[test]
fn only_answered_calls_have_success_and_duration() {
    let call = json!({"calls": [{"name": "look", "args": {"at": "sky"}}]});
    let turns = json!({"route": {"turns": [call]}, "stub": {"turns": [call, {"text": "blue"}]}});
    let server = ScriptedServer::start(turns);
    let case =
        |id: &str, message: &str| json!({"id": id, "input": {"message": message}, "expect": {"toolsCalled": ["look"]}});
    let mut stubbed = case("ls-look-002", "stub");
    stubbed["stubs"] = json!({"look": {"color": "blue"}});
    let project = model_project(&server)
        .file("karat.json", config(json!({})))
        .file("evals/look.labeled.json", json!([case("ls-look-001", "route"), stubbed]));
    let output = project.run(["run"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let result = only_result(&project, "results");
    let success_and_duration = |index: usize| {
        let call = &result["cases"][index]["details"]["toolCalls"][0];
        (call.get("success"), call.get("durationMs"))
    };
    assert_eq!(success_and_duration(0), (None, None), "{result}");
    assert_eq!(success_and_duration(1), (Some(&json!(true)), Some(&json!(0.0))), "{result}");
}

/// No tool runs, so that none can fail.
#[test]
fn notes_that_tool_errors_are_not_judged_in_routing_only_runs() {
    let call = json!({"calls": [{"name": "look", "args": {}}]});
    let server = ScriptedServer::start(json!({"*": {"turns": [call, {"text": "blue"}]}}));
    let case = |id: &str| case(id, "hi", json!({"toolsCalled": ["look"], "noToolErrors": true}));
    let mut stubbed = case("gs-look-002");
    stubbed["stubs"] = json!({"look": {"color": "blue"}});
    let project = model_project(&server)
        .file("karat.json", config(json!({})))
        .file("evals/look.golden.json", json!([case("gs-look-001"), stubbed]));
    let output = project.run(["run"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let text = output.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    let note = "'noToolErrors' does not apply to 1 case: without 'stubs', the model only selects tools";
    assert!(text.contains(note), "{}", output.stderr);
    let cases = &only_result(&project, "results")["cases"];
    assert_eq!((&cases[0]["assertionsRun"], &cases[1]["assertionsRun"]), (&json!(1), &json!(2)), "{cases:#}");
}

#[rstest]
#[case(json!({"maxRetries": 0}), 1)]
#[case(json!({}), 3)]
#[case(json!({"maxRetries": 4, "providers": {"openai": {"maxRetries": 1}}}), 2)]
fn retries_as_often_as_configured(#[case] keys: Value, #[case] attempts: usize) {
    let server = ScriptedServer::start(json!({"*": {"status": 503, "text": "busy", "headers": {"retry-after": "0"}}}));
    let project = model_project(&server)
        .file("karat.json", config(keys))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    let output = project.run(["run"]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    assert_eq!(server.request_count(), attempts);
    let error = only_result(&project, "results")["cases"][0]["error"].as_str().unwrap().to_owned();
    assert!(error.starts_with("openai returned HTTP 503 Service Unavailable: busy"), "{error}");
    assert_eq!(error.contains(&format!("(tried {attempts} times)")), attempts > 1, "{error}");
}

#[test]
fn http_agents_are_retried_only_on_request() {
    let server = ScriptedServer::start(json!({"m": {"sequence": [
        {"status": 500, "raw": "", "headers": {"retry-after": "0"}}, {"response": "ok"},
    ]}}));
    let project = project().file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    let arguments = ["run", "--agent-endpoint", &server.endpoint(), "--output-dir", "results"];
    assert_eq!(project.run(arguments).code, Some(3));
    assert_eq!(
        project.run(arguments.into_iter().chain(["--max-retries", "1"])).code,
        Some(0),
        "the second request succeeds"
    );
    assert_eq!(server.request_count(), 2);
}

#[rstest]
#[case("openai:test-model")]
#[case("anthropic:test-model")]
fn the_result_has_model_parameters_but_not_the_key(#[case] endpoint: &str) {
    let server = ScriptedServer::start(json!({"m": {"text": format!("ok, my key is {KEY}")}}));
    let project = model_project(&server)
        .file("prompts/system.md", "Be brief.\n")
        .file(
            "karat.json",
            config(json!({
                "agentEndpoint": endpoint, "systemPromptPath": "prompts/system.md",
                "temperature": 0.25, "maxOutputTokens": 77,
            })),
        )
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    let output = project.run(["run"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let body = &server.bodies()[0];
    let text = body.to_string();
    assert!(text.contains("Be brief.") && text.contains("\"look\""), "{text}");
    assert_eq!((&body["temperature"], &body["model"]), (&json!(0.25), &json!("test-model")));
    assert_eq!(server.refusals(), Vec::<String>::new());
    let result = only_result(&project, "results");
    let parameters = &result["metadata"]["parameters"];
    assert_eq!((&parameters["temperature"], &parameters["maxOutputTokens"]), (&json!(0.25), &json!(77)));
    assert_eq!(parameters["systemPrompt"], "96fb1c7f068c");
    assert_eq!(result["agentEndpoint"], endpoint);
    assert_eq!(result["cases"][0]["details"]["response"], "ok, my key is ***");
    assert!(!(result.to_string() + &output.both()).contains(KEY));
}

#[test]
fn reads_the_key_from_the_env_file() {
    let server = ScriptedServer::start(json!({"m": {"text": "ok"}}));
    let project = project()
        .file(".env", format!("OPENAI_API_KEY={KEY}\nOPENAI_BASE_URL={}/v1\n", server.base_url()))
        .file("tools.json", json!([]))
        .file("karat.json", config(json!({})))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    let output = project.run(["run"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert_eq!(server.requests()[0].headers["authorization"], format!("Bearer {KEY}"));
    assert!(!output.both().contains(KEY));
}

#[test]
fn uses_a_custom_provider() {
    let server = ScriptedServer::start(json!({"m": {"text": "ok"}})).without_keys();
    let provider = json!({"api": "anthropic", "baseUrl": server.base_url(), "headers": {"x-team": "${TEAM}"}});
    let project = project()
        .env("TEAM", "blue-team")
        .file("tools.json", json!([]))
        .file("karat.json", config(json!({"agentEndpoint": "house:big", "providers": {"house": provider}})))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    let output = project.run(["run"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let request = &server.requests()[0];
    assert_eq!((request.path.as_str(), request.headers["x-team"].as_str()), ("/v1/messages", "blue-team"));
}

#[test]
fn warns_once_about_an_unknown_price() {
    let server = ScriptedServer::start(json!({"*": {"text": "ok", "usage": [1000, 500]}}));
    let project =
        model_project(&server).file("karat.json", config(json!({}))).file("evals/x.golden.json", many_cases(3));
    let output = project.run(["run"]);
    assert_eq!(output.stderr.matches("unknown price of openai:test-model").count(), 1, "{}", output.stderr);
    let result = only_result(&project, "results");
    assert_eq!(result["summary"].get("estimatedCostUsd"), None);
    assert_eq!(result["cases"][0]["details"]["usage"], json!({"inputTokens": 1000, "outputTokens": 500}));

    let prices = json!({"openai:test-model": {"inputUsdPerMillion": 2, "outputUsdPerMillion": 8}}).to_string();
    let output = project.run(["run", "--output-dir", "priced", "--prices", &prices]);
    assert!(!output.stderr.contains("unknown price"), "{}", output.stderr);
    let cost = only_result(&project, "priced")["summary"]["estimatedCostUsd"].as_f64().unwrap();
    assert!((cost - 0.018).abs() < 1e-12, "{cost}");
}

#[test]
fn a_local_model_needs_no_price() {
    let server = ScriptedServer::start(json!({"*": {"text": "ok", "usage": [1000, 500]}}));
    let project = model_project(&server)
        .file("karat.json", config(json!({"agentEndpoint": "openai-compatible:good"})))
        .file("evals/x.golden.json", many_cases(1))
        .env("OPENAI_COMPATIBLE_BASE_URL", format!("{}/v1", server.base_url()));
    // The server refuses calls without a key.
    let output = project.run(["run"]);
    assert!(!output.stderr.contains("unknown price") && server.request_count() == 1, "{}", output.both());
    let keyed = project.command(["run"]).env("OPENAI_COMPATIBLE_API_KEY", KEY).run();
    assert!(keyed.stderr.contains("unknown price of openai-compatible:good"), "{}", keyed.stderr);
    let output = project.run(["run", "--max-cost-usd", "1"]);
    assert!(output.stderr.contains("'maxCostUsd' cannot be enforced"), "{}", output.stderr);
}

#[test]
fn several_models_share_one_budget() {
    let server = ScriptedServer::start(json!({"*": {"text": "ok", "usage": [1000, 500]}}));
    // A call costs 0.006.
    let price = json!({"inputUsdPerMillion": 2, "outputUsdPerMillion": 8});
    let prices = json!({"openai:test-model": price, "anthropic:test-model": price}).to_string();
    let project = model_project(&server).file("tools.json", json!([])).file("evals/x.golden.json", many_cases(2));
    let matrix = ["run", "--matrix", "openai:test-model,anthropic:test-model", "--prices", &prices, "--format", "json"];
    let output = project.run([matrix.as_slice(), &["--max-cost-usd", "0.02"]].concat());
    assert_eq!((output.code, server.request_count()), (Some(3), 3), "{}", output.both());
    let document: Value = serde_json::from_str(&project.run(matrix).stdout).unwrap();
    assert_eq!(document["totals"]["passed"], 4, "{document}");
    assert_eq!(document["matrix"]["agents"][1]["agent"], "anthropic:test-model");
    assert_eq!(document["matrix"]["agents"][1]["costUsd"], 0.012);
}

#[test]
fn stops_before_a_call_exceeds_the_budget() {
    let server = ScriptedServer::start(json!({"*": {"text": "ok", "usage": [1000, 500], "delayMs": 10}}));
    // A call costs 0.006.
    let prices = json!({"openai:test-model": {"inputUsdPerMillion": 2, "outputUsdPerMillion": 8}});
    let project = model_project(&server)
        .file("karat.json", config(json!({"prices": prices, "maxCostUsd": 0.02, "concurrency": 8})))
        .file("evals/x.golden.json", many_cases(30));
    let output = project.run(["run"]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    assert_eq!(server.request_count(), 3, "a fourth call would bring the total to 0.024");
    let result = only_result(&project, "results");
    assert_eq!(result["summary"]["passed"], 3);
    assert!(result["summary"]["notRun"].as_u64().unwrap() > 0, "{}", result["summary"]);
    assert!(output.stdout.contains("the budget of $0.02"), "{}", output.stdout);

    let unpriced = project.run(["run", "--prices", "{}"]);
    assert_eq!(unpriced.code, Some(2), "{}", unpriced.both());
    assert!(unpriced.stderr.contains("'maxCostUsd' cannot be enforced"), "{}", unpriced.stderr);
}

#[test]
fn warns_about_a_truncated_answer() {
    let reply = json!({"model": "m", "choices": [{"finish_reason": "length", "message": {"content": "ok, but"}}]});
    let server = ScriptedServer::start(json!({"m": {"json": reply}}));
    let project = model_project(&server)
        .file("karat.json", config(json!({})))
        .file("evals/x.golden.json", json!([case("gs-x-001", "m", json!({"responseContains": ["ok"]}))]));
    let output = project.run(["run"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stdout.contains("the answer was cut off"), "{}", output.stdout);
}

#[test]
fn gives_up_when_every_call_is_rate_limited() {
    let server = ScriptedServer::start(json!({"*": {"status": 429, "text": "no", "headers": {"retry-after": "0"}}}));
    let project = model_project(&server)
        .file("karat.json", config(json!({"concurrency": 4})))
        .file("evals/x.golden.json", many_cases(4));
    let output = project.command(["run"]).timeout(Duration::from_mins(2)).run();
    assert_eq!(output.code, Some(3), "{}", output.both());
    assert_eq!(only_result(&project, "results")["summary"]["errored"], 4);
    assert!(server.request_count() < 40, "{}", server.request_count());
}

#[test]
fn does_not_retry_an_exhausted_quota() {
    let refusal =
        json!({"error": {"message": "no credit", "type": "insufficient_quota", "code": "insufficient_quota"}});
    let server = ScriptedServer::start(json!({"m": {"status": 429, "json": refusal}}));
    let project = model_project(&server)
        .file("karat.json", config(json!({})))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    let output = project.run(["run"]);
    assert_eq!((output.code, server.request_count()), (Some(3), 1), "{}", output.both());
    assert!(output.stdout.contains("no credit"), "{}", output.stdout);
}

#[test]
fn rate_and_concurrency_limits_do_not_deadlock() {
    let server = ScriptedServer::start(json!({"*": {"text": "ok", "delayMs": 20}}));
    let limits = json!({"openai": {"requestsPerMinute": 1200, "maxConcurrency": 1}});
    let project = model_project(&server)
        .file("karat.json", config(json!({"concurrency": 8, "providers": limits})))
        .file("evals/x.golden.json", many_cases(12));
    let output = project.command(["run"]).timeout(Duration::from_secs(30)).run();
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert_eq!(server.peak(), 1);
}

#[test]
fn a_budget_requires_agents_that_report_their_cost() {
    let server = ScriptedServer::start(json!({"*": {"response": "ok", "usage": {"costUsd": 5}, "delayMs": 10}}));
    let project = project().file("evals/x.golden.json", many_cases(8));
    let arguments = ["run", "--agent-endpoint", &server.endpoint(), "--output-dir", "results", "-j", "4"];
    let output = project.run(arguments.into_iter().chain(["--max-cost-usd", "12"]));
    assert_eq!((output.code, server.request_count()), (Some(3), 2), "{}", output.both());

    server.reset(json!({"*": {"response": "ok"}}));
    let unreported = project.run(arguments.into_iter().chain(["--max-cost-usd", "12"]));
    assert_eq!(unreported.code, Some(3), "{}", unreported.both());
    assert!(unreported.stdout.contains("does not report its cost"), "{}", unreported.stdout);
}

#[test]
fn a_timed_out_call_counts_against_the_budget() {
    let server = ScriptedServer::start(json!({
        "m1": {"text": "ok", "usage": [1000, 500]}, "*": {"text": "ok", "usage": [1000, 500], "delayMs": 5000},
    }));
    let prices = json!({"openai:test-model": {"inputUsdPerMillion": 2, "outputUsdPerMillion": 8}});
    let project = model_project(&server)
        .file("karat.json", config(json!({"prices": prices, "maxCostUsd": 0.02, "timeoutMs": 300})))
        .file("evals/x.golden.json", many_cases(9));
    let output = project.run(["run"]);
    assert_eq!((output.code, server.request_count()), (Some(3), 3), "{}", output.both());
}

#[test]
fn names_the_misconfigured_provider() {
    let house = json!({"house": {"baseUrl": "http://127.0.0.1:9", "apiKeyVariable": "HOUSE_KEY"}}).to_string();
    let project = project().file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    let error_for = |endpoint: &str, variable: (&str, &str)| {
        let arguments = ["run", "--agent-endpoint", endpoint, "--providers", &house];
        project.command(arguments).env(variable.0, variable.1).run().both()
    };
    let without_key = error_for("house:big", ("NOTHING", ""));
    assert!(without_key.contains("HOUSE_KEY is not set, but 'house' requires a key"), "{without_key}");
    let invalid_url = error_for("ollama:big", ("OLLAMA_BASE_URL", "127.0.0.1:9/v1"));
    assert!(invalid_url.contains("OLLAMA_BASE_URL is not a valid URL"), "{invalid_url}");
    let unreachable = error_for("ollama:big", ("OLLAMA_BASE_URL", "http://127.0.0.1:9/v1"));
    let unreachable: String = unreachable.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unreachable.contains("cannot reach ollama at http://127.0.0.1:9/v1"), "{unreachable}");
    for (wrong, right) in
        [("openai", "openai:MODEL"), ("opneai:x", "openai:x"), ("localhost:3000/a", "http://localhost:3000/a")]
    {
        let output = error_for(wrong, ("NOTHING", ""));
        assert!(output.contains(&format!("did you mean '{right}'?")), "{output}");
    }
}

#[test]
fn a_placeholder_key_is_not_masked() {
    let server = ScriptedServer::start(json!({"m": {"text": "ok, the latest test"}}));
    let project = model_project(&server)
        .env("OPENAI_API_KEY", "test")
        .file("karat.json", config(json!({})))
        .file("evals/x.golden.json", json!([ok_case("gs-latest-001", "m")]));
    assert_eq!(project.run(["run"]).code, Some(0));
    assert_eq!(only_result(&project, "results")["cases"][0]["details"]["response"], "ok, the latest test");
}
