//! `karat init`.

use std::process::Command;

use karat_testkit::litellm::{KEY, Litellm};
use karat_testkit::mcp::shell_server;
use karat_testkit::project::TempProject;
use karat_testkit::server::ScriptedServer;
use serde_json::{Value, json};

use crate::support::project;

/// A port on which no program listens.
const CLOSED: [&str; 2] = ["--ports", "1"];

/// A shop with a tool that has trigger phrases.
fn shop_tools() -> Value {
    let schema = json!({"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]});
    json!({"tools": [{
        "name": "get_order",
        "description": "Fetches an order with its items. Use when the user asks what they ordered.",
        "inputSchema": schema,
        "triggerPhrases": [
            "What did I order in A100?",
            "Show me order A200",
            "Which items are in order A300?",
            "List everything I bought with A400",
            "Did A500 include a tent?",
        ],
    }]})
}

fn port(server: &ScriptedServer) -> String {
    server.base_url().rsplit_once(':').expect("a port").1.to_owned()
}

/// The steps of README's first run: each works after the one before.
#[test]
fn the_first_run_of_the_readme_works() {
    let call = json!({"name": "get_order", "params": {"order_id": "A100"}, "success": true});
    let server = ScriptedServer::start(json!({"*": {"response": "Two tents and a stove.", "toolCalls": [call]}}));
    let project = project().file("tools.json", shop_tools()).env("GIT_AUTHOR_NAME", "Ada");
    let init = project.run(["init", "--yes", "--ports", &port(&server)]);
    insta::assert_snapshot!(init.filtered(), @r#"
    exit: 0
    ----- stdout -----
    wrote karat.json
    wrote evals/get-order.golden.json
    wrote .gitignore

    next: in 'responseContains', add values that only the tool can return, then
      karat agent try "Hello"
      karat check
      karat forge get_order
      karat run
    ----- stderr -----
    using the agent http://localhost:[PORT]/chat; to use another, pass
      --agent-endpoint
    "#);
    let check = project.run(["check"]);
    assert_eq!(check.code, Some(0), "{}", check.both());
    let forge = project.run(["forge", "get_order", "--approve-all", "--tier", "golden"]);
    assert_eq!(forge.code, Some(0), "{}", forge.both());
    let file = project.read_json("evals/get-order.golden.json");
    assert!(file["cases"].as_array().expect("cases").len() > 1, "{file:#}");
    assert_eq!(project.run(["check"]).code, Some(0));
    let run = project.run(["run"]);
    assert_eq!(run.code, Some(0), "{}", run.both());
    assert!(run.stdout.contains("gs-get-order-001#1"), "a table of rows: {}", run.stdout);
}

/// README shows the steps that the test above takes.
#[test]
fn the_readme_shows_the_first_run() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let (_, section) = readme.split_once("## First run").expect("a section");
    let commands: Vec<&str> =
        section.lines().skip_while(|line| *line != "```sh").skip(1).take_while(|line| *line != "```").collect();
    let verbs: Vec<&str> = commands.iter().filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(verbs, ["init", "check", "forge", "run"]);
}

#[test]
fn uses_the_metadata_of_an_existing_tool() {
    let tools = json!([{"name": "get_news", "description": "Tells the news.", "version": "1.2.0"}, {"name": "other"}]);
    let project = project().file("tools.json", tools);
    let arguments = ["--agent-endpoint", "openai:m", "--tool", "get_news", "--message", "What's new?"];
    project.run(["init", "--yes"].into_iter().chain(arguments));
    let metadata = json!({
        "toolName": "get_news", "tier": "golden", "toolVersion": "1.2.0", "descriptionHash": "ba0605b8b733", "registrySize": 2,
    });
    assert_eq!(project.read_json("evals/get-news.golden.json")["metadata"], metadata);
    assert_eq!(project.run(["coverage", "--require=fresh"]).code, Some(0));
}

#[test]
fn writes_valid_files_and_never_overwrites() {
    let project = project();
    let arguments = ["--agent-endpoint", "http://localhost:4000/ask", "--tool", "get_news", "--message", "What's new?"];
    let output = project.run(["init"].into_iter().chain(arguments));
    insta::assert_snapshot!(output.filtered(), @r#"
    exit: 0
    ----- stdout -----
    wrote karat.json
    wrote evals/get-news.golden.json
    wrote .gitignore

    next: in 'responseContains', add values that only the tool can return, then
      karat agent try "Hello"
      karat check
      karat run
    ----- stderr -----
    "#);
    assert_eq!(project.read_json("karat.json")["agentEndpoint"], "http://localhost:4000/ask");
    assert_eq!(project.read_json("evals/get-news.golden.json")["cases"][0]["input"]["message"], "What's new?");
    assert_eq!(project.read(".gitignore"), ".karat/\nevals/results/\n");
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
fn without_a_terminal_names_all_missing_flags() {
    let project = project().file("tools.json", shop_tools());
    insta::assert_snapshot!(project.run(["init"].into_iter().chain(CLOSED)).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: missing --agent-endpoint, --tool-registry-path, --tool, --message: no
      terminal to prompt on
    hint: found --tool-registry-path tools.json --tool get_order --message 'What did
      I order in A100?'
    hint: pass --yes to use what was found
    ");
    insta::assert_snapshot!(project.run(["init", "--yes"].into_iter().chain(CLOSED)).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: missing --agent-endpoint: nothing suitable was found
    ");
    assert!(!project.path().join("karat.json").exists());
    assert!(!project.path().join(".gitignore").exists());
}

#[test]
fn a_plain_case_names_no_tool() {
    let server = ScriptedServer::start(json!({"*": {"response": "I can help with orders."}}));
    let project = project();
    let init = project.run(["init", "--yes", "--agent-endpoint", &server.endpoint()]);
    assert_eq!(init.code, Some(0), "{}", init.both());
    assert!(!project.read("evals/first.json").contains("tool"), "{}", project.read("evals/first.json"));
    for verb in ["check", "run"] {
        let output = project.run([verb]);
        assert_eq!(output.code, Some(0), "{}", output.both());
    }
}

#[test]
fn finds_tools_in_source_files() {
    let python = "from langchain_core.tools import tool\n\n@tool\ndef get_order(order_id: str) -> str:\n    \"\"\"Fetches an order.\"\"\"\n";
    let typescript = "import { tool } from 'ai';\nimport { z } from 'zod';\nexport const get_order = tool({\n  description: 'Fetches an order.',\n  inputSchema: z.object({ order_id: z.string() }),\n  execute: async () => 'x',\n});\nexport const tools = { get_order };\n";
    for (path, text) in [("agent/main.py", python), ("src/agent.ts", typescript)] {
        let project = project().file(path, text);
        let agent = ["init", "--yes", "--agent-endpoint", "http://localhost:4000/ask"];
        // A description is not a message of a user.
        let refused = project.run(agent);
        assert_eq!(refused.code, Some(2), "{path}: {}", refused.both());
        assert!(refused.stderr.contains("missing --message"), "{}", refused.stderr);
        let output = project.run(agent.into_iter().chain(["--message", "What is in A100?"]));
        assert_eq!(output.code, Some(0), "{path}: {}", output.both());
        assert_eq!(project.read_json("karat.json")["toolRegistryPath"], path);
        let case = &project.read_json("evals/get-order.golden.json")["cases"][0];
        assert_eq!(case["input"]["message"], "What is in A100?");
        assert_eq!(case["expect"]["toolParams"][0]["paramName"], "order_id", "{path}");
        assert_eq!(project.run(["check"]).code, Some(0));
    }
}

#[test]
fn prints_the_next_steps() {
    let project = project().file("an app/src/tools.json", shop_tools());
    let arguments = ["init", "--yes", "an app", "--agent-endpoint", "http://localhost:4000/ask"];
    insta::assert_snapshot!(project.run(arguments).filtered(), @r#"
    exit: 0
    ----- stdout -----
    wrote an app/karat.json
    wrote an app/evals/get-order.golden.json
    wrote an app/.gitignore

    next: in 'responseContains', add values that only the tool can return, then
      cd 'an app'
      karat agent try "Hello"
      karat check
      karat forge get_order
      karat run
    ----- stderr -----
    "#);
    assert_eq!(project.read_json("an app/karat.json")["toolRegistryPath"], "src/tools.json");
}

#[test]
fn keeps_an_existing_eval_file() {
    let project = project().file("evals/get-weather.golden.json", json!([]));
    let arguments = ["init", "--agent-endpoint", "http://localhost:4000/ask", "--message", "Hi", "--tool"];
    let init = |tool: &'static str| project.run(arguments.into_iter().chain([tool]));
    assert_eq!(init("get_weather").code, Some(2));
    assert_eq!(project.read("evals/get-weather.golden.json"), "[]");
    assert!(!project.path().join("karat.json").exists());
    assert_eq!(init("../x").code, Some(2));
}

#[test]
fn a_model_project_gets_tools_and_stubs() {
    let project = project();
    let arguments = ["--agent-endpoint", "anthropic:claude-sonnet-4-5", "--tool", "get_weather", "--message", "Rain?"];
    insta::assert_snapshot!(project.run(["init"].into_iter().chain(arguments)).filtered(), @r#"
    exit: 0
    ----- stdout -----
    wrote karat.json
    wrote evals/get-weather.golden.json
    wrote tools.json
    wrote .gitignore

    next: describe the tool in tools.json,
    add its result to 'stubs',
    and the values that the response must contain to 'responseContains',
    set ANTHROPIC_API_KEY (in the environment or in .env), then
      karat agent try "Hello"
      karat check
      karat forge get_weather
      karat run
    ----- stderr -----
    "#);
    assert_eq!(project.read_json("karat.json")["toolRegistryPath"], "tools.json");
    assert_eq!(project.read_json("tools.json")["tools"][0]["name"], "get_weather");
    let case = &project.read_json("evals/get-weather.golden.json")["cases"][0];
    assert!(case["stubs"]["get_weather"].is_object(), "{case}");
    // The findings match the printed next steps.
    let checked = project.run(["check"]);
    assert_eq!(checked.code, Some(0), "{}", checked.both());
    let expected = ["few-proof-values", "description-trigger", "placeholder-stub", "0 errors, 3 warnings"];
    let has_all = expected.iter().all(|text| checked.stdout.contains(text));
    assert!(has_all, "{}", checked.both());
}

#[test]
fn does_not_ask_for_values_in_the_environment() {
    let project = project()
        .file("tools.json", shop_tools())
        .env("KARAT_AGENT_ENDPOINT", "anthropic:claude-sonnet-4-5")
        .env("ANTHROPIC_API_KEY", "sk-1");
    let output = project.run(["init", "--yes"].into_iter().chain(CLOSED));
    insta::assert_snapshot!(output.filtered(), @r#"
    exit: 0
    ----- stdout -----
    wrote karat.json
    wrote evals/get-order.golden.json
    wrote .gitignore

    next: add its result to 'stubs',
    and the values that the response must contain to 'responseContains', then
      karat agent try "Hello"
      karat check
      karat forge get_order
      karat run
    ----- stderr -----
    using the agent of KARAT_AGENT_ENDPOINT
    "#);
    assert_eq!(project.read_json("karat.json")["agentEndpoint"], "anthropic:claude-sonnet-4-5");
}

#[test]
fn keeps_existing_tools() {
    let project = project().file("tools.json", json!([{"name": "mine"}]));
    let output = project.run(["init", "--yes", "--agent-endpoint", "openai-compatible:m", "--message", "Hello"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stdout.contains("set OPENAI_COMPATIBLE_BASE_URL (in"), "{}", output.stdout);
    assert!(!output.stdout.contains("wrote tools.json"), "{}", output.stdout);
    assert_eq!(project.read_json("tools.json"), json!([{"name": "mine"}]));
    assert!(project.path().join("evals/mine.golden.json").exists());
    assert_eq!(project.run(["init", "new", "--yes", "--agent-endpoint", "openai:"]).code, Some(2));
    assert!(!project.path().join("new").exists());
}

fn mcp_project() -> TempProject {
    let command = shell_server("touch started");
    let server = json!({"type": "stdio", "command": command[0], "args": command[1..]});
    project().file(".vscode/mcp.json", json!({"servers": {"shell": server}}))
}

#[test]
fn starts_mcp_servers_only_if_they_are_specified() {
    let project = mcp_project();
    let agent = ["init", "--yes", "--agent-endpoint", "http://localhost:4000/ask"];
    let output = project.run(agent);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stderr.contains("the MCP servers were not started"), "{}", output.stderr);
    assert!(!project.path().join("started").exists());
    assert!(project.read_json("karat.json")["mcpServers"]["shell"].is_object());
    assert!(project.path().join("evals/first.json").exists());

    let project = mcp_project();
    let message = ["--tool-registry-path", ".vscode/mcp.json", "--message", "Say hello"];
    let output = project.run(agent.into_iter().chain(message));
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert_eq!(project.read_json("evals/hello.golden.json")["metadata"]["toolName"], "hello");
    assert_eq!(project.run(["tools", "hello"]).code, Some(0));
}

/// A model that follows instructions passes the generated case.
#[test]
#[ignore = "needs litellm"]
fn the_generated_case_passes_with_a_model() {
    let proxy = Litellm::shared();
    let project = project().env("OPENAI_BASE_URL", proxy.openai_base()).env("OPENAI_API_KEY", KEY);
    let arguments = ["--tool", "get_weather", "--message", "get_weather {}"];
    project.run(["init", "--agent-endpoint", "openai:obeys"].into_iter().chain(arguments));
    let output = project.run(["run"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
}

#[test]
fn offers_detected_values_at_a_terminal() {
    let server = ScriptedServer::start(json!({"*": {"response": "ok"}}));
    let project = project().file("tools.json", shop_tools());
    let mut command = Command::new(env!("CARGO_BIN_EXE_karat"));
    command.args(["init", "--ports", &port(&server)]).current_dir(project.path());
    command.env("TERM", "xterm").env("NO_COLOR", "1");
    let mut session = rexpect::session::spawn_command(command, Some(20_000)).expect("pseudo-terminal starts");
    session.exp_string("Agent (a URL, openai:MODEL").unwrap();
    session.send_line("").unwrap();
    session.exp_string("Tools (a file, a folder or an MCP server").unwrap();
    session.exp_string("tools.json (1 tool)").unwrap();
    session.send_line("").unwrap();
    session.exp_string("First tool to test:").unwrap();
    // A mistake is reported, and the question asked again.
    session.send_line("get_ordr").unwrap();
    session.exp_string("did you mean 'get_order'?").unwrap();
    session.exp_string("First tool to test:").unwrap();
    session.send_line("").unwrap();
    session.exp_string("Message that should make the agent call it:").unwrap();
    session.send_line("Which items did I order?").unwrap();
    session.exp_string("Another one").unwrap();
    session.send_line("What is in my parcel?").unwrap();
    session.exp_string("Another one").unwrap();
    session.send_line("").unwrap();
    session.exp_eof().unwrap();
    let config = project.read_json("karat.json");
    assert_eq!(config["agentEndpoint"], format!("http://localhost:{}/chat", port(&server)));
    assert_eq!(config["toolRegistryPath"], "tools.json");
    let case = &project.read_json("evals/get-order.golden.json")["cases"][0];
    assert_eq!(case["each"], json!([{"message": "Which items did I order?"}, {"message": "What is in my parcel?"}]));
}

/// The error of `karat run` for the same agent.
#[test]
fn rejects_an_invalid_agent() {
    for (agent, hint) in [
        ("localhost:8765/chat", "did you mean 'http://localhost:8765/chat'?"),
        ("htp://foo", "did you mean 'http://foo'?"),
    ] {
        let project = project();
        let init = project.run(["init", "--yes", "--agent-endpoint", agent, "--message", "Hello"]);
        assert_eq!(init.code, Some(2), "{}", init.both());
        assert!(!project.path().join("karat.json").exists());
        project.write("karat.json", json!({"agentEndpoint": agent}));
        project.write("evals/first.json", json!([]));
        let check = project.run(["check"]);
        assert_eq!(check.code, Some(2), "{}", check.both());
        for output in [init, check] {
            let stderr = output.unwrapped_stderr();
            assert!(stderr.contains(&format!("'{agent}' is not a valid agent: expected a URL")), "{stderr}");
            assert!(stderr.contains(hint), "{stderr}");
        }
    }
}
