//! `karat run` stores the run, its trials and their traces.

use karat_core::port::{RunStore, TraceStore};
use karat_core::result::Outcome;
use karat_core::stored::{StoredCase, StoredRun, TraceFilter, TraceListItem};
use karat_store::Location;
use karat_testkit::project::TempProject;
use serde_json::{Value, json};
use sqlx::{Connection as _, SqliteConnection};

use crate::eval_stored::{store_location, with_store};
use crate::support::{case, ok_case, only_result, project, script};

fn runs(location: &Location) -> Vec<StoredRun> {
    with_store(location, async |store| store.runs(100).await.unwrap())
}

fn cases(location: &Location, run_id: &str) -> Vec<StoredCase> {
    with_store(location, async |store| store.cases_of_run(run_id).await.unwrap())
}

fn traces(location: &Location) -> Vec<TraceListItem> {
    with_store(location, async |store| store.list_traces(&TraceFilter::default()).await.unwrap())
}

fn document(location: &Location, id: &str) -> Value {
    let trace = with_store(location, async |store| store.trace(id).await.unwrap().unwrap());
    serde_json::from_str(&trace.text).unwrap()
}

fn weather_project() -> TempProject {
    project()
        .file("karat.json", json!({"agentEndpoint": "scripted:agent.json"}))
        .file("agent.json", script(&[("one", "ok: one"), ("two", "no")]))
        .file(
            "evals/x.golden.json",
            json!([ok_case("gs-x-001", "one"), ok_case("gs-x-002", "two"), ok_case("gs-x-003", "unscripted")]),
        )
}

#[test]
fn stores_runs_trials_and_traces() {
    let project = weather_project();
    let output = project.run(["run"]);
    let result = only_result(&project, "evals/results");
    let store = store_location(&project);
    let [run] = &runs(&store)[..] else { panic!("expected one run") };
    assert_eq!(json!(run.run_id), result["runId"], "{}", output.both());
    assert_eq!((run.suites, run.cases, run.passed, run.failed, run.errored), (1, 3, 1, 1, 1));
    assert!(run.ended_at.is_some() && !run.interrupted);
    let stored = cases(&store, &run.run_id);
    let outcomes: Vec<(&str, Outcome, bool)> =
        stored.iter().map(|case| (case.case_id.as_str(), case.outcome, case.trace_id.is_some())).collect();
    assert_eq!(
        outcomes,
        [
            ("gs-x-001", Outcome::Passed, true),
            ("gs-x-002", Outcome::Failed, true),
            ("gs-x-003", Outcome::Errored, false)
        ]
    );
    assert_eq!((&*stored[0].eval_file, stored[0].trial), ("evals/x.golden.json", 1));
    let id = format!("{}:1:gs-x-001:1", run.run_id);
    assert_eq!(stored[0].trace_id.as_deref(), Some(id.as_str()));
    let document = document(&store, &id);
    assert_eq!(document["steps"][0]["input"]["message"], "one");
    assert_eq!(document["steps"][0]["output"]["response"], "ok: one");
    assert_eq!(document["metadata"]["case_id"], "gs-x-001");
    let stored_traces = traces(&store);
    assert_eq!(stored_traces.len(), 2);
    assert!(stored_traces.iter().all(|trace| trace.source == "run" && trace.head.name.is_some()));
    assert!(project.path().join(".karat/.gitignore").exists());
}

#[test]
fn stores_a_trace_per_trial() {
    let project = weather_project();
    project.run(["run", "--id", "gs-x-001", "--trials", "3"]);
    let store = store_location(&project);
    let run = runs(&store).remove(0);
    let trials: Vec<u64> = cases(&store, &run.run_id).iter().map(|case| case.trial).collect();
    assert_eq!(trials, [1, 2, 3]);
    assert_eq!((traces(&store).len(), run.cases), (3, 1));
}

#[test]
fn stores_cases_per_agent() {
    let project = weather_project().file("other.json", script(&[("one", "ok: other")]));
    project.run(["run", "--id", "gs-x-001", "--matrix", "scripted:agent.json,scripted:other.json"]);
    let store = store_location(&project);
    let run = runs(&store).remove(0);
    assert_eq!((run.agents.len(), run.suites, traces(&store).len()), (2, 2, 2));
    let stored = cases(&store, &run.run_id);
    assert_ne!(stored[0].agent, stored[1].agent);
}

#[test]
fn no_store_stores_nothing() {
    let project = weather_project();
    project.run(["run", "--no-store"]);
    assert!(!project.path().join(".karat").exists());
}

#[test]
fn masks_secrets_in_traces() {
    let secret = "hunter2hunter2";
    let project = project()
        .file("karat.json", json!({"agentEndpoint": "scripted:agent.json"}))
        .file(".env", format!("WEATHER_API_KEY={secret}\n"))
        .file("agent.json", script(&[(&format!("is it {secret}?"), &format!("ok, it is {secret}"))]))
        .file(
            "evals/x.golden.json",
            json!([case("gs-x-001", &format!("is it {secret}?"), json!({"responseContains": ["ok"]}))]),
        );
    let output = project.run(["run"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let store = store_location(&project);
    let stored_traces = traces(&store);
    let text =
        with_store(&store, async |store| store.trace(&stored_traces[0].head.trace_id).await.unwrap().unwrap().text);
    assert!(text.contains("ok, it is") && !text.contains(secret), "{text}");
    let bytes = std::fs::read(project.path().join(".karat/karat.db")).unwrap();
    assert!(!bytes.windows(secret.len()).any(|part| part == secret.as_bytes()));
}

#[test]
fn checks_the_store_before_sending_requests() {
    let project = weather_project().file("store/readme", "");
    let output = project.run(["run", "--store", "store"]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    assert!(output.stderr.contains("--no-store"), "{}", output.stderr);
    assert_eq!(project.files_in("evals/results", ".json").len(), 0);
    assert_eq!(project.run(["run", "--store", "store", "--no-store"]).code, project.run(["run"]).code);
}

#[cfg(unix)]
#[test]
fn a_store_error_during_the_run_loses_no_result() {
    let project = weather_project()
        .file("agent.sh", "cat >/dev/null\nwhile [ ! -e go ]; do sleep 0.05; done\necho '{\"response\": \"ok\"}'\n");
    let arguments = ["run", "--id", "gs-x-001", "--agent-endpoint", "command:sh agent.sh"];
    let running = project.command(arguments).start();
    let file = project.path().join(".karat/karat.db");
    while !file.exists() || runs(&store_location(&project)).is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&file);
        let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
        sqlx::raw_sql("drop table run_cases").execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    });
    project.write("go", "");
    let output = running.wait().expect("karat exits");
    let result = only_result(&project, "evals/results");
    assert_eq!(result["summary"]["passed"], 1, "{}", output.both());
    assert_eq!(output.code, Some(3), "{}", output.both());
    assert!(output.stderr.contains("error: the run is incomplete in the store: "), "{}", output.stderr);
    assert!(!output.stderr.contains("1 result file in"), "{}", output.stderr);
}

/// Makes the store reject traces whose id contains `part`.
fn reject_traces(project: &TempProject, part: &str) {
    let file = project.path().join(".karat/karat.db");
    let trigger = format!(
        "create trigger unwanted before insert on traces when new.trace_id like '%{part}%' \
         begin select raise(abort, 'no room for this one'); end"
    );
    crate::store_project::block_on(async {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&file);
        let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(trigger)).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    });
}

#[test]
fn a_rejected_trace_does_not_affect_others() {
    let project = weather_project();
    let before = project.run(["run"]);
    reject_traces(&project, "gs-x-001:2");
    let output = project.run(["run", "--trials", "3"]);
    assert_eq!(output.code, before.code, "{}", output.both());
    let warning = "warning: 1 trace not stored (gs-x-001): store error: no room for this one";
    assert!(output.unwrapped_stderr().contains(warning), "{}", output.stderr);
    let store = store_location(&project);
    let run = runs(&store).remove(0);
    assert!(run.ended_at.is_some() && run.cases == 3, "{run:?}");
    let stored: Vec<(String, u64, bool)> = cases(&store, &run.run_id)
        .into_iter()
        .filter(|case| case.case_id != "gs-x-003")
        .map(|case| (case.case_id, case.trial, case.trace_id.is_some()))
        .collect();
    let row = |id: &str, trial, has_trace| (id.to_owned(), trial, has_trace);
    let expected = [
        row("gs-x-001", 1, true),
        row("gs-x-001", 2, false),
        row("gs-x-001", 3, true),
        row("gs-x-002", 1, true),
        row("gs-x-002", 2, true),
        row("gs-x-002", 3, true),
    ];
    assert_eq!(stored, expected);
    let of_run = traces(&store).into_iter().filter(|trace| trace.head.trace_id.starts_with(&run.run_id)).count();
    assert_eq!(of_run, 5);
}

#[test]
fn summarises_rejected_traces_in_one_warning() {
    let many: Vec<Value> = (1..=7).map(|number| ok_case(&format!("gs-x-{number:03}"), "one")).collect();
    let project = weather_project().file("evals/x.golden.json", json!(many));
    assert_eq!(project.run(["run", "--id", "gs-x-001"]).code, Some(0));
    reject_traces(&project, "gs-x-");
    let output = project.run(["run", "--ascii"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let named = "warning: 7 traces not stored (gs-x-001, gs-x-002, gs-x-003, gs-x-004, gs-x-005, ...): ";
    assert!(output.unwrapped_stderr().contains(named), "{}", output.stderr);
    let store = store_location(&project);
    let run = runs(&store).remove(0);
    let stored = cases(&store, &run.run_id);
    assert_eq!((run.passed, stored.len()), (7, 7));
}

/// Traces of test runs are not production data.
#[test]
fn lists_traces_of_runs_only_on_request() {
    let project = weather_project();
    project.run(["run", "--id", "gs-x-001"]);
    insta::assert_snapshot!(project.run(["trace", "list"]).filtered(), @"
    exit: 4
    ----- stdout -----
    ----- stderr -----
    error: only traces of test runs match
    hint: pass --source runs or --source all to include the traces of test runs
    ");
    let trace =
        r#"{"trace_id": "production", "steps": [{"input": {"message": "hi"}, "output": {"response": "hello"}}]}"#;
    project.write("traces.jsonl", format!("{trace}\n"));
    assert_eq!(project.run(["trace", "import", "traces.jsonl"]).code, Some(0));
    let count = |source: &[&str]| {
        let arguments = ["trace", "list", "--format", "jsonl"].iter().chain(source);
        project.run(arguments.copied()).stdout.lines().count()
    };
    assert_eq!(count(&[]), 1);
    assert_eq!(count(&["--source", "runs"]), 1);
    assert_eq!(count(&["--source", "all"]), 2);
    let list = project.run(["trace", "list", "--source", "runs"]).stdout;
    let id = list.lines().nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    assert_eq!(project.run(["trace", "show", &id]).code, Some(0), "{list}");
}

#[test]
fn short_ids_of_traces_fit_80_columns_and_can_be_pasted() {
    let id = "gs-shipping-status-of-orders-001";
    let project = project()
        .file("karat.json", json!({"agentEndpoint": "scripted:agent.json"}))
        .file("agent.json", script(&[("a message that is much longer than the table", "ok")]))
        .file("evals/x.golden.json", json!([ok_case(id, "a message that is much longer than the table")]));
    for _ in 0..2 {
        assert_eq!(project.run(["run", "--quiet"]).code, Some(0));
    }
    let list = project.run(["trace", "list", "--source", "runs"]).stdout;
    assert!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
    let ids: Vec<&str> = list.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(ids.len(), 2, "{list}");
    for short in &ids {
        assert!(short.ends_with(&format!(":1:{id}:1")) && short.len() < 60, "{short}");
        let rated = project.command(["feedback", "add", short, "good"]).env("USER", "ada").run();
        assert_eq!(rated.code, Some(0), "{}", rated.both());
    }
    let ratings = project.run(["feedback", "list"]).stdout;
    assert!(ids.iter().all(|short| ratings.contains(short)), "{ratings}");
    let runs = project.run(["runs"]).stdout;
    assert!(runs.lines().all(|line| line.chars().count() <= 80), "{runs}");
}
