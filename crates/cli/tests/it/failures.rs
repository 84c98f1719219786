//! Output for cases that did not pass and agents that are unreachable.

use karat_testkit::project::TempProject;
use karat_testkit::server::ScriptedServer;
use serde_json::{Value, json};

use crate::support::{case, ok_case, only_result, project, script};

/// Creates a project whose agent answers every message with the same reply.
fn always(reply: &Value, cases: Value) -> TempProject {
    project()
        .file("karat.json", json!({"agentEndpoint": "scripted:agent.json", "outputDir": "results"}))
        .file("agent.json", json!({"replies": {}, "otherwise": reply}))
        .file("evals/shop.golden.json", cases)
}

#[test]
fn shows_message_answer_and_calls_below_a_failure() {
    let reply = json!({
        "response": "Order A100 is shipped.\nIt arrives on Monday.",
        "toolCalls": [
            {"name": "get_order", "success": true, "params": {"id": "A100"}, "result": {"state": "shipped"}},
            {"name": "get_carrier", "success": false, "params": {}, "result": "no carrier yet"},
        ],
    });
    let cases = json!([
        case("gs-shop-001", "Where is A100?", json!({"responseContains": ["A100"]})),
        case("gs-shop-002", "Where is my order A100?", json!({"responseContainsAny": [["order", "parcel"]]})),
        case("gs-shop-003", "Which day?", json!({"responseNotContains": ["Monday"]})),
    ]);
    let project = always(&reply, cases);
    insta::assert_snapshot!(project.run(["run", "--no-store"]).filtered(), @r#"
    exit: 1
    ----- stdout -----
    ═══ shop — golden evals ═══════════════════════════════════════════
      ✓ gs-shop-001  says Where is A100?                           [TIME]
      ✗ gs-shop-002  says Where is my order A100?                  [TIME]
        → responseContainsAny: expected one of ['order', 'parcel'] in response but
          none found
        ⚠ near miss of 'order': the response has 'Order' (set 'textMatch' to loose
          or exact)
          message  Where is my order A100?
          answer   Order A100 is shipped.
                   ^^^^^
                   It arrives on Monday.
          calls    get_order {"id":"A100"}
                   -> {"state":"shipped"}
                   get_carrier {} -> failed: no carrier yet
      ✗ gs-shop-003  says Which day?                               [TIME]
        → responseNotContains: expected no 'Monday' in response but found it
          message  Which day?
          answer   Order A100 is shipped.
                   It arrives on Monday.
                                 ^^^^^^
          calls    get_order {"id":"A100"}
                   -> {"state":"shipped"}
                   get_carrier {} -> failed: no carrier yet
    ───────────────────────────────────────────────────────────────────
      1/3 passed | 2 failed | 0 skipped assertions | [TIME] total

    not passed:
      ✗ gs-shop-002 (evals/shop.golden.json:14): responseContainsAny: expected one
        of ['order', 'parcel'] in response but none found
      ✗ gs-shop-003 (evals/shop.golden.json:29): responseNotContains: expected no
        'Monday' in response but found it

    ----- stderr -----
    run [RUN_ID]: 1 result file in results
    to rerun what did not pass:
      karat run --no-store --id gs-shop-002 --id gs-shop-003
    "#);
    let full = project.run(["run", "--no-store", "-v", "--id", "gs-shop-001"]);
    insta::assert_snapshot!(full.filtered(), @r#"
    exit: 0
    ----- stdout -----
    ═══ shop — golden evals ═══════════════════════════════════════════
      ✓ gs-shop-001  says Where is A100?                           [TIME]
          message  Where is A100?
          answer   Order A100 is shipped.
                   It arrives on Monday.
          calls    get_order {"id":"A100"} -> {"state":"shipped"}
                   get_carrier {} -> failed: no carrier yet
    ───────────────────────────────────────────────────────────────────
      1/1 passed | 0 failed | 0 skipped assertions | [TIME] total

    ----- stderr -----
    run [RUN_ID]: 1 result file in results
    "#);
}

#[test]
fn reports_an_unreachable_agent_once() {
    let cases: Vec<Value> = (1..=60).map(|number| ok_case(&format!("gs-shop-{number:03}"), "m")).collect();
    let project = project().file("evals/shop.golden.json", json!(cases));
    // Port 9 (discard) is closed.
    let output = project.run(["run", "--no-store", "--agent-endpoint", "http://127.0.0.1:9/chat", "--output-dir", "r"]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    assert!(output.both().lines().count() < 25, "{}", output.both());
    let message = "the agent cannot be reached, so 55 cases were not run: cannot reach\n";
    assert_eq!(output.stdout.matches(message).count(), 1, "{}", output.stdout);
    let result = only_result(&project, "r");
    assert_eq!((&result["summary"]["errored"], &result["summary"]["notRun"]), (&json!(60), &json!(0)));
    assert_eq!(result["cases"][59]["error"], "not run: the agent cannot be reached");
}

#[test]
fn a_timeout_names_its_limit() {
    let project = always(&json!({"response": "ok", "delayMs": 5000}), json!([ok_case("gs-shop-001", "m")]));
    let output = project.run(["run", "--no-store", "--timeout-ms", "50"]);
    assert_eq!(output.code, Some(1), "{}", output.both());
    assert!(output.stdout.contains("→ timeout: no answer within 50 ms ('timeoutMs')"), "{}", output.stdout);
    assert_eq!(only_result(&project, "results")["cases"][0]["error"], "timeout");
}

#[test]
fn quiet_hides_suites_that_passed() {
    let project = always(&json!({"response": "ok"}), json!([ok_case("gs-shop-001", "m")])).file(
        "evals/other.golden.json",
        json!([ok_case("gs-other-001", "m"), case("gs-other-002", "m", json!({"responseContains": ["no"]}))]),
    );
    let output = project.run(["run", "--no-store", "-q"]);
    assert!(output.stdout.contains("═ other") && !output.stdout.contains("═ shop"), "{}", output.stdout);
    let output = project.run(["run", "--no-store", "-q", "evals/shop.golden.json"]);
    insta::assert_snapshot!(output.filtered(), @"
    exit: 0
    ----- stdout -----
    1 suite: 1/1 passed | 0 failed | 0 skipped assertions
    ----- stderr -----
    ");
}

#[test]
fn prints_the_rerun_command() {
    let project = always(&json!({"response": "no"}), json!([ok_case("gs-shop-001", "m")]));
    let output = project.run(["run", "--no-store", "--agent-endpoint", "scripted:agent.json"]);
    let command = "karat run --no-store --agent-endpoint scripted:agent.json --id gs-shop-001";
    assert!(output.stderr.contains(&format!("to rerun what did not pass:\n  {command}\n")), "{}", output.stderr);
}

#[test]
fn vacuous_cases_have_no_verdict() {
    let project = always(
        &json!({"response": "ok"}),
        json!([case("gs-shop-001", "m", json!({"responseContains": ["{{seed:x}}"]}))]),
    );
    let output = project.run(["run", "--no-store", "--gates", r#"{"passRate": 0.5}"#, "--report", "junit=junit.xml"]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    assert!(
        output.stdout.contains("! passRate  not checked, at least 0.5: no trial has a verdict"),
        "{}",
        output.stdout
    );
    let junit = std::fs::read_to_string(project.path().join("junit.xml")).unwrap();
    assert!(junit.contains("<skipped") && junit.contains("skipped=\"1\""), "{junit}");
}

#[test]
fn regressions_need_a_case_in_common() {
    let project = always(&json!({"response": "no"}), json!([ok_case("gs-shop-001", "m")]));
    assert_eq!(project.run(["run", "--no-store", "--output-dir", "baseline"]).code, Some(1));
    project.write("evals/shop.golden.json", json!([ok_case("gs-shop-901", "m")]));
    let arguments = ["run", "--no-store", "--baseline", "baseline", "--gates", r#"{"maxRegressions": 0}"#];
    let output = project.run(arguments);
    assert_eq!(output.code, Some(3), "{}", output.both());
    let reason = "! maxRegressions  not checked, at most 0: no case has a verdict both in the baseline and in this run";
    assert!(output.stdout.contains(reason), "{}", output.stdout);
}

#[test]
fn near_misses_are_marked_below_the_case() {
    let cases = json!([case("gs-shop-001", "Where?", json!({"responseNotContains": ["I don't know"]}))]);
    let project = always(&json!({"response": "I don’t know."}), cases);
    let output = project.run(["run", "--no-store", "--report", "markdown=report.md"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let lines: Vec<&str> = output.stdout.lines().map(str::trim).collect();
    let case_line = lines.iter().position(|line| line.starts_with("✓ gs-shop-001")).expect("the case");
    assert!(lines[case_line + 1].starts_with("⚠ near miss of 'I don't know'"), "{}", output.stdout);
    let report = std::fs::read_to_string(project.path().join("report.md")).unwrap();
    assert!(
        report.contains("- ⚠️ <code>evals/shop.golden.json</code>: <code>gs-shop-001</code>: near miss"),
        "{report}"
    );
    let output = project.run(["run", "--no-store", "--strict"]);
    assert_eq!(output.code, Some(1), "{}", output.both());
    assert!(output.stdout.contains("✗ gs-shop-001"), "{}", output.stdout);
}

/// Whether a GitHub runner would take a line for a command.
fn is_command(line: &str) -> bool {
    line.trim_start().starts_with("::") || line.contains("##[")
}

#[test]
fn text_cannot_issue_workflow_commands() {
    let name = format!("{} ::stop-commands::tok", "x".repeat(60));
    let reply = json!({
        "response": "a\n::stop-commands::tok\n##[stop-commands]tok2",
        "toolCalls": [{"name": "##[stop-commands]tok2", "params": {}}, {"name": name, "params": {}}],
    });
    let mut hostile = case("gs-shop-001", "::add-mask::m", json!({"toolsCalled": ["::stop-commands::t"]}));
    hostile["description"] = json!("##[group] ::stop-commands::d");
    let project = always(&reply, json!([hostile]));
    for report in ["junit=-", "markdown=-", "junit=junit.xml"] {
        let arguments = ["run", "--no-store", "-v", "--all-failures", "--report", report];
        let output = project.command(arguments).env("GITHUB_ACTIONS", "true").run();
        assert_eq!(output.code, Some(1), "{}", output.both());
        for line in output.both().lines().filter(|line| is_command(line)) {
            assert!(line.starts_with("::error file=") || line.starts_with("::notice title=karat::"), "{line}");
        }
    }
    let output = project.command(["run", "--no-store", "--format", "json"]).env("GITHUB_ACTIONS", "true").run();
    assert!(!output.stdout.lines().any(is_command), "{}", output.stdout);
    let document: Value = serde_json::from_str(&output.stdout).unwrap();
    let called = &document["suites"][0]["cases"][0]["details"]["toolsCalled"][0];
    assert_eq!(called, "##[stop-commands]tok2", "the value is unchanged");
}

#[rstest::rstest]
#[case("junit=-", "<?xml ", "</testsuites>\n")]
#[case("markdown=-", "#", "\n")]
fn a_report_has_stdout_for_itself(#[case] report: &str, #[case] start: &str, #[case] end: &str) {
    let project = always(&json!({"response": "no"}), json!([ok_case("gs-shop-001", "m")]));
    let output = project.run(["run", "--no-store", "--report", report]);
    assert_eq!(output.code, Some(1), "{}", output.both());
    assert!(output.stdout.starts_with(start) && output.stdout.ends_with(end), "{}", output.stdout);
    assert!(!output.stdout.contains("═══") && output.stderr.contains("0/1 passed"), "{}", output.both());
    let both = project.run(["run", "--no-store", "--report", report, "--report", "github=-"]);
    assert_eq!((both.code, both.stdout.as_str()), (Some(2), ""), "{}", both.both());
}

#[cfg(target_os = "linux")]
#[test]
fn a_report_that_cannot_be_written_stops_the_run_before_any_case() {
    let server = ScriptedServer::start(json!({"m": {"response": "ok"}}));
    let project = project().file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    let run = ["run", "--no-store", "--agent-endpoint", &server.endpoint(), "--report", "junit=/proc/x.xml"];
    let output = project.run(run);
    assert_eq!(output.code, Some(2), "{}", output.both());
    assert_eq!((server.request_count(), output.stdout.as_str()), (0, ""));
    let error = "error: cannot write the report to /proc/x.xml: no file can be created in its folder";
    assert!(output.unwrapped_stderr().contains(error), "{}", output.stderr);
}

#[test]
fn json_output_has_no_terminal_controls() {
    let project =
        always(&json!({"response": "\u{7f}\u{9b}31m\u{202e}\u{61c}\u{2028}ok"}), json!([ok_case("gs-shop-001", "m")]));
    for format in ["json", "jsonl"] {
        let output = project.run(["run", "--no-store", "--format", format]);
        let is_raw = |character: char| matches!(character, '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{2028}'..='\u{202e}');
        assert!(!output.stdout.contains(is_raw) && output.stdout.contains("\\u009b31m\\u202e"), "{}", output.stdout);
    }
}

#[test]
fn best_value_is_not_a_worse_agent() {
    let replies = |response: &str, cost: f64| json!({"replies": {}, "otherwise": {"response": response, "usage": {"costUsd": cost}}});
    let mut cheap = script(&[("m1", "ok"), ("m2", "no"), ("m3", "ok"), ("m4", "no"), ("m5", "ok")]);
    for reply in cheap["replies"].as_object_mut().unwrap().values_mut() {
        reply["usage"] = json!({"costUsd": 0.001});
    }
    let cases: Vec<Value> =
        (1..=5).map(|number| ok_case(&format!("gs-shop-00{number}"), &format!("m{number}"))).collect();
    let project = project()
        .file("good.json", replies("ok", 0.02))
        .file("cheap.json", cheap)
        .file("evals/shop.golden.json", json!(cases));
    let output = project.run(["run", "--no-store", "--matrix", "scripted:good.json,scripted:cheap.json"]);
    assert!(output.stdout.contains("best value: scripted:good.json, $0.0200 per passed case"), "{}", output.stdout);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_once() {
    let project = project()
        .file("agent.json", script(&[("a", "ok")]))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "a")]));
    let reports = ["--report", "markdown=/dev/full", "--report", "junit=/dev/full"];
    let output = project.run(["run", "--agent-endpoint", "scripted:agent.json"].iter().chain(&reports).copied());
    assert_eq!(output.code, Some(3), "{}", output.both());
    insta::assert_snapshot!(output.filtered_stderr(), @"
    error: no space left on device: cannot write the JUnit report to /dev/full and
      1 more
    hint: free some space and run the command again
    ");
}

#[test]
fn the_cost_is_shown_although_an_answer_has_none() {
    let answer = json!({"response": "ok", "usage": {"costUsd": 0.000_18}});
    let project = project()
        .file("agent.json", json!({"replies": {"a": answer, "b": {"error": "HTTP 500"}}}))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "a"), ok_case("gs-x-002", "b")]));
    let run = |arguments: &[&str]| {
        project.run(["run", "--agent-endpoint", "scripted:agent.json"].iter().chain(arguments).copied()).stdout
    };
    let stdout = run(&[]);
    assert!(stdout.contains("\n  at least $0.000180\n"), "{stdout}");
    let stdout = run(&["--id", "gs-x-001"]);
    assert!(stdout.contains(" total | $0.000180\n"), "{stdout}");
}
