//! Bad input leads to a clear error or a correct result, never to a panic or a partially written file.

use std::io::Write;
use std::time::Duration;

use karat_testkit::project::TempProject;
use karat_testkit::server::ScriptedServer;
use serde_json::{Value, json};

use crate::support::{ok_case, only_result, project, script};

fn assert_no_leftovers(project: &TempProject, folder: &str) {
    let entries = std::fs::read_dir(project.path().join(folder)).unwrap();
    let paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    assert!(paths.iter().all(|path| path.extension().is_some_and(|extension| extension == "json")), "{paths:?}");
}

#[test]
fn rejects_oversized_endless_truncated_and_binary_replies() {
    let server = ScriptedServer::start(json!({
        "huge": {"huge": 50 * 1024 * 1024},
        "endless": {"endless": true},
        "truncated": {"raw": "{\"response\": \"o", "truncated": true},
        "binary": {"rawBytes": b"{\"response\": \"\xff\"}".to_vec()},
        "m": {"response": "ok"},
    }));
    let messages = ["huge", "endless", "truncated", "binary", "m"];
    let cases: Vec<Value> =
        messages.iter().zip(1..).map(|(message, number)| ok_case(&format!("gs-x-{number:03}"), message)).collect();
    let project = project().file("evals/x.golden.json", json!(cases));
    let output = project.run(["run", "--agent-endpoint", &server.endpoint(), "--timeout-ms", "5000"]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    let result = only_result(&project, "evals/results");
    let errors: Vec<&str> =
        result["cases"].as_array().unwrap().iter().map(|case| case["error"].as_str().unwrap_or_default()).collect();
    assert!(errors[0].contains("larger than 10485760 bytes"), "{errors:?}");
    assert!(errors[1].contains("larger than") || errors[1] == "timeout", "{errors:?}");
    assert!(!errors[2].is_empty(), "{errors:?}");
    assert!(errors[3].contains("not valid JSON"), "{errors:?}");
    assert_eq!(errors[4], "");
    assert_no_leftovers(&project, "evals/results");
}

#[test]
fn checks_the_output_folder_before_sending_requests() {
    let server = ScriptedServer::start(json!({"*": {"response": "ok"}}));
    let project = project().file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")])).file("taken", "a file");
    let output = project.run(["run", "--agent-endpoint", &server.endpoint(), "--output-dir", "taken/results"]);
    assert_eq!(output.code, Some(2), "{}", output.both());
    assert!(output.stderr.contains("cannot write results to"), "{}", output.stderr);
    assert_eq!(server.request_count(), 0);
}

#[cfg(unix)]
#[test]
fn rejects_pipes_and_devices() {
    let project =
        project().file("a.json", script(&[("m", "ok")])).file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    let make_pipe = |name: &str| {
        let made = std::process::Command::new("mkfifo").arg(project.path().join(name)).status().unwrap();
        assert!(made.success(), "{name}");
    };
    // A pipe that is not named like an eval file is skipped.
    make_pipe("evals/pipe.json");
    let run = |arguments: &[&str]| {
        project.run(["run", "--no-store", "--agent-endpoint", "scripted:a.json"].iter().chain(arguments).copied())
    };
    assert_eq!(run(&[]).code, Some(0), "{}", run(&[]).both());
    let device = run(&["--config", "/dev/zero"]);
    assert_eq!(device.code, Some(2), "{}", device.both());
    assert!(device.stderr.contains("cannot read the configuration /dev/zero: not a regular file"), "{}", device.stderr);
    let explicit = run(&["evals/pipe.json"]);
    assert_eq!(explicit.code, Some(2), "{}", explicit.both());
    assert!(explicit.stderr.contains("evals/pipe.json is not a regular file"), "{}", explicit.stderr);
    make_pipe("evals/y.golden.json");
    let discovered = run(&[]);
    assert_eq!(discovered.code, Some(2), "{}", discovered.both());
    assert!(discovered.stderr.contains("cannot read evals/y.golden.json: not a regular file"), "{}", discovered.stderr);
}

/// Writes to `/dev/full` fail as on a full disk.
#[test]
fn reports_a_full_disk() {
    let project =
        project().file("a.json", script(&[("m", "ok")])).file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    let output = project.run(["run", "--agent-endpoint", "scripted:a.json", "--report", "junit=/dev/full"]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    assert!(output.stderr.contains("cannot write the JUnit report"), "{}", output.stderr);
    assert_eq!(only_result(&project, "evals/results")["summary"]["passed"], 1);
}

#[test]
fn concurrent_runs_write_separate_results() {
    let server = ScriptedServer::start(json!({"*": {"response": "ok", "delayMs": 50}}));
    let cases: Vec<Value> = (1..=10).map(|number| ok_case(&format!("gs-x-{number:03}"), "m")).collect();
    let project = project().file("evals/x.golden.json", json!(cases));
    let start = || project.command(["run", "--agent-endpoint", &server.endpoint(), "-j", "4"]).start();
    let running = [start(), start(), start()];
    for run in running {
        assert_eq!(run.wait().expect("karat exits").code, Some(0));
    }
    let files = project.files_in("evals/results", ".json");
    assert_eq!(files.len(), 3);
    for file in files {
        let result: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        assert_eq!(result["summary"]["passed"], 10);
    }
    assert_no_leftovers(&project, "evals/results");
}

#[test]
fn rejects_invalid_eval_files_with_their_location() {
    let project = project();
    for bytes in [&b"\xff\xfe[]"[..], b"[{\"id\": \"\xff\"}]", b"", b"null", b"{}", b"[1]", b"[[[[[["] {
        std::fs::create_dir_all(project.path().join("evals")).unwrap();
        std::fs::write(project.path().join("evals/x.golden.json"), bytes).unwrap();
        let output = project.run(["run", "--agent-endpoint", "http://127.0.0.1:9"]);
        assert_eq!(output.code, Some(2), "{bytes:?}: {}", output.both());
        assert!(output.stderr.contains("evals/x.golden.json:"), "{bytes:?}: {}", output.stderr);
        assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
    }
}

#[test]
fn a_tool_name_cannot_escape_the_output_folder() {
    let project = project().file("a.json", script(&[("m", "ok")])).file(
        "evals/x.golden.json",
        json!({"metadata": {"toolName": "../../etc/evil"}, "cases": [ok_case("gs-x-001", "m")]}),
    );
    assert_eq!(project.run(["run", "--agent-endpoint", "scripted:a.json", "--output-dir", "results"]).code, Some(0));
    assert_eq!(only_result(&project, "results")["toolName"], "../../etc/evil");
}

#[test]
fn writes_the_result_when_stdout_is_closed() {
    let project =
        project().file("a.json", script(&[("m", "ok")])).file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    let command = format!("{} run --agent-endpoint scripted:a.json | true", env!("CARGO_BIN_EXE_karat"));
    let status = std::process::Command::new("sh").args(["-c", &command]).current_dir(project.path()).output().unwrap();
    assert!(!String::from_utf8_lossy(&status.stderr).contains("panicked"));
    assert_eq!(only_result(&project, "evals/results")["summary"]["passed"], 1);
}

#[test]
#[ignore = "slow: 200 MB"]
fn runs_a_200_mb_eval_file() {
    let project = project().file("a.json", json!({"replies": {}, "otherwise": {"response": "ok"}}));
    std::fs::create_dir_all(project.path().join("evals")).unwrap();
    let mut file = std::io::BufWriter::new(std::fs::File::create(project.path().join("evals/x.golden.json")).unwrap());
    let padding = "x".repeat(1_000_000);
    write!(file, "[").unwrap();
    for number in 1..=200 {
        let comma = if number == 1 { "" } else { "," };
        let case = json!({"id": format!("gs-x-{number:03}"), "description": padding, "input": {"message": "m"}, "expect": {"responseContains": ["ok"]}});
        write!(file, "{comma}{case}").unwrap();
    }
    write!(file, "]").unwrap();
    drop(file);
    let arguments = ["run", "--quiet", "--agent-endpoint", "scripted:a.json"];
    let output = project.command(arguments).timeout(Duration::from_mins(2)).run();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stdout.contains("200/200 passed"), "{}", output.stdout);

    // A syntax error at the end of the only line: the message must not quote the whole line.
    let path = project.path().join("evals/x.golden.json");
    let length = std::fs::metadata(&path).unwrap().len();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(length - 2).unwrap();
    let output = project.command(arguments).timeout(Duration::from_mins(2)).run();
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.len() < 2_000, "{} bytes on stderr", output.stderr.len());
}

#[test]
#[ignore = "slow: 100,000 cases"]
fn runs_100_000_cases() {
    let project = project().file("a.json", json!({"replies": {}, "otherwise": {"response": "ok"}}));
    let cases: Vec<Value> = (1..=100_000).map(|number| ok_case(&format!("gs-x-{number:06}"), "m")).collect();
    project.write("evals/x.golden.json", json!(cases));
    let output = project
        .command(["run", "--quiet", "-j", "16", "--agent-endpoint", "scripted:a.json"])
        .timeout(Duration::from_mins(2))
        .run();
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let result = only_result(&project, "evals/results");
    let ids: Vec<&str> = result["cases"].as_array().unwrap().iter().map(|case| case["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 100_000);
    assert!(ids.is_sorted());
}
