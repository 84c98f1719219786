//! `-vv`, `-vvv` and `KARAT_LOG`: logs on stderr, without secrets.

use karat_testkit::project::TempProject;
use karat_testkit::server::ScriptedServer;
use rstest::rstest;
use serde_json::json;

use crate::support::{ok_case, project, project_with_python, script};

/// Creates a project with a passing and a failing case.
fn two_cases() -> TempProject {
    project()
        .file("karat.json", json!({"agentEndpoint": "scripted:agent.json", "outputDir": "results"}))
        .file("agent.json", script(&[("a", "ok"), ("b", "no")]))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "a"), ok_case("gs-x-002", "b")]))
}

/// Returns the log lines that contain all parts.
fn lines_with<'l>(log: &'l str, parts: &[&str]) -> Vec<&'l str> {
    log.lines().filter(|line| parts.iter().all(|part| line.contains(part))).collect()
}

#[test]
fn logs_nothing_by_default() {
    let output = two_cases().run(["run"]);
    assert_eq!(output.code, Some(1), "{}", output.both());
    assert!(!output.stderr.contains("DEBUG") && !output.stderr.contains("case{"), "{}", output.stderr);
}

#[rstest]
#[case::before_the_subcommand(&["-vv", "run"])]
#[case::after_the_subcommand(&["run", "--verbose", "--verbose"])]
fn verbose_logs_runs_and_cases_to_stderr(#[case] arguments: &[&str]) {
    let project = two_cases();
    let (full, verbose) = (project.run(["run", "-v"]), project.run(arguments));
    assert_eq!(verbose.code, full.code);
    assert_eq!(verbose.filtered_stdout(), full.filtered_stdout());
    assert!(!full.stderr.contains("DEBUG"), "{}", full.stderr);
    let log = &verbose.stderr;
    assert_eq!(lines_with(log, &["DEBUG run{id=", "run started cases=2 trials=2"]).len(), 1, "{log}");
    let passed = ["run{id=", ":case{id=gs-x-001 trial=1}: karat_runner", "case finished outcome=Passed"];
    assert_eq!(lines_with(log, &passed).len(), 1, "{log}");
    let failed = [":case{id=gs-x-002", "outcome=Failed cause=Assertion", "error=responseContains: expected 'ok'"];
    assert_eq!(lines_with(log, &failed).len(), 1, "{log}");
    assert!(log.contains("run finished") && !log.contains("TRACE"), "{log}");
}

#[test]
fn karat_log_shows_calls_and_retries() {
    let server = ScriptedServer::start(json!({
        "a": {"response": "ok"},
        "b": {"sequence": [{"status": 503, "raw": "busy", "headers": {"retry-after": "0"}}, {"response": "ok"}]},
    }));
    let project = project()
        .file("karat.json", json!({"agentEndpoint": server.endpoint(), "outputDir": "results", "maxRetries": 1}))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "a"), ok_case("gs-x-002", "b")]));
    let output = project.command(["run"]).env("KARAT_LOG", "karat_http=trace").run();
    assert_eq!(output.code, Some(0), "{}", output.both());
    let log = &output.stderr;
    let call = format!("call{{method=POST url={}}}: karat_http::send: ", server.endpoint());
    assert_eq!(lines_with(log, &["DEBUG ", &call, "response received status=200"]).len(), 2, "{log}");
    assert_eq!(lines_with(log, &[&call, "response received status=503"]).len(), 1, "{log}");
    assert_eq!(lines_with(log, &["TRACE ", &call, "sending bytes="]).len(), 3, "{log}");
    assert_eq!(lines_with(log, &["karat_http::retry: retrying attempt=1"]).len(), 1, "{log}");
    assert!(!log.contains("case finished"), "the filter excludes the runner: {log}");
}

#[test]
fn karat_log_overrides_the_flag() {
    let output = two_cases().command(["run", "-vvv"]).env("KARAT_LOG", "karat=off").run();
    assert!(!output.stderr.contains("case{"), "{}", output.stderr);
}

#[test]
fn rejects_an_invalid_filter() {
    let output = two_cases().command(["run"]).env("KARAT_LOG", "karat_http=loud").run();
    insta::assert_snapshot!(output.filtered(), @r#"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: KARAT_LOG is not a valid filter: error parsing level filter: expected one
      of "off", "error", "warn", "info", "debug", "trace", or a number 0-5
    hint: pass a level, or a list of targets with levels: KARAT_LOG=info or
      KARAT_LOG=karat_http=trace,karat_runner=debug
    "#);
}

#[test]
fn masks_secrets() {
    let (header, query, password) = ("s3cr3t-of-the-header", "s3cr3t-of-the-query", "s3cr3t-of-the-url");
    let server = ScriptedServer::start(json!({
        "a": {"status": 500, "raw": format!("no: {header} {query}\r\n{password}")},
        "b": {"response": format!("{header} {query} {password}")},
    }));
    let endpoint = server.endpoint().replace("http://", &format!("http://me:{password}@"));
    let project = project()
        .file(
            "karat.json",
            json!({
                "agentEndpoint": format!("{endpoint}?api_key={query}"),
                "agent": {"headers": {"x-api-key": "${AGENT_TOKEN}"}},
                "outputDir": "results",
                "maxRetries": 1,
            }),
        )
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "a"), ok_case("gs-x-002", "b")]));
    for (arguments, filter) in [(&["run", "-vvv"][..], ""), (&["run"], "trace")] {
        let output = project.command(arguments).env("AGENT_TOKEN", header).env("KARAT_LOG", filter).run();
        assert_eq!(output.code, Some(3), "{}", output.both());
        assert!(output.stderr.contains("response received status=500"), "{}", output.stderr);
        for secret in [header, query, password] {
            assert!(!output.both().contains(secret), "{secret} in {}", output.both());
        }
    }
}

#[test]
fn logs_batches_and_eval_functions() {
    let project = project_with_python().file("eval_short.py", "def eval_short(trace):\n    return True, ''\n");
    let traces = "{\"trace_id\": \"t1\", \"steps\": []}\n";
    let command = project.command(["-vvv", "eval", "run", "eval_short.py", "--traces", "-"]).stdin(traces);
    let output = command.run();
    assert_eq!(output.code, Some(0), "{}", output.both());
    let judged = ["TRACE judge{eval=eval_short}: karat_sandbox", "judged passed=true"];
    assert_eq!(lines_with(&output.stderr, &judged).len(), 1, "{}", output.stderr);
    project.write("traces.jsonl", traces);
    let output = project.run(["-vv", "trace", "import", "traces.jsonl"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let written = ["DEBUG batch{rows=1}: karat_workflows::batch_writer: batch written committed=1 failed=0"];
    assert_eq!(lines_with(&output.stderr, &written).len(), 1, "{}", output.stderr);
}
