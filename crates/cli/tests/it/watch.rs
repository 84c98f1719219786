//! `karat run --watch`.

use std::time::{Duration, Instant};

use karat_testkit::project::RunningCommand;
use serde_json::json;

use crate::support::{ok_case, project, script};

/// Waits until stdout contains a text this often.
fn wait_for(running: &RunningCommand, text: &str, times: usize) {
    let started = Instant::now();
    while running.stdout_so_far().matches(text).count() < times {
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "{text} is not there {times} times: {}{}",
            running.stdout_so_far(),
            running.stderr_so_far()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn reruns_only_the_changed_file_until_interrupted() {
    let project = project()
        .file("karat.json", json!({"agentEndpoint": "scripted:a.json"}))
        .file("a.json", script(&[("m", "ok")]))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]))
        .file("evals/y.golden.json", json!([ok_case("gs-y-001", "m")]));
    let running = project.command(["run", "--watch", "--no-store"]).start();
    wait_for(&running, "2 suites: 2/2 passed", 1);
    project.write("evals/x.golden.json", json!([ok_case("gs-x-001", "m"), ok_case("gs-x-002", "m")]));
    wait_for(&running, "gs-x-002", 1);
    assert_eq!(running.stdout_so_far().matches("gs-y-001").count(), 1, "{}", running.stdout_so_far());
    // A broken file is reported, and the watch goes on.
    project.write("evals/x.golden.json", "[");
    std::thread::sleep(Duration::from_secs(1));
    project.write("evals/x.golden.json", json!([ok_case("gs-x-003", "m")]));
    wait_for(&running, "gs-x-003", 1);
    // The settings touch everything.
    project.write("karat.json", json!({"agentEndpoint": "scripted:a.json", "trials": 2}));
    wait_for(&running, "gs-y-001", 2);
    running.interrupt();
    let output = running.wait().expect("karat exits");
    assert_eq!(output.code, Some(130), "{}", output.both());
    assert!(output.stderr.contains("changed: evals/x.golden.json"), "{}", output.stderr);
}
