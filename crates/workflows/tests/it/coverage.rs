use karat_tools::coverage::Requirement;
use karat_workflows::coverage::{Request, Requirements, RunChoice, measure};
use karat_workflows::{Error, ErrorKind, Hint};
use serde_json::json;

use crate::project::TestProject;

fn project() -> TestProject {
    let case = json!({"id": "a", "input": {"message": "hi"}, "expect": {"toolsCalled": ["get_weather"]}});
    TestProject::new()
        .file("karat.json", json!({"toolRegistryPath": "tools.json"}))
        .file("tools.json", json!([{"name": "get_weather"}, {"name": "ping"}]))
        .file("evals/get-weather.golden.json", json!({"metadata": {"toolName": "get_weather"}, "cases": [case]}))
}

fn request(required: Requirements) -> Request {
    Request { paths: Vec::new(), required, runs: RunChoice::Newest, lock_file: None }
}

async fn held(project: &TestProject, required: Requirements) -> Result<Vec<Option<bool>>, Error> {
    let coverage = measure(request(required), &project.context()).await?;
    Ok(coverage.requirements.iter().map(|result| result.held).collect())
}

#[tokio::test]
async fn checks_the_requirements() {
    let project = project();
    assert_eq!(held(&project, Requirements::Nothing).await.unwrap(), []);
    assert_eq!(held(&project, Requirements::Listed(vec![Requirement::Tested])).await.unwrap(), [Some(false)]);
    assert_eq!(held(&project, Requirements::All).await.unwrap().len(), Requirement::ALL.len());
    project.files.write("tools.json", json!([{"name": "get_weather"}]));
    assert_eq!(held(&project, Requirements::Listed(vec![Requirement::Tested])).await.unwrap(), [Some(true)]);
}

#[tokio::test]
async fn rejects_requirements_that_cannot_be_checked() {
    let project = project();
    let error = held(&project, Requirements::Listed(vec![Requirement::Overlaps])).await.unwrap_err();
    assert_eq!(error.hints, [Hint::NameOrCreateOverlapMap]);
    let runs = RunChoice::Run("gone".to_owned());
    let error = measure(Request { runs, ..request(Requirements::Nothing) }, &project.context()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    let lock_file = Some("gone.json".into());
    let error = measure(Request { lock_file, ..request(Requirements::Nothing) }, &project.context()).await.unwrap_err();
    assert_eq!(error.hints, [Hint::WriteToolLock]);
    project.files.write("tools.json", "[]");
    assert_eq!(held(&project, Requirements::All).await.unwrap_err().kind, ErrorKind::Invalid);
    assert_eq!(held(&project, Requirements::Nothing).await.unwrap(), []);
    assert_eq!(project.notices(), ["warning: the tool registry has no tools"]);
}
