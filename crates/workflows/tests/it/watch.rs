//! Tests of watching the files of a run.

use karat_workflows::watch::{AffectedCases, Watch};
use rstest::rstest;
use serde_json::{Value, json};

use crate::project::TestProject;

#[rstest]
#[case("karat.json", r#"{"agentEndpoint": "scripted:other.json"}"#)]
#[case("agent.json", "{}")]
#[case("judge.json", "{}")]
#[case("snapshot.json", "{}")]
#[case("prompt.md", "Be brief.")]
#[case("list_tools.py", "print([])")]
#[case(".env", "A=b")]
#[tokio::test]
async fn all_cases_depend_on_the_files_of_the_settings(#[case] path: &str, #[case] content: &str) {
    let config = json!({
        "agentEndpoint": "scripted:agent.json",
        "judge": {"model": "scripted:judge.json"},
        "snapshotEnabled": true,
        "snapshot": {"file": "snapshot.json"},
        "systemPromptPath": "prompt.md",
        "toolRegistry": {"command": ["python3", "list_tools.py"]},
    });
    let project = TestProject::new().file("karat.json", config).file("list_tools.py", "");
    let settings = project.context().settings;
    let mut watch = Watch::start(&[], &settings);
    project.files.write(path, content);
    let change = watch.next_change(&settings).await;
    assert_eq!(change.affected, AffectedCases::Everything);
    assert_eq!(change.paths.into_iter().collect::<Vec<_>>(), [project.files.path().join(path)]);
}

#[rstest]
#[case("python:agent:answer", "agent.py", "prompt.py")]
#[case("python:bot.main:answer", "bot/main.py", "bot/tools/search.py")]
#[case("node:agent.mjs#answer", "agent.mjs", "agent.mjs")]
#[case("command:python3 agent.py", "agent.py", "agent.py")]
#[tokio::test]
async fn all_cases_depend_on_the_source_of_the_agent(
    #[case] endpoint: &str,
    #[case] source: &str,
    #[case] changed: &str,
) {
    let project = TestProject::new()
        .file("karat.json", json!({"agentEndpoint": endpoint}))
        .file(source, "")
        .file(changed, "")
        .file("notes.txt", "");
    let settings = project.context().settings;
    let mut watch = Watch::start(&[], &settings);
    assert!(watch.roots().iter().any(|root| project.files.path().join(source).starts_with(root)));
    project.files.write("notes.txt", "not watched");
    project.files.write(changed, "changed");
    let change = watch.next_change(&settings).await;
    assert_eq!(change.affected, AffectedCases::Everything);
    assert_eq!(change.paths.into_iter().collect::<Vec<_>>(), [project.files.path().join(changed)]);
}

fn case_with_table(file: &str) -> Value {
    let expect = json!({"responseNonEmpty": true});
    json!([{"id": "gs-x-001", "input": {"message": "{{row:m}}"}, "expect": expect, "each": {"file": file}}])
}

#[tokio::test]
async fn a_table_affects_the_eval_files_that_name_it() {
    let project = TestProject::new()
        .file("data/rows.csv", "m\na\n")
        .file("evals/rows.csv", "m\na\n")
        .file("evals/x.golden.json", case_with_table("../data/rows.csv"))
        .file("evals/y.golden.json", case_with_table("rows.csv"));
    let settings = project.context().settings;
    let [x, y] = ["evals/x.golden.json", "evals/y.golden.json"].map(|path| project.files.path().join(path));
    let mut watch = Watch::start(&[], &settings);
    project.files.write("data/rows.csv", "m\na\nb\n");
    assert_eq!(watch.next_change(&settings).await.affected, AffectedCases::EvalFiles(vec![x.clone()]));
    project.files.write("evals/y.golden.json", case_with_table("../data/rows.csv"));
    assert_eq!(watch.next_change(&settings).await.affected, AffectedCases::EvalFiles(vec![y.clone()]));
    project.files.write("data/rows.csv", "m\na\nb\nc\n");
    assert_eq!(watch.next_change(&settings).await.affected, AffectedCases::EvalFiles(vec![x, y]));
    // No eval file names it any more.
    project.files.write("evals/rows.csv", "m\na\nb\n");
    assert_eq!(watch.next_change(&settings).await.affected, AffectedCases::Nothing);
}
