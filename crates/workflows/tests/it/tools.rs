use karat_workflows::tools::{DiffRequest, LockOutcome, LockRequest, diff, list, lock};
use karat_workflows::{Error, ErrorKind, Hint};
use serde_json::json;

use crate::project::TestProject;

fn project() -> TestProject {
    let tools = json!([{"name": "get_weather", "description": "Fetches the weather."}, {"name": "ping"}]);
    TestProject::new().file("karat.json", json!({"toolRegistryPath": "tools.json"})).file("tools.json", tools)
}

async fn outcome(project: &TestProject, check: bool) -> LockOutcome {
    lock(LockRequest { check, lock_file: None }, &project.context()).await.unwrap().outcome
}

async fn compare(project: &TestProject) -> Result<(usize, usize), Error> {
    let diff = diff(DiffRequest { paths: Vec::new(), lock_file: None }, &project.context()).await?;
    Ok((diff.tools.changed.len(), diff.stale_files.len()))
}

#[tokio::test]
async fn lists_matching_tools() {
    let project = project();
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let listed = list(&names(&["get_*"]), &project.context()).await.unwrap();
    assert_eq!(listed.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["get_weather"]);
    let error = list(&names(&["pong"]), &project.context()).await.unwrap_err();
    assert_eq!((error.kind, error.hints), (ErrorKind::NothingSelected, vec![Hint::from("did you mean 'ping'?")]));
    assert_eq!(list(&[], &TestProject::new().context()).await.unwrap_err().kind, ErrorKind::Invalid);
}

#[tokio::test]
async fn checks_writes_and_compares_the_lock() {
    let project = project();
    assert_eq!(outcome(&project, true).await, LockOutcome::Missing);
    assert_eq!(compare(&project).await.unwrap_err().hints, [Hint::WriteToolLock]);
    assert_eq!(outcome(&project, false).await, LockOutcome::Created);
    assert_eq!(outcome(&project, false).await, LockOutcome::Unchanged);
    let locked = project.files.read("evals/tools.lock.json");

    project
        .files
        .write("tools.json", json!([{"name": "get_weather", "description": "Tells the weather."}, {"name": "ping"}]));
    let case = json!({"id": "a", "input": {"message": "hi"}, "expect": {"toolsCalled": ["get_weather"]}});
    let file = json!({"metadata": {"toolName": "get_weather"}, "cases": [case]});
    project.files.write("evals/get-weather.golden.json", file);
    assert_eq!(compare(&project).await.unwrap(), (1, 1));
    assert!(matches!(outcome(&project, true).await, LockOutcome::OutOfDate(_)));
    assert_eq!(project.files.read("evals/tools.lock.json"), locked);
    assert!(matches!(outcome(&project, false).await, LockOutcome::Updated(_)));
    assert_eq!(compare(&project).await.unwrap(), (0, 0));
    assert!(project.notices().is_empty());
}

#[tokio::test]
async fn does_not_lock_a_broken_registry() {
    let server = json!({"mcpServers": {"gone": {"command": ["./there-is-no-such-program"]}}});
    let project = TestProject::new().file("karat.json", server);
    let error = lock(LockRequest { check: false, lock_file: None }, &project.context()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
    assert!(!project.notices().is_empty());
    assert!(!project.files.path().join("evals").exists());
}
