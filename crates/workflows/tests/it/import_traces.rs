//! Tests of importing traces from files.

use std::io::{Cursor, Read};
use std::ops::ControlFlow;
use std::path::PathBuf;

use karat_core::stored::{ImportReport, RefusalKind};
use karat_workflows::import_traces::{Event, ImportOutcome, Origin, Request, import_traces};
use karat_workflows::trace_filter::TraceFilterRequest;
use karat_workflows::traces::{ListRequest, list};
use karat_workflows::{CancellationToken, Error, ErrorKind};
use serde_json::{Value, json};

use crate::project::TestProject;

fn document(id: &str, response: &str) -> Value {
    let steps = json!([{ "input": { "message": "Hello" }, "output": { "response": response }, "tool_calls": [] }]);
    json!({ "trace_id": id, "steps": steps })
}

fn files(paths: &[&str], stdin: &'static str) -> Request {
    let paths = paths.iter().map(PathBuf::from).collect();
    let stdin: Box<dyn Read + Send> = Box::new(Cursor::new(stdin));
    Request { origin: Origin::Files { paths, stdin }, kind: None, feedback: false, dry_run: false }
}

async fn run(request: Request, project: &TestProject) -> Result<ImportOutcome, Error> {
    let mut ignore = |_: Event| ControlFlow::Continue(());
    import_traces(request, &project.context(), &mut ignore, CancellationToken::new()).await
}

fn counts(report: &ImportReport) -> (u64, u64, u64) {
    (report.added, report.changed, report.unchanged)
}

async fn stored(project: &TestProject) -> Result<u64, Error> {
    let filter = TraceFilterRequest::default().resolve(jiff::Timestamp::UNIX_EPOCH)?;
    let listed = list(ListRequest { filter, limit: None, short_ids: false }, &project.context()).await?;
    Ok(listed.list.total)
}

#[tokio::test]
async fn imports_files_folders_and_stdin_once() {
    let project = TestProject::new()
        .file("traces/a.json", document("a", "Hi"))
        .file("traces/b.json", document("b", "Hi"))
        .file("empty.jsonl", "")
        .file("traces/notes.md", "nothing");
    let stdin = r#"{"trace_id": "c", "steps": []}"#;
    let imported = run(files(&["traces", "empty.jsonl", "-"], stdin), &project).await.unwrap();
    assert_eq!((counts(&imported.report), imported.report.files), ((3, 0, 0), 4));
    assert_eq!(imported.files_without_traces, ["empty.jsonl"]);
    assert_eq!((imported.report.passed_over, imported.error.is_none()), (vec!["traces/notes.md".to_owned()], true));
    project.files.write("traces/b.json", document("b", "Bye"));
    let imported = run(files(&["traces"], ""), &project).await.unwrap();
    assert_eq!(counts(&imported.report), (0, 1, 1));
    assert_eq!(stored(&project).await.unwrap(), 3);
}

#[tokio::test]
async fn reports_the_file_of_a_refused_trace() {
    let long = "x".repeat(2000);
    let mut lines: Vec<String> = (0..1200).map(|number| document(&format!("t-{number}"), "Hi").to_string()).collect();
    lines.insert(700, document(&long, "Hi").to_string());
    let project = TestProject::new().file("a.jsonl", lines.join("\n")).file("b.json", document("b", "Hi"));
    let imported = run(files(&["a.jsonl", "b.json"], ""), &project).await.unwrap();
    let [refused] = imported.report.refused.as_slice() else { panic!("{:?}", imported.report.refused) };
    assert_eq!((refused.file.as_str(), refused.kind), ("a.jsonl", RefusalKind::Invalid));
    assert_eq!(counts(&imported.report), (1201, 0, 0));
}

#[tokio::test]
async fn a_dry_run_stores_nothing() {
    let project = TestProject::new().file("a.json", document("a", "Hi"));
    let imported = run(Request { dry_run: true, ..files(&["a.json"], "") }, &project).await.unwrap();
    assert_eq!((counts(&imported.report), imported.report.dry_run), ((1, 0, 0), true));
    assert_eq!(stored(&project).await.unwrap_err().kind, ErrorKind::NothingSelected);
}

#[tokio::test]
async fn reports_errors_before_and_after_reading() {
    let project = TestProject::new().file("folder/notes.md", "nothing").file("empty.json", "");
    let error = run(files(&["folder"], ""), &project).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NothingSelected);
    let error = run(files(&["missing.json"], ""), &project).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    let unknown = Request { kind: Some("langfuze".to_owned()), ..files(&["empty.json"], "") };
    assert_eq!(run(unknown, &project).await.unwrap_err().hints, ["did you mean 'langfuse'?".into()]);
    let imported = run(files(&["empty.json"], ""), &project).await.unwrap();
    assert_eq!(imported.error.map(|error| error.kind), Some(ErrorKind::NothingSelected));
}

#[tokio::test]
async fn stores_traces_read_before_an_interrupt() {
    let lines: Vec<String> = (0..5000).map(|number| document(&format!("t-{number}"), "Hi").to_string()).collect();
    let project = TestProject::new().file("a.jsonl", lines.join("\n"));
    let mut stop_after_the_first_batch = |event: Event| match event {
        Event::Opened { .. } => ControlFlow::Continue(()),
        Event::Progress { .. } => ControlFlow::Break(()),
    };
    let (request, context) = (files(&["a.jsonl"], ""), project.context());
    let importing = import_traces(request, &context, &mut stop_after_the_first_batch, CancellationToken::new());
    let imported = importing.await.unwrap();
    assert!(imported.report.interrupted && imported.error.is_none());
    assert!((1..5000).contains(&imported.report.traces()), "{}", imported.report.traces());
    assert_eq!(stored(&project).await.unwrap(), imported.report.traces());
}
