//! Where the registry comes from: Python modules, and a program of the user's own.

use std::time::{Duration, Instant};

use karat_testkit::project::TempProject;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{case, project};

/// A project whose only case calls `look`.
fn with_config(config: &Value) -> TempProject {
    let calls = case("gs-x-001", "hi", json!({"toolsCalled": ["look"], "responseContains": ["a", "b"]}));
    project().file("karat.json", config).file("evals/x.golden.json", json!([calls]))
}

const TOOLS: &str = r#"{"tools": [{"name": "look", "description": "Looks."}]}"#;

fn shell(script: &str) -> Value {
    json!({"toolRegistry": {"command": ["sh", "-c", script]}})
}

#[test]
fn a_python_module_is_the_registry() {
    let project = with_config(&json!({"toolRegistryPath": "tools.py"}))
        .file("tools.py", "@tool\ndef look(where: str):\n    'Looks around.'\n")
        .file("other.py", "@tool\ndef loook(where: str):\n    'Looks around.'\n");
    let output = project.run(["check"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let output = project.run(["check", "--tool-registry-path", "other.py"]);
    assert_eq!(output.code, Some(1), "{}", output.both());
    assert!(output.stdout.contains("loook"), "{}", output.both());
    let output = project.run(["check", "--tool-registry-path", "evals/x.txt"]);
    assert_eq!(output.code, Some(2), "{}", output.both());
}

#[test]
fn a_program_lists_the_tools() {
    let listed = with_config(&shell("cat tools.txt")).file("tools.txt", TOOLS);
    let output = listed.run(["check"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    // A flag beats the file, whichever of the two it is.
    let output = listed.run(["check", "--tool-registry", r#"{"command": ["echo", "[{\"name\": \"loook\"}]"]}"#]);
    assert!(output.stdout.contains("loook"), "{}", output.both());
    let other = listed.file("tools.json", json!([{"name": "looky"}]));
    let output = other.run(["check", "--tool-registry-path", "tools.json"]);
    assert!(output.stdout.contains("looky"), "{}", output.both());
    let output = other.command(["check"]).env("KARAT_TOOL_REGISTRY_PATH", "tools.json").run();
    assert!(output.stdout.contains("looky"), "{}", output.both());
    let path = with_config(&json!({"toolRegistryPath": "mcp:stdio:no-such-program"}));
    let output = path.run(["check", "--tool-registry", r#"{"command": ["echo", "[{\"name\": \"look\"}]"]}"#]);
    assert_eq!(output.code, Some(0), "{}", output.both());
}

#[test]
fn what_is_wrong_with_a_program_is_said() {
    let run = |script: &str| with_config(&shell(script)).run(["check"]).filtered();
    insta::assert_snapshot!(run("echo one >&2; echo two >&2; exit 3"), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: cannot list the tools with 'sh': it ended with exit status 3
      one
      two
    ");
    insta::assert_snapshot!(run("echo '[{]'"), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: cannot list the tools with 'sh': its output cannot be read: not JSON: key must be a string (line 1, column 3)
    ");
    insta::assert_snapshot!(run("true"), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: cannot list the tools with 'sh': it wrote nothing to stdout
    ");
    let missing = with_config(&json!({"toolRegistry": {"command": ["no-such-program"]}})).run(["check"]);
    insta::assert_snapshot!(missing.filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: cannot list the tools with 'no-such-program': program not found
    ");
    let both = with_config(&json!({"toolRegistry": {"command": ["x"]}, "toolRegistryPath": "y"})).run(["check"]);
    insta::assert_snapshot!(both.filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: karat.json has both 'toolRegistry' and 'toolRegistryPath': keep one
    ");
    let wrong = with_config(&json!({"toolRegistry": {"comand": ["x"]}})).run(["check"]);
    insta::assert_snapshot!(wrong.filtered(), @r#"
    exit: 2
    ----- stdout -----
    ----- stderr -----
      × unknown key 'comand'
       ╭─[[DIR]/karat.json:3:3]
     3 │   "comand": [
       ·   ────────
       ╰────
      help: did you mean 'command'?
    "#);
    let empty = with_config(&json!({"toolRegistry": {"command": []}})).run(["check"]);
    assert!(empty.stderr.contains("'toolRegistry' must have a 'command'"), "{}", empty.both());
}

#[test]
fn secrets_of_a_program_are_masked() {
    let project = with_config(&json!({
        "toolRegistry": {"command": ["sh", "-c", "echo \"my key is $2 and $OPENAI_API_KEY\" >&2; exit 1", "--api-key", "--api-key", "s3cr3t-v4lue"]}
    }));
    let output = project.command(["check"]).env("OPENAI_API_KEY", "sk-12345678901234").run();
    assert!(output.stderr.contains("my key is"), "{}", output.both());
    assert!(!output.both().contains("s3cr3t-v4lue") && !output.both().contains("sk-1234"), "{}", output.both());
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_that_hangs_is_ended_with_all_it_started() {
    let config =
        json!({"toolRegistry": {"command": ["sh", "-c", "sleep 1000 & echo $! >child; sleep 1000"], "timeoutMs": 300}});
    let project = with_config(&config);
    let started = Instant::now();
    let output = project.run(["check"]);
    assert_eq!(output.code, Some(2), "{}", output.both());
    assert!(output.stderr.contains("cannot list the tools with 'sh': timed out after 300 ms"), "{}", output.both());
    assert!(started.elapsed() < Duration::from_secs(20));
    let child = std::fs::read_to_string(project.path().join("child")).unwrap();
    wait_until_gone(child.trim());
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_ends_the_program() {
    let project = with_config(&shell("sleep 1000 & echo $! >child; sleep 1000"));
    for verb in ["check", "run"] {
        let running = project.command([verb, "--agent-endpoint", "http://127.0.0.1:9"]).start();
        let path = project.path().join("child");
        let started = Instant::now();
        let child = loop {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            if text.ends_with('\n') {
                break text.trim().to_owned();
            }
            assert!(started.elapsed() < Duration::from_secs(20), "the program never began");
            std::thread::sleep(Duration::from_millis(10));
        };
        running.interrupt();
        let output = running.wait().expect("ends at once");
        assert_eq!(output.code, Some(130), "{}", output.both());
        wait_until_gone(&child);
        std::fs::remove_file(path).unwrap();
    }
}

#[cfg(target_os = "linux")]
fn wait_until_gone(pid: &str) {
    let started = Instant::now();
    let is_gone = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    while !is_gone() {
        assert!(started.elapsed() < Duration::from_secs(10), "{pid} is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A tool whose schema is a map of fields.
const FIELD_MAP: &str = "
export const getWeather = {
  name: 'get_weather',
  description: 'Fetches the weather.',
  schema: { city: { type: 'string' }, days: { type: 'number', optional: true } },
  execute: async () => null,
};
";

#[rstest]
#[case::source("tools/tools.exports.ts")]
#[case::json("tools.json")]
fn arguments_are_checked_against_a_map_of_fields(#[case] registry: &str) {
    let schema = json!({"city": {"type": "string"}, "days": {"type": "number", "optional": true}});
    let arguments = [
        ("all", json!({"city": "Paris", "days": 2})),
        ("without the optional one", json!({"city": "Paris"})),
        ("wrong type", json!({"city": 7})),
        ("unknown key", json!({"city": "Paris", "country": "FR"})),
        ("without the required one", json!({"days": 2})),
    ];
    let expect = json!({"toolArgsValid": true, "toolsCalled": ["get_weather"], "responseContains": ["ok", "done"]});
    let mut replies = serde_json::Map::new();
    let mut cases = Vec::new();
    for (number, (message, params)) in arguments.into_iter().enumerate() {
        let calls = json!([{"name": "get_weather", "success": true, "params": params}]);
        replies.insert(message.to_owned(), json!({"response": "ok, done", "toolCalls": calls}));
        cases.push(case(&format!("gs-x-{number:03}"), message, expect.clone()));
    }
    let project = project()
        .file("karat.json", json!({"agentEndpoint": "scripted:agent.json", "toolRegistryPath": registry}))
        .file("tools/tools.exports.ts", FIELD_MAP)
        .file("tools.json", json!([{"name": "get_weather", "description": "Fetches the weather.", "schema": schema}]))
        .file("agent.json", json!({"replies": replies}))
        .file("evals/x.golden.json", json!(cases));
    let output = project.run(["run", "--no-store", "--ascii"]);
    assert_eq!(output.code, Some(1), "{}", output.both());
    let failures: Vec<&str> = output.stdout.split("toolArgsValid: ").skip(1).collect();
    let reasons = [
        r#"/city: 7 is not of type "string""#,
        "Additional properties are not allowed ('country' was unexpected)",
        r#""city" is a required property"#,
    ];
    assert_eq!(failures.len(), reasons.len(), "{}", output.both());
    for (failure, reason) in failures.iter().zip(reasons) {
        assert!(failure.contains(reason), "{}", output.both());
    }
}
