//! Ctrl-C: what finished is written.

use std::time::{Duration, Instant};

use karat_testkit::server::ScriptedServer;
use serde_json::json;

use crate::support::{ok_case, only_result, project};

#[test]
fn an_interrupted_run_keeps_what_finished() {
    let server =
        ScriptedServer::start(json!({"fast": {"response": "ok"}, "slow": {"response": "ok", "delayMs": 30_000}}));
    let project = project().file(
        "evals/x.golden.json",
        json!([ok_case("gs-x-001", "fast"), ok_case("gs-x-002", "slow"), ok_case("gs-x-003", "fast")]),
    );
    let started = Instant::now();
    let running = project.command(["run", "--agent-endpoint", &server.endpoint()]).start();
    while server.request_count() < 2 {
        assert!(started.elapsed() < Duration::from_secs(20), "the second case never began");
        std::thread::sleep(Duration::from_millis(10));
    }
    running.interrupt();
    let output = running.wait().expect("ends at once");
    assert!(started.elapsed() < Duration::from_secs(20));
    assert_eq!(output.code, Some(130), "{}", output.both());
    assert!(output.stdout.contains("1/1 passed | 0 failed | 2 not run"), "{}", output.stdout);
    let result = only_result(&project, "evals/results");
    assert_eq!(result["cases"][0]["id"], "gs-x-001");
    assert_eq!(result["summary"]["notRun"], 2);
}
