//! `karat run --watch`.

use std::time::{Duration, Instant};

use karat_testkit::project::{RunningCommand, TempProject};
use serde_json::json;

use crate::support::{case, ok_case, project, project_with_python, script};

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

/// Writes a file, and waits for the next run of a case.
fn write_and_wait(project: &TempProject, running: &RunningCommand, (path, content): (&str, &str), id: &str) {
    let times = running.stdout_so_far().matches(id).count();
    project.write(path, content);
    wait_for(running, id, times + 1);
}

#[test]
fn reruns_cases_affected_by_tables_functions_or_the_registry() {
    let table = |message: &str| format!("name,message\nrow,{message}\n");
    let function = |text: &str| format!("def eval_tone(trace):\n    return True, '{text}'\n");
    let registry = |description: &str| json!([{"name": "t", "description": description}]).to_string();
    let mut with_table = ok_case("gs-x-001", "{{row:message}}");
    with_table["each"] = json!({"file": "../data/rows.csv"});
    let project = project_with_python()
        .file("karat.json", json!({"agentEndpoint": "scripted:a.json", "toolRegistryPath": "tools.json"}))
        .file("a.json", script(&[("m", "ok"), ("n", "ok")]))
        .file("tools.json", registry("Fetches the time."))
        .file("data/rows.csv", table("m"))
        .file("evals/functions/tone.py", function("a"))
        .file("evals/x.golden.json", json!([with_table]))
        .file("evals/y.golden.json", json!([case("gs-y-001", "m", json!({"evals": ["eval_tone"]}))]))
        .file("evals/z.golden.json", json!([ok_case("gs-z-001", "m")]));
    let running = project.command(["run", "--watch", "--no-store"]).start();
    let counts = || ["gs-x-001", "gs-y-001", "gs-z-001"].map(|id| running.stdout_so_far().matches(id).count());
    wait_for(&running, "3 suites: 3/3 passed", 1);
    assert_eq!(counts(), [1, 1, 1]);
    write_and_wait(&project, &running, ("data/rows.csv", &table("n")), "gs-x-001");
    assert_eq!(counts(), [2, 1, 1]);
    write_and_wait(&project, &running, ("evals/functions/tone.py", &function("other")), "gs-y-001");
    assert_eq!(counts(), [2, 2, 1]);
    write_and_wait(&project, &running, ("tools.json", &registry("Fetches the date.")), "gs-z-001");
    assert_eq!(counts(), [3, 3, 2]);
    // The script of the agent is a part of the settings.
    write_and_wait(&project, &running, ("a.json", &script(&[("m", "ok!"), ("n", "ok!")]).to_string()), "gs-z-001");
    running.interrupt();
    assert_eq!(running.wait().expect("karat exits").code, Some(130));
}

#[test]
fn watches_the_configuration_and_the_files_it_references() {
    let config = |prompt: &str| json!({"agentEndpoint": "scripted:a.json", "systemPromptPath": prompt}).to_string();
    let project = project()
        .file("other.json", config("prompt.md"))
        .file("prompt.md", "Be brief.")
        .file("next.md", "Be polite.")
        .file("a.json", script(&[("m", "ok")]))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    let running = project.command(["run", "--watch", "--no-store", "--config", "other.json"]).start();
    wait_for(&running, "gs-x-001", 1);
    write_and_wait(&project, &running, ("prompt.md", "Be very brief."), "gs-x-001");
    write_and_wait(&project, &running, ("other.json", &config("next.md")), "gs-x-001");
    // The new prompt is watched too.
    write_and_wait(&project, &running, ("next.md", "Be very polite."), "gs-x-001");
    running.interrupt();
    assert_eq!(running.wait().expect("karat exits").code, Some(130));
}

#[test]
fn a_change_outside_the_selection_is_not_an_error() {
    let mut tagged = ok_case("gs-x-001", "m");
    tagged["tags"] = json!(["smoke"]);
    let project = project()
        .file("karat.json", json!({"agentEndpoint": "scripted:a.json"}))
        .file("a.json", script(&[("m", "ok")]))
        .file("evals/x.golden.json", json!([tagged]))
        .file("evals/y.golden.json", json!([ok_case("gs-y-001", "m")]));
    let running = project.command(["run", "--watch", "--no-store", "--tag", "smoke", "--id", "gs-x-001"]).start();
    wait_for(&running, "1/1 passed", 1);
    project.write("evals/y.golden.json", json!([ok_case("gs-y-002", "m")]));
    let started = Instant::now();
    while !running.stderr_so_far().contains("no selected case changed") {
        assert!(started.elapsed() < Duration::from_secs(20), "{}", running.stderr_so_far());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!running.stderr_so_far().contains("error:"), "{}", running.stderr_so_far());
    tagged["description"] = json!("again");
    project.write("evals/x.golden.json", json!([tagged]));
    wait_for(&running, "1/1 passed", 2);
    running.interrupt();
    assert_eq!(running.wait().expect("karat exits").code, Some(130));
}
