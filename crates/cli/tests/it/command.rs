//! An agent that is a program.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{ok_case, only_result, project};

/// Tells whether a process runs that has this word on its command line.
fn is_running(word: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let has_word = |line: Vec<u8>| line.split(|byte| *byte == 0).any(|part| part == word.as_bytes());
    processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok()).any(has_word)
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_program_answers_in_the_projects_folder() {
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
fn a_timeout_ends_the_program_and_what_it_started() {
    let project = project()
        .file("agent.sh", "echo started >&2\nsleep 87001.25 &\nsh -c 'sleep 87002.25; true'\n")
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    let arguments = ["run", "--agent-endpoint", "command:sh agent.sh", "--timeout-ms", "1500"];
    let running = project.command(arguments).start();
    wait_until("grandchildren are started", || is_running("87001.25") && is_running("87002.25"));
    let output = running.wait().expect("ends after the timeout");
    assert_eq!(output.code, Some(1), "{}", output.both());
    assert!(output.stdout.contains("→ timeout"), "{}", output.stdout);
    wait_until("nothing is left", || !is_running("87001.25") && !is_running("87002.25"));
}

#[test]
fn an_interruption_ends_the_program_and_what_it_started() {
    let project = project()
        .file("agent.sh", "sh -c 'sleep 87003.25; true'\n")
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    let running = project.command(["run", "--agent-endpoint", "command:sh agent.sh"]).start();
    wait_until("the grandchild is started", || is_running("87003.25"));
    running.interrupt();
    assert_eq!(running.wait().expect("ends at once").code, Some(130));
    wait_until("nothing is left", || !is_running("87003.25"));
}

#[test]
fn secrets_on_the_command_line_are_masked() {
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
fn what_is_no_program_is_said_before_anything_runs() {
    let project = project().file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    insta::assert_snapshot!(project.run(["run", "--agent-endpoint", "command:bin/agent --fast"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: there is no program 'bin/agent'
    ");
    project.write("agent.py", "print('{}')");
    insta::assert_snapshot!(project.run(["run", "--agent-endpoint", "command:agent.py --fast"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: there is no program 'agent.py' on the PATH
    hint: for the file in the project's root write command:./agent.py
    ");
    // A file that is called like a program is in nobody's way.
    project.write("true", "");
    assert_eq!(project.run(["run", "--agent-endpoint", "command:true"]).code, Some(3));
    insta::assert_snapshot!(project.run(["run", "--agent-endpoint", "command:"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: 'command:' names no program
    ");
}
