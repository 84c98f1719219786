//! `karat init`.

use std::process::Command;

use karat_testkit::litellm::{KEY, Litellm};
use serde_json::json;

use crate::support::project;

#[test]
fn uses_the_metadata_of_an_existing_tool() {
    let tools = json!([{"name": "get_news", "description": "Tells the news.", "version": "1.2.0"}, {"name": "other"}]);
    let project = project().file("tools.json", tools);
    project.run(["init", "--yes", "--agent-endpoint", "openai:m", "--tool", "get_news"]);
    let metadata = json!({
        "toolName": "get_news", "tier": "golden", "toolVersion": "1.2.0", "descriptionHash": "ba0605b8b733", "registrySize": 2,
    });
    assert_eq!(project.read_json("evals/get-news.golden.json")["metadata"], metadata);
    assert_eq!(project.run(["coverage", "--require=fresh"]).code, Some(0));
}

#[test]
fn writes_valid_files_and_never_overwrites() {
    let project = project();
    let output = project.run(["init", "--yes", "--tool", "get_news", "--message", "What's new?"]);
    insta::assert_snapshot!(output.filtered(), @"
    exit: 0
    ----- stdout -----
    wrote karat.json
    wrote evals/get-news.golden.json

    next: in 'responseContains', add values that only the tool can return, then
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
    error: karat.json already exists
    hint: remove it first, or pass another folder
    ");
    assert_eq!(project.read("karat.json"), before);
}

#[test]
fn prints_the_next_steps() {
    let project = project().file("an app/tools/tools.exports.ts", "export const tools = [];");
    insta::assert_snapshot!(project.run(["init", "--yes", "an app"]).filtered(), @"
    exit: 0
    ----- stdout -----
    wrote an app/karat.json
    wrote an app/evals/get-weather.golden.json

    next: in 'responseContains', add values that only the tool can return, then
      cd 'an app'
      karat tools
      karat check
      karat run
      karat coverage
    ----- stderr -----
    ");
}

#[test]
fn keeps_an_existing_eval_file() {
    let project = project().file("evals/get-weather.golden.json", json!([]));
    assert_eq!(project.run(["init", "--yes"]).code, Some(2));
    assert_eq!(project.read("evals/get-weather.golden.json"), "[]");
    assert!(!project.path().join("karat.json").exists());
    assert_eq!(project.run(["init", "--yes", "--tool", "../x"]).code, Some(2));
}

#[test]
fn a_model_project_gets_tools_and_stubs() {
    let project = project();
    let init = ["init", "--yes", "--agent-endpoint", "anthropic:claude-sonnet-4-5"];
    insta::assert_snapshot!(project.run(init).filtered(), @"
    exit: 0
    ----- stdout -----
    wrote karat.json
    wrote evals/get-weather.golden.json
    wrote tools.json

    next: describe the tool in tools.json,
    add its result to 'stubs', and the values that the response must contain to 'responseContains',
    set ANTHROPIC_API_KEY (in the environment or in .env), then
      karat tools
      karat check
      karat run
      karat coverage
    ----- stderr -----
    ");
    assert_eq!(project.read_json("karat.json")["toolRegistryPath"], "tools.json");
    assert_eq!(project.read_json("tools.json")["tools"][0]["name"], "get_weather");
    let case = &project.read_json("evals/get-weather.golden.json")["cases"][0];
    assert!(case["stubs"]["get_weather"].is_object(), "{case}");
    // The findings match the printed next steps.
    let checked = project.run(["check"]);
    assert_eq!(checked.code, Some(0), "{}", checked.both());
    let expected = ["few-proof-values", "description-trigger", "0 errors, 2 warnings"];
    let has_all = expected.iter().all(|text| checked.stdout.contains(text));
    assert!(has_all, "{}", checked.both());
}

#[test]
fn keeps_existing_tools() {
    let project = project().file("tools.json", json!([{"name": "mine"}]));
    let output = project.run(["init", "--yes", "--agent-endpoint", "openai-compatible:m", "--tool", "mine"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stdout.contains("set OPENAI_COMPATIBLE_BASE_URL (in"), "{}", output.stdout);
    assert!(!output.stdout.contains("wrote tools.json"), "{}", output.stdout);
    assert_eq!(project.read_json("tools.json"), json!([{"name": "mine"}]));
    assert_eq!(project.run(["init", "new", "--yes", "--agent-endpoint", "openai:"]).code, Some(2));
    assert!(!project.path().join("new").exists());
}

/// A model that follows instructions passes the generated case.
#[test]
#[ignore = "needs litellm"]
fn the_generated_case_passes_with_a_model() {
    let proxy = Litellm::shared();
    let project = project().env("OPENAI_BASE_URL", proxy.openai_base()).env("OPENAI_API_KEY", KEY);
    project.run(["init", "--yes", "--agent-endpoint", "openai:obeys", "--message", "get_weather {}"]);
    let output = project.run(["run"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
}

#[test]
fn prompts_on_a_terminal() {
    let project = project();
    let mut command = Command::new(env!("CARGO_BIN_EXE_karat"));
    command.arg("init").current_dir(project.path()).env("TERM", "xterm").env("NO_COLOR", "1");
    let mut session = rexpect::session::spawn_command(command, Some(20_000)).expect("pseudo-terminal starts");
    session.exp_string("Agent (a URL, openai:MODEL").unwrap();
    session.send_line("http://localhost:4000/ask").unwrap();
    session.exp_string("First tool to test:").unwrap();
    session.send_line("get_news").unwrap();
    session.exp_string("Message that should make the agent call it:").unwrap();
    session.send_line("").unwrap();
    session.exp_eof().unwrap();
    assert_eq!(project.read_json("karat.json")["agentEndpoint"], "http://localhost:4000/ask");
    assert!(project.path().join("evals/get-news.golden.json").exists());
}
