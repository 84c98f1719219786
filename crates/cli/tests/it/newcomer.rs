//! The first hour of a new user, in a pseudo-terminal: an HTTP agent with six shop tools, from `init` to a report.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use karat_testkit::project::TempProject;
use serde_json::{Value, json};

use crate::forge_terminal::TerminalSession;
use crate::support::project;

const TOOLS: &str = include_str!("fixtures/shop/tools.json");

/// While this file exists, the agent calls a wrong tool.
const BROKEN_FILE: &str = "broken";

/// The shop's agent. It is killed when dropped.
struct ShopAgent {
    process: Child,
    port: String,
}

impl ShopAgent {
    fn start(project: &TempProject) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fixtures/shop/agent.py");
        let mut command = Command::new("python3");
        let mut process =
            command.arg(script).current_dir(project.path()).stdout(Stdio::piped()).spawn().expect("python3 starts");
        let mut port = String::new();
        BufReader::new(process.stdout.take().expect("stdout")).read_line(&mut port).expect("the agent prints its port");
        Self { process, port: port.trim().to_owned() }
    }
}

impl Drop for ShopAgent {
    fn drop(&mut self) {
        // It may have exited in the meantime.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn start(project: &TempProject, arguments: &[&str]) -> TerminalSession {
    // The agent is local, and a new user does not begin on a CI server.
    let variables = [("NO_PROXY", "localhost,127.0.0.1"), ("CI", ""), ("GITHUB_ACTIONS", "")];
    TerminalSession::spawn(project, arguments, &variables)
}

/// Runs a command to its end. Returns its output with one space between words, since it is wrapped for the terminal.
#[track_caller]
fn run(project: &TempProject, arguments: &[&str], code: i32) -> String {
    let (status, output) = start(project, arguments).finish();
    assert_eq!(status, code, "{arguments:?}: {output}");
    output.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn assert_contains(output: &str, texts: &[&str]) {
    for text in texts {
        assert!(output.contains(text), "'{text}' is missing in: {output}");
    }
}

/// Accepts the agent and the tools that `init` finds. Tests cannot use the usual ports.
fn init(project: &TempProject, agent: &ShopAgent) {
    let mut terminal = start(project, &["init", "--ports", &agent.port]);
    let prompts = [
        ("Agent (a URL", ""),
        ("Tools (a file", ""),
        ("First tool to test:", "search_products"),
        ("Message that should make the agent call it:", "Do you have red shoes?"),
        ("Another one", "Find me a rain jacket"),
        ("Another one", ""),
    ];
    terminal.answer_prompts(&prompts, "wrote karat.json");
    terminal.expect_exit(0);
    let config = project.read_json("karat.json");
    let url = format!("http://localhost:{}/chat", agent.port);
    assert_eq!((&config["agentEndpoint"], &config["toolRegistryPath"]), (&json!(url), &json!("tools.json")));
    assert!(project.read(".gitignore").contains("evals/results"));
    let first = project.read_json("evals/search-products.golden.json");
    assert_eq!(first["metadata"]["registrySize"], 6);
    assert_eq!(first["cases"][0]["each"].as_array().map(Vec::len), Some(2), "a table of messages");
}

/// Answers the questions before the first batch. The description does not say when to use the tool.
fn begin_forge(terminal: &mut TerminalSession, phrases: [&str; 4]) {
    let prompts = [
        ("Draft cases anyway?", "y"),
        ("get_shipping_status and get_order overlap?", "n"),
        ("Phrase 1:", phrases[0]),
        ("Phrase 2:", phrases[1]),
        ("Phrase 3:", phrases[2]),
        ("Phrase 4:", phrases[3]),
        ("Phrase 5:", ""),
    ];
    terminal.answer_prompts(&prompts, "golden: batch 1 of 1");
}

/// Approves the golden cases and one of two batches of edge cases.
fn forge_shipping_status(project: &TempProject) {
    let mut terminal = start(project, &["forge", "get_shipping_status"]);
    begin_forge(
        &mut terminal,
        ["Where is my parcel A100?", "When does order A200 arrive?", "Track A300 please", "Where is order A200 now?"],
    );
    terminal.answer("a");
    terminal.expect_output("golden: 5 cases in evals/get-shipping-status.golden.json");
    terminal.expect_output("Proceed?");
    terminal.send_line("y");
    terminal.expect_output("edge: batch 1 of 2");
    terminal.answer("a");
    terminal.expect_output("edge: batch 2 of 2");
    terminal.answer("q");
    terminal.expect_output("Write the 5 approved cases now?");
    terminal.send_line("y");
    terminal.expect_output("labeled: 5 cases in evals/get-shipping-status.labeled.json");
    terminal.expect_exit(0);
    // The question about the description was answered when the session was started.
    let mut terminal = start(project, &["forge", "get_shipping_status", "--resume"]);
    terminal.expect_output("edge: batch 2 of 2");
    terminal.answer("q");
    terminal.expect_exit(0);
}

fn forge_cancel_order(project: &TempProject) {
    let mut terminal = start(project, &["forge", "cancel_order", "--tier", "golden"]);
    begin_forge(
        &mut terminal,
        ["Cancel my order A100", "Stop order A200", "Please call off A300", "I do not want order A100 any more"],
    );
    terminal.answer("a");
    terminal.expect_output("wrote evals/cancel-order.golden.json: 5 golden cases");
    terminal.expect_exit(0);
}

#[test]
fn works_from_init_to_a_report() {
    let project = project().file("tools.json", TOOLS);
    let agent = ShopAgent::start(&project);
    init(&project, &agent);
    assert_contains(&run(&project, &["check"], 0), &["0 invalid, 0 errors"]);
    forge_shipping_status(&project);
    forge_cancel_order(&project);
    assert_contains(&run(&project, &["check"], 0), &["0 invalid, 0 errors"]);

    let passed = run(&project, &["run"], 0);
    assert_contains(&passed, &["gs-search-products-001", "gs-get-shipping-status-005", "gs-cancel-order-005"]);
    assert!(!passed.contains("to rerun what did not pass"), "{passed}");

    project.write(BROKEN_FILE, "");
    let failed = run(&project, &["run"], 1);
    let wrong_tool = "toolsCalled: expected ['get_shipping_status'] but got ['get_order']";
    let rerun = "karat run --id gs-get-shipping-status-001 --id gs-get-shipping-status-002 --id \
                 gs-get-shipping-status-003 --id gs-get-shipping-status-004 --id gs-get-shipping-status-005";
    assert_contains(
        &failed,
        &[
            wrong_tool,
            "message Where is my parcel A100?",
            "answer Order A100 contains red shoes.",
            "calls get_order {\"order_id\":\"A100\"}",
            "not passed:",
            &format!("to rerun what did not pass: {rerun}"),
        ],
    );
    assert_contains(
        &run(&project, &["diff"], 1),
        &["5 regressions", &format!("gs-get-shipping-status-001 {wrong_tool}"), "overall: 5 worse, 0 better"],
    );
    // The printed command works.
    let arguments = shell_words::split(rerun).unwrap();
    let arguments: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    assert_contains(&run(&project, &arguments, 1), &["0/5 passed | 5 failed"]);
    let details = run(&project, &["show", "latest", "gs-get-shipping-status-001"], 0);
    assert_contains(&details, &[wrong_tool, "Where is my parcel A100?", "Order A100 contains red shoes."]);

    let add = ["regress", "add", "--from-run", "latest", "--case", "gs-get-shipping-status-001", "--bug-ref", "12"];
    let regression = "rg-get-shipping-status-001";
    assert_contains(
        &run(&project, &add, 0),
        &[&format!("added {regression} to evals/get-shipping-status.regression.json (new file)")],
    );
    let baseline = ["run", "--baseline", "latest~2", "--report", "markdown=report.md"];
    assert_contains(&run(&project, &baseline, 1), &["5 regressions since", regression]);
    let report = project.read("report.md");
    let texts = ["message: Where is my parcel A100?", "answer: Order A100 contains red shoes.", wrong_tool, regression];
    assert_contains(&report, &texts);

    std::fs::remove_file(project.path().join(BROKEN_FILE)).unwrap();
    let fixed = run(&project, &["run", "--report", "markdown=report.md"], 0);
    assert_contains(&fixed, &[regression]);
    assert!(!project.read("report.md").contains(wrong_tool));
    let list: Value = serde_json::from_str(&project.run(["runs", "--format", "json"]).stdout).unwrap();
    assert_eq!(list["total"], 5);
}

/// The other tests of the tutorial run without a terminal, where no command prompts.
#[test]
fn the_tutorial_begins_without_a_prompt() {
    let page = include_str!("../../../../docs/tutorial.md");
    let command = page.lines().find_map(|line| line.strip_prefix("$ karat init ")).expect("a command");
    let arguments = shell_words::split(command).unwrap();
    let arguments: Vec<&str> = ["init"].into_iter().chain(arguments.iter().map(String::as_str)).collect();
    let output = run(&project(), &arguments, 0);
    assert_contains(&output, &["wrote karat.json", "wrote evals/get-weather.golden.json"]);
}
