use karat_workflows::Error;
use karat_workflows::init::{Command, Init, Question, Step, Written};
use serde_json::json;

use crate::project::TestProject;

/// Answers every question, and serialises the conversation between the steps.
fn drive(project: &TestProject, agent: &str) -> Result<Written, Error> {
    let mut init = Init::begin(None, &project.files.path())?;
    loop {
        init = serde_json::from_str(&serde_json::to_string(&init).unwrap()).unwrap();
        match init.next() {
            Step::Ask { question: Question::Agent, .. } => init.apply(Command::Answer(agent.to_owned()))?,
            Step::Ask { default, .. } => init.apply(Command::Answer(default))?,
            Step::Write => init.apply(Command::Write)?,
            Step::Done(written) => return Ok(written),
        }
    }
}

#[test]
fn writes_a_project_for_a_model_once() {
    let project = TestProject::new();
    let written = drive(&project, "openai:gpt").unwrap();
    assert_eq!(written.files, ["karat.json", "evals/get-weather.golden.json", "tools.json"]);
    assert_eq!((written.folder, written.variables), (None, vec!["OPENAI_API_KEY".to_owned()]));
    assert_eq!(project.files.read_json("karat.json")["agentEndpoint"], json!("openai:gpt"));
    let expect = &project.files.read_json("evals/get-weather.golden.json")["cases"][0]["expect"];
    assert_eq!(expect["textMatch"], json!("loose"), "the guard must find typographic apostrophes");
    let before = project.files.read("karat.json");
    let error = drive(&project, "http://other").unwrap_err();
    assert_eq!(error.message, "karat.json already exists");
    assert_eq!(project.files.read("karat.json"), before);
}

#[test]
fn an_invalid_answer_does_not_change_the_step() {
    let project = TestProject::new().file("evals/mine.golden.json", json!([]));
    let mut init = Init::begin(None, &project.files.path()).unwrap();
    assert!(init.apply(Command::Write).is_err());
    assert!(init.apply(Command::Answer("openai:".to_owned())).is_err());
    assert!(matches!(init.next(), Step::Ask { question: Question::Agent, .. }));
    init.apply(Command::Answer("http://localhost:3000".to_owned())).unwrap();
    for tool in ["../x", "", "mine"] {
        assert!(init.apply(Command::Answer(tool.to_owned())).is_err(), "{tool}");
    }
    assert!(matches!(init.next(), Step::Ask { question: Question::Tool, .. }));
    assert!(!project.files.path().join("karat.json").exists());
}
