//! The tool registry from Python modules, source files, JSON and commands.

use std::time::{Duration, Instant};

use karat_testkit::project::TempProject;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{case, project};

/// Creates a project whose only case calls `look`.
fn project_with_config(config: &Value) -> TempProject {
    let calls = case("gs-x-001", "hi", json!({"toolsCalled": ["look"], "responseContains": ["a", "b"]}));
    project().file("karat.json", config).file("evals/x.golden.json", json!([calls]))
}

const TOOLS: &str = r#"{"tools": [{"name": "look", "description": "Looks."}]}"#;

fn shell_registry(script: &str) -> Value {
    json!({"toolRegistry": {"command": ["sh", "-c", script]}})
}

#[test]
fn reads_a_python_module() {
    let project = project_with_config(&json!({"toolRegistryPath": "tools.py"}))
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
fn reads_tools_from_a_command() {
    let project = project_with_config(&shell_registry("cat tools.txt")).file("tools.txt", TOOLS);
    let output = project.run(["check"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    // A flag overrides the config file, whichever key the file has.
    let output = project.run(["check", "--tool-registry", r#"{"command": ["echo", "[{\"name\": \"loook\"}]"]}"#]);
    assert!(output.stdout.contains("loook"), "{}", output.both());
    let other = project.file("tools.json", json!([{"name": "looky"}]));
    let output = other.run(["check", "--tool-registry-path", "tools.json"]);
    assert!(output.stdout.contains("looky"), "{}", output.both());
    let output = other.command(["check"]).env("KARAT_TOOL_REGISTRY_PATH", "tools.json").run();
    assert!(output.stdout.contains("looky"), "{}", output.both());
    let path = project_with_config(&json!({"toolRegistryPath": "mcp:stdio:no-such-program"}));
    let output = path.run(["check", "--tool-registry", r#"{"command": ["echo", "[{\"name\": \"look\"}]"]}"#]);
    assert_eq!(output.code, Some(0), "{}", output.both());
}

#[test]
fn accepts_fields_with_type_names() {
    let calls = json!([{"name": "look", "success": true, "params": {"city": 7}}]);
    let expect = json!({"toolArgsValid": true, "responseContains": ["ok", "done"]});
    let run = |schema: Value| {
        let project =
            project_with_config(&json!({"agentEndpoint": "scripted:agent.json", "toolRegistryPath": "tools.json"}))
                .file("evals/x.golden.json", json!([case("gs-x-001", "hi", expect.clone())]))
                .file("agent.json", json!({"replies": {}, "otherwise": {"response": "ok, done", "toolCalls": calls}}))
                .file("tools.json", json!([{"name": "look", "description": "Looks.", "schema": schema}]));
        (project.run(["run", "--no-store"]), project.run(["check", "--format", "json"]))
    };
    let (run_output, _) = run(json!({"city": "string", "days": "number?"}));
    assert_eq!(run_output.code, Some(1), "{}", run_output.both());
    assert!(run_output.stdout.contains("toolArgsValid:"), "{}", run_output.stdout);
    // A map that cannot be read is not a schema that accepts everything.
    let (run_output, check_output) = run(json!({"city": "where to look"}));
    assert_eq!(run_output.code, Some(3), "{}", run_output.both());
    assert_eq!(check_output.code, Some(1), "{}", check_output.both());
    assert!(check_output.stdout.contains("registry-schema"), "{}", check_output.stdout);
}

#[test]
fn reports_command_failures() {
    let run = |script: &str| project_with_config(&shell_registry(script)).run(["check"]).filtered();
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
    error: cannot list the tools with 'sh': its output cannot be read: not valid
      JSON: key must be a string (line 1, column 3)
    ");
    insta::assert_snapshot!(run("true"), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: cannot list the tools with 'sh': it wrote nothing to stdout
    ");
    let missing = project_with_config(&json!({"toolRegistry": {"command": ["no-such-program"]}})).run(["check"]);
    insta::assert_snapshot!(missing.filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: cannot list the tools with 'no-such-program': program not found
    ");
    let both =
        project_with_config(&json!({"toolRegistry": {"command": ["x"]}, "toolRegistryPath": "y"})).run(["check"]);
    insta::assert_snapshot!(both.filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: karat.json has both 'toolRegistry' and 'toolRegistryPath': keep one
    ");
    let wrong = project_with_config(&json!({"toolRegistry": {"comand": ["x"]}})).run(["check"]);
    insta::assert_snapshot!(wrong.filtered(), @r#"
    exit: 2
    ----- stdout -----
    ----- stderr -----
      × unknown key 'comand'
       ╭─[karat.json:3:3]
     3 │   "comand": [
       ·   ────────
       ╰────
      help: did you mean 'command'?
    "#);
    let empty = project_with_config(&json!({"toolRegistry": {"command": []}})).run(["check"]);
    assert!(empty.stderr.contains("'toolRegistry' must have a 'command'"), "{}", empty.both());
}

#[test]
fn masks_secrets_of_a_command() {
    let project = project_with_config(&json!({
        "toolRegistry": {"command": ["sh", "-c", "echo \"my key is $2 and $OPENAI_API_KEY\" >&2; exit 1", "--api-key", "--api-key", "s3cr3t-v4lue"]}
    }));
    let output = project.command(["check"]).env("OPENAI_API_KEY", "sk-12345678901234").run();
    assert!(output.stderr.contains("my key is"), "{}", output.both());
    assert!(!output.both().contains("s3cr3t-v4lue") && !output.both().contains("sk-1234"), "{}", output.both());
}

#[cfg(target_os = "linux")]
#[test]
fn kills_a_hanging_command_and_its_children() {
    let config =
        json!({"toolRegistry": {"command": ["sh", "-c", "sleep 1000 & echo $! >child; sleep 1000"], "timeoutMs": 300}});
    let project = project_with_config(&config);
    let started = Instant::now();
    let output = project.run(["check"]);
    assert_eq!(output.code, Some(2), "{}", output.both());
    assert!(output.stderr.contains("cannot list the tools with 'sh': timed out after 300 ms"), "{}", output.both());
    assert!(started.elapsed() < Duration::from_secs(20));
    let child = std::fs::read_to_string(project.path().join("child")).unwrap();
    wait_for_exit(child.trim());
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_kills_the_command() {
    let project = project_with_config(&shell_registry("sleep 1000 & echo $! >child; sleep 1000"));
    for verb in ["check", "run"] {
        let running = project.command([verb, "--agent-endpoint", "http://127.0.0.1:9"]).start();
        let path = project.path().join("child");
        let started = Instant::now();
        let child = loop {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            if text.ends_with('\n') {
                break text.trim().to_owned();
            }
            assert!(started.elapsed() < Duration::from_secs(20), "the command did not start");
            std::thread::sleep(Duration::from_millis(10));
        };
        running.interrupt();
        let output = running.wait().expect("karat exits");
        assert_eq!(output.code, Some(130), "{}", output.both());
        wait_for_exit(&child);
        std::fs::remove_file(path).unwrap();
    }
}

#[cfg(target_os = "linux")]
fn wait_for_exit(pid: &str) {
    let started = Instant::now();
    let has_exited = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    while !has_exited() {
        assert!(started.elapsed() < Duration::from_secs(10), "process {pid} is still running");
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
fn validates_arguments_against_a_map_of_fields(#[case] registry: &str) {
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
    let (cases, summary) = output.stdout.split_once("not passed:").expect("a summary");
    let failures: Vec<&str> = cases.split("toolArgsValid: ").skip(1).collect();
    let reasons = [
        r#"/city: 7 is not of type "string""#,
        "Additional properties are not allowed ('country' was unexpected)",
        r#""city" is a required property"#,
    ];
    assert_eq!(failures.len(), reasons.len(), "{}", output.both());
    assert_eq!(summary.matches("toolArgsValid: ").count(), reasons.len(), "{}", output.both());
    for (failure, reason) in failures.iter().zip(reasons) {
        assert!(failure.contains(reason), "{}", output.both());
    }
}
