//! MCP servers as the tool registry and for running a model's tool calls.

use karat_testkit::litellm::{KEY, Litellm};
use karat_testkit::mcp::shell_server;
use karat_testkit::project::TempProject;
use karat_testkit::server::ScriptedServer;
use karat_testkit::tools::TestTool;
use serde_json::{Value, json};

use crate::support::{case, only_result, project};

fn project_with_server(more: &Value) -> TempProject {
    let mut config =
        json!({"agentEndpoint": "http://127.0.0.1:9/chat", "mcpServers": {"shell": {"command": shell_server("")}}});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let calls = case("gs-x-001", "hi", json!({"toolsCalled": ["helo"], "responseContains": ["a", "b"]}));
    project().file("karat.json", config).file("evals/x.golden.json", json!([calls]))
}

#[test]
fn reads_the_registry_from_mcp_servers() {
    let output = project_with_server(&json!({})).run(["check"]);
    assert_eq!(output.code, Some(1), "{}", output.both());
    assert!(output.stdout.contains("'helo'"), "{}", output.both());
    let empty = project().file(
        "evals/x.golden.json",
        json!([case("gs-x-001", "hi", json!({"toolsCalled": ["hello"], "responseContains": ["a", "b"]}))]),
    );
    let line = shell_words::join(shell_server(""));
    let output = empty.run(["check", "--tool-registry-path", &format!("mcp:stdio:{line}")]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stdout.contains("0 invalid, 0 errors"), "{}", output.both());
}

#[test]
fn an_unavailable_server_stops_the_run() {
    let output = project()
        .file(
            "karat.json",
            json!({"agentEndpoint": "http://127.0.0.1:9", "mcpServers": {"x": {"command": ["no-such-program"]}}}),
        )
        .file("evals/x.golden.json", json!([case("gs-x-001", "hi", json!({"responseNonEmpty": true}))]))
        .run(["run"]);
    insta::assert_snapshot!(output.filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: the MCP server 'x' cannot be started: program 'no-such-program' not found
    ");
    let output = project()
        .file("karat.json", json!({"toolRegistryPath": "mcp:stdio:a 'b"}))
        .file("evals/x.golden.json", json!([]))
        .run(["check"]);
    insta::assert_snapshot!(output.filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: invalid MCP server in 'toolRegistryPath': the command has an unclosed
      quote
    ");
}

#[test]
fn mcp_execution_requires_a_server() {
    let project = project().file("evals/x.golden.json", json!([]));
    insta::assert_snapshot!(project.run(["check", "--tool-execution", "mcp"]).filtered(), @r#"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: 'toolExecution' is "mcp", but no MCP server is configured
    hint: add one to 'mcpServers', for example {"files": {"command": ["npx", "-y",
      "@modelcontextprotocol/server-filesystem", "."]}}
    hint: or set 'toolRegistryPath' to mcp:stdio:COMMAND or mcp:URL
    "#);
    insta::assert_snapshot!(project.run(["check", "--tool-execution", "mpc"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: --tool-execution: invalid value 'mpc' for 'toolExecution'
    hint: did you mean 'mcp'?
    ");
}

#[test]
fn warns_about_unknown_allowed_tools() {
    let live = json!({"toolExecution": "mcp", "allowTools": ["helo", "pid"]});
    let output = project_with_server(&live).run(["check"]);
    let warning = "warning: unknown tool 'helo' in 'allowTools': did you mean 'hello'?";
    assert!(output.unwrapped_stderr().contains(warning), "{}", output.both());
    let output = project_with_server(&json!({"toolExecution": "mcp"})).run(["check"]);
    assert!(output.stderr.contains("'allowTools' is empty"), "{}", output.both());
}

#[test]
fn warns_once_about_tools_that_no_server_has() {
    let live = json!({"toolExecution": "mcp", "allowTools": ["*"], "toolRegistryPath": "tools.json"});
    let tools = |names: &[&str]| json!(names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>());
    let project = project_with_server(&live).file("tools.json", tools(&["hello", "a", "b", "c", "d", "e", "f", "g"]));
    let output = project.run(["run"]);
    let warning = "warning: no MCP server has 'a', 'b', 'c', 'd', 'e' and 2 more: calls will fail";
    assert_eq!(output.unwrapped_stderr().matches(warning).count(), 1, "{}", output.both());
    project.write("tools.json", tools(&["hello", "pid"]));
    let output = project.run(["check"]);
    assert!(!output.stderr.contains("warning:"), "{}", output.both());
}

#[test]
fn warns_about_allowed_tools_without_mcp_execution() {
    let output = project_with_server(&json!({"allowTools": ["hello"]})).run(["check"]);
    let warning = "warning: 'allowTools' has no effect unless 'toolExecution' is \"mcp\"";
    assert!(output.unwrapped_stderr().contains(warning), "{}", output.both());
    let output = project_with_server(&json!({})).run(["check"]);
    assert!(!output.stderr.contains("allowTools"), "{}", output.both());
}

#[test]
fn mcp_execution_is_not_routing_only() {
    let check = |execution: &str| {
        let live = json!({"toolExecution": execution, "agentEndpoint": "openai:gpt-4o"});
        project_with_server(&live).run(["check"]).stdout
    };
    assert!(check("stub").contains("response-in-routing-only"), "{}", check("stub"));
    assert!(!check("mcp").contains("response-in-routing-only"), "{}", check("mcp"));
}

#[test]
fn reads_server_arguments_from_args() {
    let command = shell_server("");
    let servers = json!({"mcpServers": {"shell": {"command": command[0], "args": command[1..]}}});
    let output = project_with_server(&servers).run(["check"]);
    assert!(output.stdout.contains("'helo'"), "{}", output.both());
    let output = project_with_server(&json!({"mcpServers": {"shell": {"command": ["sh"], "args": []}}})).run(["check"]);
    assert_eq!(output.code, Some(2), "{}", output.both());
    assert!(output.stderr.contains("'args' cannot be combined with a list as 'command'"), "{}", output.both());
}

#[test]
fn masks_server_secrets_and_hides_other_variables() {
    const SECRET: &str = "s3cr3t-of-a-server";
    let config = json!({"mcpServers": {"shell": {
        "command": ["sh", "-c", "echo \"got $TOKEN, other=$OTHER, home=$HOME\" >&2; exit 3"],
        "env": {"TOKEN": "${SERVER_TOKEN}"},
    }}});
    let project = project().file("karat.json", config).file("evals/x.golden.json", json!([]));
    let output = project.command(["check"]).env("SERVER_TOKEN", SECRET).env("OTHER", "not-theirs").run();
    insta::assert_snapshot!(output.filtered(), @"
    exit: 1
    ----- stdout -----
      × mcp:shell: the server exited unexpectedly (exit status: 3); output: got
      │ ***, other=, home=[HOME] (registry-broken)

    0 tools, 1 file, 0 cases: 0 invalid, 1 error, 0 warnings
    ----- stderr -----
    ");
    assert!(!output.both().contains(SECRET) && !output.both().contains("not-theirs"), "{}", output.both());
    insta::assert_snapshot!(project.run(["check"]).filtered(), @"
    exit: 1
    ----- stdout -----
      × mcp:shell: cannot set TOKEN for MCP server 'shell': the environment
      │ variable SERVER_TOKEN is not set (registry-broken)

    0 tools, 1 file, 0 cases: 0 invalid, 1 error, 0 warnings
    ----- stderr -----
    ");
}

#[test]
fn shows_the_start_and_end_of_server_output_without_partial_secrets() {
    const SECRET: &str = "s3cr3t-of-a-server";
    let start = |script: &str| {
        let config = json!({"mcpServers": {"shell": {"command": ["sh", "-c", script], "env": {"TOKEN": "${TOKEN}"}}}});
        let any_response = case("gs-x-001", "hi", json!({"responseNonEmpty": true}));
        let project = project().file("karat.json", config).file("evals/x.golden.json", json!([any_response]));
        project.command(["run", "--agent-endpoint", "http://127.0.0.1:9"]).env("TOKEN", SECRET).run()
    };
    insta::assert_snapshot!(start("seq 1 20 >&2; echo \"  at $TOKEN\" >&2; exit 3").filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: the MCP server 'shell' exited unexpectedly (exit status: 3); output:
      1
      2
      3
      4
      5
      …
      17
      18
      19
      20
        at ***
    ");
    // The output is truncated in the middle of the secret on the first line.
    let fill = "x".repeat(4096 - SECRET.len() / 2 - 1);
    let output = start(&format!("echo $TOKEN >&2; echo {fill} >&2; exit 3"));
    let half = &SECRET[SECRET.len() / 2..];
    assert!(output.stderr.contains("xxx") && !output.both().contains(half), "{}", output.both());
    let output = start(&format!("echo {}$TOKEN; exit 3", "x".repeat(200 - SECRET.len() / 2)));
    assert!(!output.both().contains(&SECRET[..SECRET.len() / 2]), "{}", output.both());
}

#[test]
fn a_failed_server_does_not_hide_the_others() {
    const SECRET: &str = "s3cr3t-of-a-server";
    let failing = json!({"command": ["sh", "-c", "echo \"Error: no $TOKEN\" >&2; echo at x >&2; exit 3"], "env": {"TOKEN": "${TOKEN}"}});
    let unset = json!({"command": shell_server(""), "env": {"KEY": "${NOT_SET_AT_ALL}"}});
    let servers = json!({"bad": failing, "again": {"command": shell_server("")}, "shell": {"command": shell_server("")}, "unset": unset});
    let project = project_with_server(&json!({"mcpServers": servers}));
    let run = |arguments: &[&str]| {
        let output = project.command(arguments.iter().copied()).env("TOKEN", SECRET).run();
        assert!(!output.both().contains(SECRET), "{}", output.both());
        output
    };
    insta::assert_snapshot!(run(&["tools"]).filtered(), @"
    exit: 3
    ----- stdout -----
    NAME    VERSION  TOKENS  LOCATION   DESCRIPTION
    hello   9.9           —  mcp:again  —
    die     9.9           —  mcp:again  —
    odd     9.9           —  mcp:again  —
    refuse  9.9           —  mcp:again  —
    pid     9.9           —  mcp:again  —

    5 tools: 0 tokens in descriptions, 25 in schemas
    ----- stderr -----
    warning: mcp:unset: cannot set KEY for MCP server 'unset': the environment
      variable NOT_SET_AT_ALL is not set
    warning: mcp:bad: the server exited unexpectedly (exit status: 3); output:
      Error: no ***
      at x
    warning: mcp:shell: the server has a tool 'hello' that 'mcp:again' also has
    warning: mcp:shell: the server has a tool 'die' that 'mcp:again' also has
    warning: mcp:shell: the server has a tool 'odd' that 'mcp:again' also has
    warning: mcp:shell: the server has a tool 'refuse' that 'mcp:again' also has
    warning: mcp:shell: the server has a tool 'pid' that 'mcp:again' also has
    ");
    let output = run(&["tools", "--format", "json"]);
    assert_eq!((output.code, output.stdout.matches("\"kind\": \"broken\"").count()), (Some(3), 7), "{}", output.both());
    assert_eq!(run(&["tools", "lock"]).code, Some(3));
    let output = run(&["check"]);
    assert_eq!(output.code, Some(1), "{}", output.both());
    assert!(output.stdout.contains("mcp:bad: the server exited unexpectedly (exit status: 3)"), "{}", output.both());
    // The tool may belong to the failed server.
    assert!(!output.stdout.contains("(unknown-tool)"), "{}", output.both());
    let output = run(&["coverage"]);
    assert!(output.stdout.contains("mcp:bad: the server exited unexpectedly"), "{}", output.both());
    let output = run(&["overlap", "suggest"]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    assert!(output.stderr.contains("warning: mcp:bad: the server exited unexpectedly"), "{}", output.both());
    let output = run(&["run"]);
    assert_eq!(output.code, Some(2), "{}", output.both());
}

/// Uses a third-party model proxy and third-party tools.
#[test]
#[ignore = "needs litellm and server-everything"]
fn a_model_runs_only_allowed_tools() {
    let (proxy, everything) = (Litellm::shared(), TestTool::ServerEverything.command());
    let project = project()
        .file(
            "karat.json",
            json!({
                "agentEndpoint": "openai:obeys",
                "outputDir": "results",
                "mcpServers": {"everything": {"command": everything}},
                "toolExecution": "mcp",
                "allowTools": ["get-sum"],
            }),
        )
        .file(
            "evals/sum.golden.json",
            json!([
                case("gs-sum-001", "get-sum {\"a\": 2, \"b\": 40}", json!({"toolsCalled": ["get-sum"], "noToolErrors": true, "responseContains": ["the tool said", "42"]})),
                case("gs-sum-002", "echo {\"message\": \"hi\"}", json!({"toolsCalled": ["echo"], "responseNotContains": ["Echo: hi"]})),
            ]),
        )
        .env("OPENAI_BASE_URL", proxy.openai_base())
        .env("OPENAI_API_KEY", KEY);
    let output = project.run(["run"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let result = only_result(&project, "results");
    let call = |number: usize| &result["cases"][number]["details"]["toolCalls"][0];
    assert_eq!((&call(0)["success"], &call(0)["result"]), (&json!(true), &json!("The sum of 2 and 40 is 42.")));
    assert_eq!(call(1)["success"], false, "{result}");
}

#[test]
#[ignore = "needs litellm and server-filesystem"]
fn a_model_reads_only_files_in_the_allowed_folder() {
    let (proxy, mut files) = (Litellm::shared(), TestTool::ServerFilesystem.command());
    files.push("notes".to_owned());
    let read = |id: &str, path: &str, expect: serde_json::Value| {
        case(id, &format!("read_text_file {}", json!({"path": path})), expect)
    };
    let project = project().file("notes/today.txt", "the answer is 42").file("secret.txt", "do not read this");
    let path = |name: &str| project.path().canonicalize().unwrap().join(name).to_string_lossy().into_owned();
    project.write(
        "karat.json",
        json!({
            "agentEndpoint": "openai:obeys", "outputDir": "results", "toolExecution": "mcp", "allowTools": ["*"],
            "mcpServers": {"files": {"command": files}},
        }),
    );
    project.write(
        "evals/files.golden.json",
        json!([
            read("gs-files-001", &path("notes/today.txt"), json!({"noToolErrors": true, "responseContains": ["42"]})),
            read(
                "gs-files-002",
                &path("secret.txt"),
                json!({"noToolErrors": true, "responseNotContains": ["do not read"]})
            ),
        ]),
    );
    let command = project.command(["run"]).env("OPENAI_BASE_URL", proxy.openai_base()).env("OPENAI_API_KEY", KEY);
    let output = command.run();
    assert_eq!(output.code, Some(1), "{}", output.both());
    let result = only_result(&project, "results");
    assert_eq!(result["cases"][0]["passed"], true, "{result}");
    let error = result["cases"][1]["error"].as_str().unwrap();
    assert!(error.starts_with("noToolErrors: ") && error.contains("denied"), "{error}");
}

/// A crash says nothing about the model, an error that a tool answers with does.
#[test]
fn a_case_without_a_tool_result_is_errored() {
    let calling = |tool: &str| json!({"turns": [{"calls": [{"name": tool}]}, {"text": "Done."}]});
    let server = ScriptedServer::start(json!({"a": calling("die"), "b": calling("refuse"), "c": calling("hello")}));
    let expect = json!({"noToolErrors": true});
    let project = project()
        .file(
            "karat.json",
            json!({
                "agentEndpoint": "openai:test-model", "toolExecution": "mcp", "allowTools": ["*"],
                "mcpServers": {"shell": {"command": shell_server("")}},
            }),
        )
        .file(
            "evals/x.golden.json",
            json!([
                case("gs-x-001", "a", expect.clone()),
                case("gs-x-002", "b", expect.clone()),
                case("gs-x-003", "c", expect)
            ]),
        )
        .env("OPENAI_BASE_URL", format!("{}/v1", server.base_url()))
        .env("OPENAI_API_KEY", "sk-1");
    let output = project.run(["run", "--no-store"]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    let result = only_result(&project, "evals/results");
    let outcomes: Vec<&Value> =
        result["cases"].as_array().expect("cases").iter().map(|case| &case["outcome"]).collect();
    assert_eq!(outcomes, ["errored", "failed", "passed"], "{}", output.both());
    let error = "the MCP server 'shell' exited during the call die {} (exit status: 7); output: last words";
    assert_eq!(result["cases"][0]["error"], error);
}
