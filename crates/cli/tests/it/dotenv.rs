//! Variables in a project's `.env` file.

use karat_testkit::project::TempProject;
use karat_testkit::server::ScriptedServer;
use serde_json::json;

use crate::support::{ok_case, project, script};

const SECRET: &str = "s3cr3t-of-the-file";

fn scripted_project() -> TempProject {
    project()
        .file("karat.json", json!({"agentEndpoint": "scripted:agent.json", "outputDir": "from-config"}))
        .file("agent.json", script(&[("m", "ok")]))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]))
}

fn output_folder(project: &TempProject, variable: Option<&str>, arguments: &[&str]) -> String {
    let command = project.command([&["run"], arguments].concat());
    let command = match variable {
        Some(value) => command.env("KARAT_OUTPUT_DIR", value),
        None => command,
    };
    let output = command.run();
    assert_eq!(output.code, Some(0), "{}", output.both());
    output.stderr.trim_end().rsplit(' ').next().unwrap().to_owned()
}

#[test]
fn flag_overrides_environment_overrides_dotenv_overrides_config() {
    let project = scripted_project();
    assert_eq!(output_folder(&project, None, &[]), "from-config");
    project.write(".env", "# results\nexport KARAT_OUTPUT_DIR=from-file\n");
    assert_eq!(output_folder(&project, None, &[]), "from-file");
    assert_eq!(output_folder(&project, Some("from-process"), &[]), "from-process");
    assert_eq!(output_folder(&project, Some("from-process"), &["--output-dir", "from-flag"]), "from-flag");
    // An empty variable hides the one in the file and counts as not set.
    assert_eq!(output_folder(&project, Some(""), &[]), "from-config");
}

#[test]
fn reads_the_file_in_the_project_root() {
    let project = project()
        .file(".env", "KARAT_OUTPUT_DIR=of-another-project\n")
        .file("shop/.env", "KARAT_OUTPUT_DIR=of-the-shop\n")
        .file("shop/karat.json", json!({"agentEndpoint": "scripted:agent.json"}))
        .file("shop/agent.json", script(&[("m", "ok")]))
        .file("shop/evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    assert_eq!(output_folder(&project, None, &["shop"]), "of-the-shop");
    let output = project.command(["run", "shop/evals"]).env("KARAT_CONFIG", "shop/karat.json").run();
    assert!(output.stderr.ends_with("in of-the-shop\n"), "{}", output.stderr);
    project.write("shop/.env", "KARAT_CONFIG=other.json\n");
    insta::assert_snapshot!(project.run(["run", "shop"]).filtered_stderr(), @"
    warning: KARAT_CONFIG in .env has no effect: it determines which .env is read
    run [RUN_ID]: 1 result file in shop/evals/results
    ");
}

#[test]
fn agent_headers_use_dotenv_variables_without_leaking_them() {
    let server = ScriptedServer::start(json!({
        "echo": {"response": format!("ok {SECRET} other-s3cret-9 visible")},
        "fail": {"status": 500, "raw": format!("bad {SECRET} other-s3cret-9")},
    }));
    let project = project()
        .file(
            "karat.json",
            json!({
                "agentEndpoint": server.endpoint(),
                "outputDir": "results",
                "agent": {"headers": {"Authorization": "Bearer ${AGENT_AUTH}"}},
            }),
        )
        .file(".env", format!("AGENT_AUTH='{SECRET}'\nUNUSED_API_KEY=other-s3cret-9\nPLAIN=visible\n"))
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "echo"), ok_case("gs-x-002", "fail")]));
    let output = project.run(["run", "--report", "markdown=r.md"]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    let sent = server.requests().remove(0);
    assert_eq!(sent.headers.get("authorization").map(String::as_str), Some(format!("Bearer {SECRET}").as_str()));
    let file = std::fs::read_to_string(&project.files_in("results", ".json")[0]).unwrap();
    assert!(file.contains("ok *** *** visible"), "{file}");
    for text in [output.both(), file, project.read("r.md")] {
        assert!(!text.contains(SECRET) && !text.contains("other-s3cret"), "{text}");
    }
    let other = project.command(["run"]).env("AGENT_AUTH", "of-the-process").run();
    assert_eq!(other.code, Some(3));
    let sent = server.requests().pop().unwrap();
    assert_eq!(sent.headers.get("authorization").map(String::as_str), Some("Bearer of-the-process"));
}

#[test]
fn snapshot_headers_use_dotenv_variables() {
    let server = ScriptedServer::start(json!({"GET /prices": {"price": 7}}));
    let project = scripted_project().file(".env", format!("PRICES_TOKEN={SECRET}\n"));
    let url = format!("{}/prices", server.base_url());
    let source = json!({"url": url, "headers": {"x-token": "${PRICES_TOKEN}"}}).to_string();
    let output = project.run(["run", "--snapshot", &source]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let sent = server.gets().remove(0);
    assert_eq!(sent.headers.get("x-token").map(String::as_str), Some(SECRET));
}

#[test]
fn reports_malformed_lines_without_their_content() {
    let project = scripted_project().file(".env", format!("A=1\n\nTOKEN {SECRET}\n"));
    insta::assert_snapshot!(project.run(["run"]).filtered(), @"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: [DIR]/.env:3 is not of the form NAME=value
    hint: put values with spaces or # in quotes
    ");
    project.write(".env", format!("TOKEN='{SECRET}\n"));
    let unclosed = project.run(["check"]);
    assert_eq!(unclosed.code, Some(2), "{}", unclosed.both());
    assert!(unclosed.stderr.contains("/.env:1 is") && !unclosed.both().contains(SECRET), "{}", unclosed.both());
    project.write(".env", [b"A=1\nB=".as_slice(), b"\xff\xfe", SECRET.as_bytes()].concat());
    let binary = project.run(["run"]);
    assert_eq!(binary.code, Some(2), "{}", binary.both());
    assert!(binary.stderr.contains("/.env:2 is") && !binary.both().contains(SECRET), "{}", binary.both());
}

#[test]
fn agent_programs_do_not_inherit_dotenv_variables() {
    let project = scripted_project()
        .file(".env", "FROM_FILE=seen\n")
        .file("agent.sh", "printf '{\"response\": \"ok %s\"}' \"${FROM_FILE-nothing}\"\n");
    let output = project.run(["run", "--agent-endpoint", "command:sh agent.sh", "--format", "json"]);
    assert!(output.stdout.contains("\"ok nothing\""), "{}", output.both());
}

/// A folder named `.env` is usually a Python environment.
#[test]
fn ignores_a_folder_named_dotenv() {
    let project = scripted_project().file(".env/bin/activate", "x");
    assert_eq!(output_folder(&project, None, &[]), "from-config");
}
