use karat_workflows::ErrorKind;
use karat_workflows::check::check;
use serde_json::json;

use crate::project::TestProject;

const FILE: &str = "evals/get-weather.golden.json";

fn with_tools() -> TestProject {
    let description = "Fetches the weather of a city. Call it when somebody asks for the weather. Not for news.";
    TestProject::new()
        .file("karat.json", json!({"toolRegistryPath": "tools.json"}))
        .file("tools.json", json!([{"name": "get_weather", "description": description}]))
}

#[tokio::test]
async fn locates_invalid_values() {
    let project = with_tools().file(FILE, "[\n  {\"id\": 1}\n]\n").file("evals/functions/x.py", "import os\n");
    let report = check(&[], &project.context()).await.unwrap();
    assert_eq!((report.files, report.cases, report.tools), (1, 0, Some(1)));
    assert!(report.is_invalid());
    let issue = report.issues.iter().find(|issue| issue.file == FILE).unwrap();
    assert_eq!((issue.rule.as_str(), issue.line), ("invalid", Some(2)));
    let (text, location) = issue.location.as_ref().unwrap();
    assert_eq!(location.position.line, 2);
    assert!(text.get(location.range.clone()).is_some());
    assert!(report.issues.iter().any(|issue| issue.file == "evals/functions/x.py" && issue.rule == "invalid"));
}

#[tokio::test]
async fn does_not_check_overlap_coverage_for_a_part_of_the_files() {
    let case = json!({"id": "a", "input": {"message": "Weather?"}, "expect": {"toolsCalled": ["get_weather"]}});
    let project = with_tools()
        .file(FILE, json!([case]))
        .file("evals/overlap-map.json", json!({"get_weather": {"overlaps": ["get_forecast"]}}));
    let report = check(&[FILE.into()], &project.context()).await.unwrap();
    assert_eq!((report.cases, report.not_judged), (1, vec!["untested-overlap".to_owned()]));
    assert_eq!(project.notices(), ["note: untested-overlap was not checked: not all eval files were checked"]);
}

#[tokio::test]
async fn checks_only_tools_without_eval_files() {
    let project = with_tools();
    assert_eq!(check(&[], &project.context()).await.unwrap().files, 0);
    assert!(project.notices()[0].starts_with("warning: checking only the tools: "), "{:?}", project.notices());
    let error = check(&["gone.json".into()], &project.context()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert_eq!(check(&[], &TestProject::new().context()).await.unwrap_err().kind, ErrorKind::Invalid);
}
