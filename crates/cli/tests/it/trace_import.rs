//! `karat trace import`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use karat_testkit::project::TempProject;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;
use rstest::rstest;
use serde_json::{Value, json};
#[cfg(unix)]
use sqlx::{Connection as _, SqliteConnection};

#[cfg(unix)]
use crate::store_project::block_on;
use crate::store_project::{Database, StoreProject};
use crate::support::project;

/// Returns the path of a fixture of the traces crate.
pub(crate) fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces/tests/fixtures").join(path)
}

/// Returns a JSON line with a trace that calls tools.
pub(crate) fn weather(id: &str, city: &str) -> String {
    let call = json!({"name": "get_weather", "arguments": {"city": city}, "result": {"sky": "rain"}, "id": "c1"});
    let failed = json!({"name": "get_wind", "arguments": {"city": city}, "error": "no such station"});
    let trace = json!({
        "trace_id": id,
        "started_at": "2026-11-16T12:00:00Z",
        "ended_at": "2026-11-16T12:00:01.5Z",
        "model": "m-1",
        "session_id": "s-1",
        "steps": [
            {"input": {"message": format!("Will it rain in {city}?")}, "output": {"response": ""},
             "tool_calls": [call, failed], "error": null},
            {"input": {"message": null}, "output": {"response": format!("It rains in {city}.")}, "tool_calls": [], "error": null}
        ]
    });
    format!("{trace}\n")
}

/// Returns OTLP JSON with one span of a trace.
fn span(trace: &str, span: &str, parent: Option<&str>, attributes: &[(&str, Value)]) -> Value {
    let attribute = |(key, value): &(&str, Value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        json!({"key": key, "value": {"stringValue": text}})
    };
    let start = 1_700_000_000_000_000_000_u64 + u64::from_str_radix(span, 16).unwrap() * 1_000_000_000;
    json!({"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {"name": "t"}, "spans": [{
        "traceId": trace, "spanId": span, "parentSpanId": parent.unwrap_or(""), "name": format!("span {span}"),
        "startTimeUnixNano": start.to_string(), "endTimeUnixNano": (start + 500_000_000).to_string(),
        "attributes": attributes.iter().map(attribute).collect::<Vec<_>>(),
    }]}]}]})
}

fn agent_spans() -> Vec<Value> {
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let chat = |id: &str, message: &str, answer: &str| {
        let input = json!([{"role": "user", "parts": [{"type": "text", "content": message}]}]);
        let output = json!([{"role": "assistant", "parts": [{"type": "text", "content": answer}]}]);
        let attributes = [
            ("gen_ai.operation.name", json!("chat")),
            ("gen_ai.request.model", json!("m-2")),
            ("gen_ai.input.messages", input),
            ("gen_ai.output.messages", output),
        ];
        span(trace, id, Some("0000000000000001"), &attributes)
    };
    vec![
        span(trace, "0000000000000001", None, &[("gen_ai.operation.name", json!("invoke_agent"))]),
        chat("0000000000000002", "Rain?", "Let me look."),
        chat("0000000000000003", "And wind?", "None."),
    ]
}

fn import<const N: usize>(project: &TempProject, arguments: [&str; N]) -> (Option<i32>, Value) {
    let all = ["trace", "import", "--format", "json"].into_iter().chain(arguments);
    let output = project.run(all);
    let report = serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", output.both()));
    (output.code, report)
}

fn counts(report: &Value) -> (u64, u64, u64) {
    let count = |name: &str| report[name].as_u64().unwrap();
    (count("added"), count("changed"), count("unchanged"))
}

#[test]
fn counts_unread_tool_calls() {
    let output =
        json!([{"role": "assistant", "tool_calls": [{"id": "1", "what": "rain"}, {"id": "2", "what": "wind"}]}]);
    let input = json!([{"role": "user", "content": "Rain?"}]);
    let attributes = [
        ("gen_ai.operation.name", json!("chat")),
        ("gen_ai.input.messages", input),
        ("gen_ai.output.messages", output),
    ];
    let span = span("4bf92f3577b34da6a3ce929d0e0e4736", "0000000000000001", None, &attributes);
    let project = project().file("spans.json", span);
    let output = project.run(["trace", "import", "spans.json", "--dry-run"]);
    assert!(
        output.stdout.contains("  2 entries of 'tool_calls' not understood: listed in metadata.unread_tool_calls"),
        "{}",
        output.both()
    );
    assert_eq!(import(&project, ["spans.json"]).1["unread_tool_calls"], 2);
}

#[test]
fn reports_imported_and_refused_traces() {
    let project = project()
        .file("traces/b.jsonl", [weather("w-1", "Oslo"), weather("w-2", "Rome")].concat())
        .file("traces/a/notes.txt", "not a trace")
        .file(
            "traces/broken.jsonl",
            format!("{}{{\"trace_id\": \"cut\n[]\n{}", weather("w-3", "Paris"), weather("w-4", "Kyiv")),
        )
        .file("traces/other.json", "{\"hello\": 1}");
    let output = project.run(["trace", "import", "traces"]);
    insta::assert_snapshot!(output.filtered(), @"
    exit: 1
    ----- stdout -----
    4 traces added, 0 changed, 0 unchanged (karat 4)
      8 steps, 8 tool calls to 2 tools, 4 errors
    3 refused
      traces/broken.jsonl, line 2: invalid JSON: unexpected end of input
      traces/broken.jsonl, line 3: unrecognised trace format
      traces/other.json: unrecognised trace format (line 1)
    1 file skipped by name: traces/a/notes.txt
    ----- stderr -----
    expected a document with 'trace_id' and 'steps' (karat), 'resourceSpans',
    'resourceLogs' or 'batches' (otlp), 'data' with 'traceID' and 'spans' (jaeger),
    'trace' with 'observations' (langfuse), runs with 'run_type' (langsmith),
    'messages' (openai, anthropic), 'traj' with 'reward' (tau-bench), 'simulations'
    (tau2-bench), 'eval' with 'samples' (inspect), 'info' with 'data' (mlflow),
    'trace.span' objects (openai-agents), session files (claude-code, codex),
    'events' or 'eval_cases' (adk), 'trajectory' (swe-agent), 'actual_output',
    'turns' or 'testCases' (deepeval); pass --from to set the format
    next: 'karat trace list', 'karat trace show ID' or
      'karat eval run NAME --stored'
    ");
    let again = project.run(["trace", "import", "traces/b.jsonl"]);
    insta::assert_snapshot!(again.filtered(), @"
    exit: 0
    ----- stdout -----
    0 traces added, 0 changed, 2 unchanged (karat 2)
      4 steps, 4 tool calls to 2 tools, 2 errors
    ----- stderr -----
    ");
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgres(Database::Postgres)]
fn a_repeated_import_changes_nothing(#[case] database: Database) {
    let store = StoreProject::new(database);
    let project = &store.project;
    let spans = agent_spans();
    let lines: String = spans.iter().map(|span| span.to_string() + "\n").collect();
    project.write("otlp.jsonl", lines);
    project.write("w.jsonl", [weather("w-1", "Oslo"), weather("w-2", "Rome")].concat());
    let langfuse = fixture("langfuse");
    let arguments = ["otlp.jsonl", "w.jsonl", langfuse.to_str().unwrap(), "--feedback"];
    let (_, first) = import(project, arguments);
    assert_eq!(counts(&first), (13, 0, 0), "{first}");
    let before = store.dump();
    let (_, second) = import(project, arguments);
    assert_eq!(counts(&second), (0, 0, 13), "{second}");
    assert_eq!(store.dump(), before);
    store.assert_integrity();
}

#[rstest]
#[case::in_order(&[0, 1, 2])]
#[case::backwards(&[2, 1, 0])]
#[case::twice(&[1, 0, 1, 2, 0])]
fn assembles_spans_in_any_order(#[case] order: &[usize]) {
    let together = StoreProject::new(Database::Sqlite);
    let spans = agent_spans();
    let lines: String = spans.iter().map(|span| span.to_string() + "\n").collect();
    together.project.write("all.jsonl", lines);
    assert_eq!(import(&together.project, ["all.jsonl"]).0, Some(0));
    let separate = StoreProject::new(Database::Sqlite);
    for (number, index) in order.iter().enumerate() {
        separate.project.write("one.json", spans[*index].to_string());
        let (code, report) = import(&separate.project, ["one.json"]);
        assert_eq!((code, report["added"].as_u64()), (Some(0), Some(u64::from(number == 0))), "{report}");
    }
    assert_eq!(separate.dump(), together.dump());
    let document: Value = serde_json::from_str(together.dump()[0]["document"].as_str().unwrap()).unwrap();
    assert_eq!(document["steps"].as_array().unwrap().len(), 2);
}

#[test]
fn reads_compressed_files_and_stdin() {
    let project = project();
    project.write("w.jsonl.gz", gzip(weather("w-1", "Oslo").as_bytes()).as_slice());
    let (code, report) = import(&project, ["w.jsonl.gz"]);
    assert_eq!((code, counts(&report)), (Some(0), (1, 0, 0)));
    let piped = project.command(["trace", "import", "-", "--from", "karat", "--format", "json"]);
    let output = piped.stdin(weather("w-1", "Oslo") + &weather("w-2", "Rome")).run();
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((output.code, counts(&report)), (Some(0), (1, 0, 1)));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// SDKs send one message; the Collector writes files of length-prefixed messages.
#[rstest]
#[case::request("export.pb", false, false)]
#[case::compressed_request("export.pb.gz", false, true)]
#[case::any_name("captured", false, false)]
#[case::compressed_any_name("captured.bin", false, true)]
#[case::collector_file("traces.binpb", true, false)]
#[case::compressed_collector_file("traces.binpb.gz", true, true)]
fn detects_protobuf_by_content(#[case] name: &str, #[case] prefixed: bool, #[case] compressed: bool) {
    let requests: Vec<ExportTraceServiceRequest> =
        agent_spans().into_iter().map(|span| serde_json::from_value(span).unwrap()).collect();
    let bytes: Vec<u8> = if prefixed {
        let message = |request: &ExportTraceServiceRequest| {
            let bytes = request.encode_to_vec();
            [&u32::try_from(bytes.len()).unwrap().to_be_bytes()[..], &bytes].concat()
        };
        requests.iter().flat_map(message).collect()
    } else {
        let resource_spans = requests.into_iter().flat_map(|request| request.resource_spans).collect();
        ExportTraceServiceRequest { resource_spans }.encode_to_vec()
    };
    let as_protobuf = StoreProject::new(Database::Sqlite);
    as_protobuf.project.write(name, if compressed { gzip(&bytes) } else { bytes.clone() }.as_slice());
    let (code, report) = import(&as_protobuf.project, [name]);
    assert_eq!((code, counts(&report), &report["sources"]), (Some(0), (1, 0, 0), &json!({"otlp": 1})), "{report}");
    let as_json = StoreProject::new(Database::Sqlite);
    as_json.project.write("all.json", json!(agent_spans()).to_string());
    assert_eq!(import(&as_json.project, ["all.json"]).0, Some(0));
    assert_eq!(as_protobuf.dump(), as_json.dump());
    // A truncated copy changes nothing; of several messages, the complete ones are read.
    as_protobuf.project.write("cut.pb", &bytes[..bytes.len() - 7]);
    let (code, report) = import(&as_protobuf.project, ["cut.pb", "--from", "otlp"]);
    assert_eq!((code, counts(&report)), (Some(1), (0, 0, u64::from(prefixed))), "{report}");
    assert_eq!(report["refused"].as_array().unwrap().len(), 1, "{report}");
    assert!(report["refused"][0]["message"].as_str().unwrap().contains("unexpected end of input"), "{report}");
    assert_eq!(as_protobuf.dump(), as_json.dump());
}

#[cfg(unix)]
#[test]
fn reports_unreadable_files_and_imports_the_rest() {
    let project = project().file("traces/good.jsonl", weather("w-1", "Oslo"));
    std::os::unix::fs::symlink("nowhere", project.path().join("traces/gone.jsonl")).unwrap();
    let output = project.run(["trace", "import", "traces"]);
    insta::assert_snapshot!(output.filtered(), @"
    exit: 3
    ----- stdout -----
    1 trace added, 0 changed, 0 unchanged (karat 1)
      2 steps, 2 tool calls to 2 tools, 1 error
    1 refused
      traces/gone.jsonl: No such file or directory (os error 2)
    ----- stderr -----
    ");
}

#[rstest]
#[case(&["trace", "import", "missing.jsonl"], 2)]
#[case(&["trace", "import"], 2)]
#[case(&["trace", "import", "empty", "--from", "langfuze"], 2)]
#[case(&["trace", "import", "-", "-"], 2)]
#[case(&["trace", "import", "empty"], 4)]
#[case(&["trace", "import", "--from", "langfuse", "--url", "http://localhost:1"], 2)]
#[case(&["trace", "import", "--from", "openai", "--url", "http://localhost:1"], 2)]
#[case(&["trace", "import", "w.jsonl", "--store", "mysql://x"], 2)]
#[case(&["trace", "import", "w.jsonl", "--store", "w.jsonl"], 3)]
fn errors_have_exit_codes(#[case] arguments: &[&str], #[case] code: i32) {
    let project = project().file("empty/nothing.txt", "").file("w.jsonl", weather("w-1", "Oslo"));
    let output = project.run(arguments.iter().copied());
    assert_eq!(output.code, Some(code), "{}", output.both());
    assert!(output.stderr.contains("error:"), "{}", output.stderr);
    assert!(!project.path().join(".karat/karat.db").exists() || code == 4);
}

#[test]
fn a_dry_run_stores_nothing() {
    let project = project().file("w.jsonl", weather("w-1", "Oslo"));
    let output = project.run(["trace", "import", "w.jsonl", "--dry-run"]);
    insta::assert_snapshot!(output.filtered(), @"
    exit: 0
    ----- stdout -----
    1 trace read, none stored (karat 1)
      2 steps, 2 tool calls to 2 tools, 1 error
    ----- stderr -----
    ");
    assert!(!project.path().join(".karat").exists());
    let output = project.run(["trace", "import", "w.jsonl", "--feedback"]);
    assert!(output.stdout.contains("  no ratings found\n"), "{}", output.both());
}

#[test]
fn stores_the_last_of_duplicate_traces() {
    let store = StoreProject::new(Database::Sqlite);
    store.project.write("w.jsonl", weather("w-1", "Oslo") + &weather("w-1", "Rome"));
    for expected in [(1, 0, 0), (0, 0, 1)] {
        let (code, report) = import(&store.project, ["w.jsonl"]);
        assert_eq!((code, counts(&report), report["superseded"].as_u64()), (Some(0), expected, Some(1)));
    }
    assert_eq!(store.dump()[0]["head"]["input_preview"], "Will it rain in Rome?");
}

/// A client of the receiver or another export must not replace a stored trace that merely has the same id.
#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgres(Database::Postgres)]
fn spans_and_whole_traces_do_not_replace_each_other(#[case] database: Database) {
    let store = StoreProject::new(database);
    let id = "4bf92f3577b34da6a3ce929d0e0e4736";
    let spans: String = agent_spans().iter().map(|span| span.to_string() + "\n").collect();
    for (first, second, from, refused) in [
        (weather(id, "Oslo"), spans.clone(), "karat", "a whole trace with this id from karat is already stored"),
        (
            spans.replace(id, &"ab".repeat(16)),
            weather(&"ab".repeat(16), "Oslo"),
            "otlp",
            "from otlp are already stored: a whole trace",
        ),
    ] {
        store.project.write("first.jsonl", first.clone());
        store.project.write("second.jsonl", second.clone());
        assert_eq!(import(&store.project, ["first.jsonl"]).0, Some(0));
        let before = store.dump();
        let (code, report) = import(&store.project, ["second.jsonl"]);
        assert_eq!((code, counts(&report)), (Some(1), (0, 0, 0)), "{report}");
        let message = report["refused"][0]["message"].as_str().unwrap();
        assert!(message.contains(refused), "{message}");
        assert!(report["refused"][0]["place"].as_str().unwrap().starts_with("trace "), "{report}");
        assert_eq!(store.dump(), before);
        // Both in one file: the stored trace is unchanged.
        store.project.write("both.jsonl", second + &first);
        let (code, report) = import(&store.project, ["both.jsonl"]);
        assert_eq!((code, counts(&report), &report["sources"][from]), (Some(1), (0, 0, 1), &json!(1)), "{report}");
        assert_eq!(store.dump(), before);
    }
}

#[test]
fn traces_of_different_sources_do_not_replace_each_other() {
    let store = StoreProject::new(Database::Sqlite);
    let log = |content: Value| {
        let messages = json!([{"role": "user", "content": content}, {"role": "assistant", "content": "Hi."}]);
        json!({"trace_id": "w-1", "messages": messages}).to_string()
    };
    store.project.write("log.jsonl", log(json!("Hello?")));
    store.project.write("w.jsonl", weather("w-1", "Oslo"));
    assert_eq!(import(&store.project, ["log.jsonl", "--from", "openai"]).0, Some(0));
    let before = store.dump();
    let (code, report) = import(&store.project, ["w.jsonl"]);
    assert_eq!((code, counts(&report)), (Some(1), (0, 0, 0)), "{report}");
    let message = report["refused"][0]["message"].as_str().unwrap();
    assert!(message.contains("from openai is already stored: a trace from karat"), "{message}");
    assert_eq!(store.dump(), before);
    // Only some messages show whether a log is from OpenAI or Anthropic, so one may replace the other.
    store.project.write("log.jsonl", log(json!([{"type": "text", "text": "Hello again?"}])));
    let (code, report) = import(&store.project, ["log.jsonl", "--from", "anthropic"]);
    assert_eq!((code, counts(&report)), (Some(0), (0, 1, 0)), "{report}");
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgres(Database::Postgres)]
fn concurrent_imports_lose_no_spans(#[case] database: Database) {
    let store = StoreProject::new(database);
    let lines: String = (0..400).map(|number| weather(&format!("w-{number}"), "Oslo")).collect();
    store.project.write("w.jsonl", lines);
    // The files have different spans of the same traces.
    for (name, range) in [("a.jsonl", 0..2), ("b.jsonl", 1..3)] {
        let mut lines = String::new();
        for number in 1..=60 {
            for span in &agent_spans()[range.clone()] {
                let id = format!("{number:032x}");
                lines += &span.to_string().replace("4bf92f3577b34da6a3ce929d0e0e4736", &id);
                lines += "\n";
            }
        }
        store.project.write(name, lines);
    }
    let start = |spans: &str| store.project.command(["trace", "import", "w.jsonl", spans, "--format", "json"]).start();
    let running = [start("a.jsonl"), start("b.jsonl")];
    for output in running.map(|process| process.wait().unwrap()) {
        assert_eq!(output.code, Some(0), "{}", output.both());
    }
    let rows = store.dump();
    assert_eq!(rows.len(), 460);
    let spans = rows.iter().filter(|row| row["source"] == "otlp");
    for row in spans {
        let raw: Value = serde_json::from_str(row["raw"].as_str().unwrap()).unwrap();
        assert_eq!(raw["spans"].as_object().unwrap().len(), 3, "spans were lost: {raw}");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_import_stores_what_it_read() {
    let store = StoreProject::new(Database::Sqlite);
    let pipe = store.project.path().join("pipe.jsonl");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let running = store.project.command(["trace", "import", "pipe.jsonl"]).start();
    let mut writer = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    writer.write_all((weather("w-1", "Oslo") + &weather("w-2", "Rome")).as_bytes()).unwrap();
    writer.flush().unwrap();
    // Traces are written within a second.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !store.project.path().join(".karat/karat.db").exists() || store.dump().len() < 2 {
        assert!(std::time::Instant::now() < deadline, "traces from the pipe were not stored");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    running.interrupt();
    let output = running.wait().unwrap();
    insta::assert_snapshot!(output.filtered(), @"
    exit: 130
    ----- stdout -----
    2 traces added, 0 changed, 0 unchanged (karat 2)
      4 steps, 4 tool calls to 2 tools, 2 errors
    interrupted: the traces counted here are stored; run the same command again to
    continue
    ----- stderr -----
    ");
    drop(writer);
    assert_eq!(store.dump().len(), 2);
}

#[cfg(unix)]
#[rstest]
#[case(&["trace", "import", "w.jsonl"])]
#[case(&["trace", "receive", "--listen", "127.0.0.1:0"])]
#[case(&["eval", "run", "--stored"])]
fn an_interrupt_ends_the_wait_for_a_locked_store(#[case] arguments: &[&str]) {
    let project = project().file("w.jsonl", weather("w-1", "Oslo")).file(".karat/karat.db", "");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(project.path().join(".karat/karat.db"));
    let lock = block_on(async {
        let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
        sqlx::raw_sql("begin exclusive").execute(&mut connection).await.unwrap();
        connection
    });
    let running = project.command(arguments.iter().copied()).start();
    // There is no output to wait for.
    std::thread::sleep(std::time::Duration::from_secs(2));
    let interrupted_at = std::time::Instant::now();
    running.interrupt();
    let output = running.wait().expect("karat exits");
    assert_eq!(output.code, Some(130), "{}", output.both());
    assert!(interrupted_at.elapsed() < std::time::Duration::from_secs(20), "{:?}", interrupted_at.elapsed());
    drop(lock);
}

#[test]
fn reports_files_without_traces() {
    let project = project().file("w.jsonl", weather("w-1", "Oslo")).file("empty.jsonl", "").file("blank.jsonl", "\n\n");
    let output = project.run(["trace", "import", "w.jsonl", "empty.jsonl"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stderr.contains("1 file without traces: empty.jsonl\n"), "{}", output.stderr);
    let output = project.run(["trace", "import", "blank.jsonl", "w.jsonl", "empty.jsonl"]);
    assert!(output.stderr.contains("2 files without traces: blank.jsonl, empty.jsonl\n"), "{}", output.stderr);
    let output = project.run(["trace", "import", "w.jsonl"]);
    assert!(!output.stderr.contains("without traces"), "{}", output.stderr);
}

#[test]
fn imports_rewards_as_feedback_on_request() {
    let store = StoreProject::new(Database::Sqlite);
    let message = |role: &str, content: &str| json!({"role": role, "content": content});
    let run = |task: u64, reward: f64| {
        let traj = [message("system", "Help."), message("user", "Hi"), message("assistant", "Hello")];
        json!({"task_id": task, "trial": 0, "reward": reward, "info": {}, "traj": traj})
    };
    store.project.write("runs.json", json!([run(1, 1.0), run(2, 0.0)]).to_string());
    let (code, report) = import(&store.project, ["runs.json"]);
    assert_eq!((code, &report["feedback"]), (Some(0), &json!({"found": 2, "asked": false, "added": 0})));
    for added in [2, 0] {
        let (_, report) = import(&store.project, ["runs.json", "--feedback"]);
        assert_eq!(report["feedback"], json!({"found": 2, "asked": true, "added": added}));
    }
    let ratings: Vec<Value> = store.dump().iter().map(|row| row["feedback"][0]["rating"].clone()).collect();
    assert_eq!(ratings, ["positive", "negative"]);
}
