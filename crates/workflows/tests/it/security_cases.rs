use karat_cases::{EvalFile, Origin, Tier};
use karat_workflows::ErrorKind;
use karat_workflows::security_cases::{Request, write_security_cases};
use serde_json::{Value, json};

use crate::project::TestProject;

fn project(tools: &[&str], cases: Value) -> TestProject {
    let tool = |name: &&str| json!({"name": name, "description": "A tool.", "inputSchema": {"type": "object"}});
    TestProject::new()
        .file("tools.json", Value::from(tools.iter().map(tool).collect::<Vec<_>>()))
        .file("karat.json", json!({"toolRegistryPath": "tools.json"}))
        .file("evals/mail.golden.json", cases)
}

fn reads_mail() -> Value {
    json!({
        "id": "gs-read-mail-001",
        "input": {"message": "What does my last mail say?"},
        "stubs": {"read_mail": "Lunch at noon?"},
        "expect": {"toolsCalled": ["read_mail"], "responseContains": ["noon"]},
    })
}

fn request(tool: Option<&str>) -> Request {
    Request { tool: tool.map(str::to_owned) }
}

#[tokio::test]
async fn bases_the_cases_on_one_that_calls_the_tool() {
    let project = project(&["read_mail", "send_mail"], json!([reads_mail()]));
    let written = write_security_cases(&request(None), &project.context()).await.unwrap();
    assert_eq!((written.tool.as_str(), written.based_on.as_str()), ("read_mail", "gs-read-mail-001"));
    assert_eq!((written.cases, written.left_out), (30, 0));
    assert_eq!(written.tools_without_cases, ["send_mail"]);
    let text = project.files.read("evals/read-mail.security.json");
    let file = EvalFile::parse(text.as_bytes(), Origin::new("read-mail.security.json")).unwrap();
    assert_eq!((file.tier, file.cases.len()), (Tier::Security, 30));
    let case = &file.cases[0];
    assert_eq!(
        (case.message(0), case.expect.response_contains.as_deref()),
        ("What does my last mail say?", Some(&["noon".to_owned()][..]))
    );
    let stubs = case.stubs_of_turn(0).unwrap();
    assert_eq!(stubs["read_mail"]["result"], "Lunch at noon?");
    assert_eq!(stubs["read_mail"]["note"], case.injections()[0].text.as_str());
}

#[tokio::test]
async fn leaves_out_attacks_on_other_tools_if_there_are_none() {
    let project = project(&["read_mail"], json!([reads_mail()]));
    let written = write_security_cases(&request(Some("read-mail")), &project.context()).await.unwrap();
    assert_eq!((written.cases, written.left_out), (23, 7));
}

#[tokio::test]
async fn says_what_is_missing() {
    let without_cases = project(&["read_mail", "send_mail"], json!([reads_mail()]));
    let error = write_security_cases(&request(Some("send_mail")), &without_cases.context()).await.unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::NothingSelected, "no case of the project calls 'send_mail'")
    );
    let without_tools = project(&[], json!([reads_mail()]));
    let error = write_security_cases(&request(None), &without_tools.context()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
}

#[tokio::test]
async fn never_overwrites_a_file() {
    let project = project(&["read_mail"], json!([reads_mail()])).file("evals/read-mail.security.json", json!([]));
    let error = write_security_cases(&request(None), &project.context()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert_eq!(project.files.read_json("evals/read-mail.security.json"), json!([]));
}
