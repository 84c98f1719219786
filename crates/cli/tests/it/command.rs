//! Agents that are programs (`command:`).

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{ok_case, only_result, project};

/// Whether a process with this argument is running.
fn is_running(argument: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let has_argument = |line: Vec<u8>| line.split(|byte| *byte == 0).any(|part| part == argument.as_bytes());
    processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok()).any(has_argument)
}

fn wait_until(condition: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "timed out waiting until {condition}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn runs_the_program_in_the_project_folder() {
    let project = project()
        .file("shop/karat.json", json!({"agentEndpoint": "command:sh bin/agent 'two words'", "outputDir": "results"}))
        .file("shop/bin/agent", "cat > seen.json\necho \"said $1\" >&2\nprintf '{\"response\": \"ok\"}'\n")
        .file("shop/evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    let output = project.run(["run", "shop"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert_eq!(project.read("shop/seen.json"), r#"{"message":"m"}"#);
    let result = only_result(&project, "shop/results");
    assert_eq!(result["agentEndpoint"], "command:sh bin/agent 'two words'");
    assert_eq!(result["cases"][0]["details"]["stderr"], "said two words\n");
}

#[test]
fn a_timeout_kills_the_program_and_its_children() {
    let project = project()
        .file("agent.sh", "echo started >&2\nsleep 87001.25 &\nsh -c 'sleep 87002.25; true'\n")
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    let arguments = ["run", "--agent-endpoint", "command:sh agent.sh", "--timeout-ms", "1500"];
    let running = project.command(arguments).start();
    wait_until("the grandchildren run", || is_running("87001.25") && is_running("87002.25"));
    let output = running.wait().expect("karat exits after the timeout");
    assert_eq!(output.code, Some(1), "{}", output.both());
    assert!(output.stdout.contains("→ timeout"), "{}", output.stdout);
    wait_until("all processes have exited", || !is_running("87001.25") && !is_running("87002.25"));
}

#[test]
fn an_interrupt_kills_the_program_and_its_children() {
    let project = project()
        .file("agent.sh", "sh -c 'sleep 87003.25; true'\n")
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    let running = project.command(["run", "--agent-endpoint", "command:sh agent.sh"]).start();
    wait_until("the grandchild runs", || is_running("87003.25"));
    running.interrupt();
    assert_eq!(running.wait().expect("karat exits").code, Some(130));
    wait_until("all processes have exited", || !is_running("87003.25"));
}

#[test]
fn masks_secrets_on_the_command_line() {
    let agent =
        "echo \"$@\" >&2\ncase \"$(cat)\" in *'\"n\"'*) exit 7;; esac\nprintf '{\"response\": \"%s\"}' \"$*\"\n";
    let project = project()
        .file("agent.sh", agent)
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "m"), ok_case("gs-x-002", "n")]));
    let command = "command:sh agent.sh --api-key hunter2-one --token=hunter2-two SECRET=hunter2-three --plain visible";
    let output = project.run(["run", "--agent-endpoint", command, "--output-dir", "results"]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    assert!(output.stdout.contains("exit status 7; its stderr: --api-key ***"), "{}", output.stdout);
    let file = std::fs::read_to_string(&project.files_in("results", ".json")[0]).unwrap();
    assert!(file.contains("--plain visible"), "{file}");
    for text in [output.both(), file] {
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn rejects_invalid_commands_before_the_run() {
    let project = project().file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    insta::assert_snapshot!(project.run(["run", "--agent-endpoint", "command:bin/agent --fast"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: program 'bin/agent' not found
    ");
    project.write("agent.py", "print('{}')");
    insta::assert_snapshot!(project.run(["run", "--agent-endpoint", "command:agent.py --fast"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: program 'agent.py' not found on the PATH
    hint: use command:./agent.py for the file in the project's root
    ");
    // A file of the project does not shadow a program in PATH.
    project.write("true", "");
    assert_eq!(project.run(["run", "--agent-endpoint", "command:true"]).code, Some(3));
    insta::assert_snapshot!(project.run(["run", "--agent-endpoint", "command:"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: missing program after 'command:'
    ");
}
