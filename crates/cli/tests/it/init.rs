//! `karat init`.

use std::process::Command;

use serde_json::json;

use crate::support::project;

#[test]
fn writes_what_can_be_checked_at_once_and_never_overwrites() {
    let project = project();
    let output = project.run(["init", "--yes", "--tool", "get_news", "--message", "What's new?"]);
    insta::assert_snapshot!(output.filtered(), @"
    exit: 0
    ----- stdout -----
    wrote karat.json
    wrote evals/get-news.golden.json

    Next: put values that only the tool can know into 'responseContains', then
      karat check
      karat run
    ----- stderr -----
    ");
    assert_eq!(project.read_json("karat.json")["agentEndpoint"], "http://localhost:3000/chat");
    assert_eq!(project.read_json("evals/get-news.golden.json")["cases"][0]["input"]["message"], "What's new?");
    assert_eq!(project.run(["check"]).code, Some(0));
    let before = project.read("karat.json");
    let again = project.run(["init", "--yes", "--agent-endpoint", "http://other"]);
    insta::assert_snapshot!(again.filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: karat.json is there already, and is left as it is
    ");
    assert_eq!(project.read("karat.json"), before);
}

#[test]
fn leaves_an_eval_file_that_is_there() {
    let project = project().file("evals/get-weather.golden.json", json!([]));
    assert_eq!(project.run(["init", "--yes"]).code, Some(2));
    assert_eq!(project.read("evals/get-weather.golden.json"), "[]");
    assert!(!project.path().join("karat.json").exists());
    assert_eq!(project.run(["init", "--yes", "--tool", "../x"]).code, Some(2));
}

/// Answers the questions on a real terminal.
#[test]
fn asks_on_a_terminal() {
    let project = project();
    let mut command = Command::new(env!("CARGO_BIN_EXE_karat"));
    command.arg("init").current_dir(project.path()).env("TERM", "xterm").env("NO_COLOR", "1");
    let mut session = rexpect::session::spawn_command(command, Some(20_000)).expect("a terminal");
    session.exp_string("Your agent's URL:").unwrap();
    session.send_line("http://localhost:4000/ask").unwrap();
    session.exp_string("The first tool to test:").unwrap();
    session.send_line("get_news").unwrap();
    session.exp_string("A message that should make the agent call it:").unwrap();
    session.send_line("").unwrap();
    session.exp_eof().unwrap();
    assert_eq!(project.read_json("karat.json")["agentEndpoint"], "http://localhost:4000/ask");
    assert!(project.path().join("evals/get-news.golden.json").exists());
}
