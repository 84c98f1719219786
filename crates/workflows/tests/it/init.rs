use karat_workflows::Error;
use karat_workflows::init::{Command, Init, InitOutcome, PortProbe, Question, Request, Step, USUAL_PORTS};
use serde_json::{Value, json};

use crate::project::TestProject;

/// The ports that are open.
struct Ports(&'static [u16]);

impl PortProbe for Ports {
    fn is_open(&self, port: u16) -> bool {
        self.0.contains(&port)
    }
}

fn begin(project: &TestProject, ports: &'static [u16]) -> Result<Init, Error> {
    let current_dir = project.files.path();
    let request = Request { folder: None, current_dir: &current_dir, ports: &USUAL_PORTS, find_tools: true };
    Init::begin(&request, &Ports(ports))
}

/// Answers these questions, accepts the proposals for the others, and serialises the conversation between the steps.
fn drive(project: &TestProject, ports: &'static [u16], answers: &[(Question, &str)]) -> Result<InitOutcome, Error> {
    let mut init = begin(project, ports)?;
    loop {
        init = serde_json::from_str(&serde_json::to_string(&init).unwrap()).unwrap();
        match init.next() {
            Step::Ask { question, default } => {
                let answer = answers.iter().find(|(answered, _)| *answered == question).map(|(_, answer)| *answer);
                let answer = answer.map(str::to_owned).or(default).expect("a proposal");
                init.apply(Command::Answer(answer))?;
            }
            Step::ListTools => init.apply(Command::SkipTools)?,
            Step::Write => init.apply(Command::Write)?,
            Step::Done(written) => return Ok(written),
        }
    }
}

fn first_case(project: &TestProject, file: &str) -> Value {
    project.files.read_json(file)["cases"][0].clone()
}

#[test]
fn writes_a_plain_case_without_tools() {
    let project = TestProject::new();
    let written = drive(&project, &[8000, 5000], &[]).unwrap();
    assert_eq!(written.files, ["karat.json", "evals/first.json", ".gitignore"]);
    assert_eq!((written.folder, written.tool, written.has_tools), (None, None, false));
    let config = project.files.read_json("karat.json");
    assert_eq!(config["agentEndpoint"], "http://localhost:8000/chat");
    assert_eq!(config.get("toolRegistryPath"), None);
    let case = first_case(&project, "evals/first.json");
    assert_eq!(case["expect"]["toolsCalled"], Value::Null);
    assert_eq!(case["expect"]["textMatch"], "loose", "the guard must find typographic apostrophes");
    let before = project.files.read("karat.json");
    let error = drive(&project, &[8000], &[]).unwrap_err();
    assert_eq!(error.message, "karat.json already exists");
    assert_eq!(project.files.read("karat.json"), before);
}

#[test]
fn the_first_case_tests_a_tool_that_was_found() {
    let schema = json!({"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]});
    let tools = json!([
        {"name": "cancel_order", "description": "Cancels an order.", "category": "write"},
        {"name": "get_order", "description": "Fetches an order. Use when asked for it.", "version": "1.2.0",
            "inputSchema": schema, "triggerPhrases": ["What is in A100?", "Show me A200"]},
    ]);
    let project = TestProject::new().file("export/tools.json", tools);
    let written = drive(&project, &[3000], &[]).unwrap();
    assert_eq!(written.tool.as_deref(), Some("get_order"));
    assert_eq!(project.files.read_json("karat.json")["toolRegistryPath"], "export/tools.json");
    let metadata = &project.files.read_json("evals/get-order.golden.json")["metadata"];
    assert_eq!((&metadata["toolVersion"], &metadata["registrySize"]), (&json!("1.2.0"), &json!(2)));
    let case = first_case(&project, "evals/get-order.golden.json");
    assert_eq!(case["input"]["message"], "{{row:message}}");
    assert_eq!(case["each"], json!([{"message": "What is in A100?"}, {"message": "Show me A200"}]));
    let exists = json!([{"tool": "get_order", "paramName": "order_id", "assertion": "exists"}]);
    assert_eq!((&case["expect"]["toolsCalled"], &case["expect"]["toolParams"]), (&json!(["get_order"]), &exists));
}

#[test]
fn a_custom_message_replaces_the_suggestions() {
    let tools = json!([{"name": "get_order", "triggerPhrases": ["What is in A100?", "Show me A200"]}]);
    let project = TestProject::new().file("tools.json", tools);
    drive(&project, &[3000], &[(Question::Message, "Which items?")]).unwrap();
    let case = first_case(&project, "evals/get-order.golden.json");
    assert_eq!((&case["input"]["message"], case.get("each")), (&json!("Which items?"), None));
}

#[test]
fn writes_a_tool_list_for_a_model_with_an_unknown_tool() {
    let project = TestProject::new();
    let answers = [(Question::Agent, "openai:gpt"), (Question::Tool, "get_news"), (Question::Message, "What's new?")];
    let written = drive(&project, &[], &answers).unwrap();
    assert_eq!(written.files, ["karat.json", "evals/get-news.golden.json", "tools.json", ".gitignore"]);
    assert_eq!(written.variables, ["OPENAI_API_KEY"]);
    assert!(first_case(&project, "evals/get-news.golden.json")["stubs"]["get_news"].is_object());
}

#[test]
fn mcp_servers_of_an_editor_are_copied_without_secrets() {
    let servers = json!({"shop": {"command": "karat-no-such-server", "env": {"SHOP_TOKEN_OF_TEST_KEY": "12345"}}});
    let project = TestProject::new().file(".mcp.json", json!({ "mcpServers": servers }));
    let written = drive(&project, &[3000], &[]).unwrap();
    let config = project.files.read_json("karat.json");
    let expected = json!({"shop": {"command": ["karat-no-such-server"],
        "env": {"SHOP_TOKEN_OF_TEST_KEY": "${SHOP_TOKEN_OF_TEST_KEY}"}}});
    assert_eq!(config["mcpServers"], expected);
    assert_eq!((written.tool, written.variables), (None, vec!["SHOP_TOKEN_OF_TEST_KEY".to_owned()]));
}

#[test]
fn extends_gitignore_once() {
    let project = TestProject::new().file(".gitignore", "target\n.karat");
    let written = drive(&project, &[3000], &[]).unwrap();
    assert_eq!(written.updated, [".gitignore"]);
    assert_eq!(project.files.read(".gitignore"), "target\n.karat\nevals/results/\n");
    std::fs::remove_file(project.files.path().join("karat.json")).unwrap();
    std::fs::remove_file(project.files.path().join("evals/first.json")).unwrap();
    assert!(drive(&project, &[3000], &[]).unwrap().updated.is_empty());
    assert_eq!(project.files.read(".gitignore"), "target\n.karat\nevals/results/\n");
}

#[test]
fn an_invalid_answer_does_not_change_the_step() {
    let project = TestProject::new().file("evals/mine.golden.json", json!([])).file("tools.json", "{}");
    let mut init = begin(&project, &[]).unwrap();
    assert_eq!(init.discovered().problems.len(), 1, "{:?}", init.discovered());
    assert!(init.apply(Command::Write).is_err());
    for agent in ["openai:", ""] {
        assert!(init.apply(Command::Answer(agent.to_owned())).is_err(), "{agent}");
    }
    assert_eq!(init.next(), Step::Ask { question: Question::Agent, default: None });
    init.apply(Command::Answer("http://localhost:3000".to_owned())).unwrap();
    for registry in ["tools.json", "missing.py", "mcp:nowhere"] {
        assert!(init.apply(Command::Answer(registry.to_owned())).is_err(), "{registry}");
    }
    assert!(matches!(init.next(), Step::Ask { question: Question::Registry, .. }));
    init.apply(Command::Answer(String::new())).unwrap();
    for tool in ["../x", "mine"] {
        assert!(init.apply(Command::Answer(tool.to_owned())).is_err(), "{tool}");
    }
    assert!(matches!(init.next(), Step::Ask { question: Question::Tool, .. }));
    assert!(!project.files.path().join("karat.json").exists());
}

#[test]
fn a_misspelt_tool_is_rejected() {
    let project = TestProject::new().file("tools.json", json!([{"name": "get_order"}]));
    let error = drive(&project, &[3000], &[(Question::Tool, "get_ordr")]).unwrap_err();
    assert_eq!(error.message, "no tool named 'get_ordr' in the registry");
}

#[test]
fn paths_in_flags_become_relative_to_the_project() {
    let project = TestProject::new().file("shop/src/tools.json", json!([])).file("tools.json", json!([]));
    let current_dir = project.files.path();
    let folder = std::path::Path::new("shop");
    let request = Request { folder: Some(folder), current_dir: &current_dir, ports: &[], find_tools: false };
    let init = Init::begin(&request, &Ports(&[])).unwrap();
    let cases = [("shop/src/tools.json", "src/tools.json"), ("tools.json", "../tools.json"), ("shop", ".")];
    for (path, expected) in cases.into_iter().chain([("mcp:stdio:x", "mcp:stdio:x"), ("", "")]) {
        assert_eq!(init.project_path(path), expected, "{path}");
    }
}
