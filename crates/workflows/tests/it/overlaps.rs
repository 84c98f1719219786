use karat_tools::overlap::OverlapChange;
use karat_workflows::overlaps::{AddRequest, RemoveRequest, add, list, remove, suggest};
use karat_workflows::{ErrorKind, Hint};
use serde_json::json;

use crate::project::TestProject;

const MAP: &str = "evals/overlap-map.json";

fn project() -> TestProject {
    let tools = json!([
        {"name": "get_weather", "description": "Fetches the weather of a city."},
        {"name": "get_forecast", "description": "Fetches the weather of a city for days to come, unlike get_weather."},
        {"name": "ping"},
    ]);
    TestProject::new().file("karat.json", json!({"toolRegistryPath": "tools.json"})).file("tools.json", tools)
}

fn request(others: &[&str]) -> AddRequest {
    AddRequest {
        tool: "get_weather".to_owned(),
        others: others.iter().map(|&other| other.to_owned()).collect(),
        cluster: false,
        reason: Some("both are about weather".to_owned()),
        convert: false,
    }
}

#[tokio::test]
async fn suggests_adds_lists_and_removes_overlaps() {
    let project = project();
    let context = project.context();
    assert!(list(&context).unwrap().path.is_none());
    let suggested = suggest(0.5, 10, &context).await.unwrap();
    assert_eq!((suggested.report.total, suggested.report.measured, suggested.has_gaps), (1, false, false));
    let edited = add(request(&["get_forecast"]), &context).await.unwrap();
    assert_eq!((edited.path.as_str(), edited.converted), (MAP, false));
    assert!(edited.changes.iter().any(|change| matches!(change, OverlapChange::OverlapAdded { .. })));
    let listed = list(&context).unwrap();
    assert_eq!((listed.overlaps, listed.clusters, listed.tools.len()), (1, 0, 2));
    assert_eq!(listed.tools[0].reason.as_deref(), Some("both are about weather"));
    let before = project.files.read(MAP);
    assert!(add(request(&["get_forecast"]), &context).await.unwrap().changes.is_empty());
    assert_eq!(project.files.read(MAP), before);
    let others = vec!["get_weather".to_owned()];
    let request = RemoveRequest { tool: "get_forecast".to_owned(), others, cluster: false, convert: false };
    assert!(!remove(&request, &context).await.unwrap().changes.is_empty());
    assert_eq!(list(&context).unwrap().overlaps, 0);
}

#[tokio::test]
async fn rejects_unknown_tools_and_small_clusters() {
    let project = project();
    let context = project.context();
    let error = add(request(&["get_forcast"]), &context).await.unwrap_err();
    assert_eq!((error.kind, error.hints), (ErrorKind::NotFound, vec![Hint::from("did you mean 'get_forecast'?")]));
    let error = add(AddRequest { cluster: true, ..request(&["ping"]) }, &context).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert!(!project.files.path().join(MAP).exists());
}

#[tokio::test]
async fn does_not_change_an_invalid_map() {
    let project = project().file(MAP, "[");
    let error = add(request(&["ping"]), &project.context()).await.unwrap_err();
    assert_eq!((error.kind, error.files[0].name.as_str()), (ErrorKind::Invalid, MAP));
    assert_eq!(project.files.read(MAP), "[");
}
