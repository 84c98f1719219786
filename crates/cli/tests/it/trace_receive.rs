//! `karat trace receive`: acknowledged spans are stored.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use karat_testkit::project::{RunningCommand, TempProject};
use karat_testkit::tools::TestTool;
use rstest::rstest;
use serde_json::{Value, json};

use crate::store_project::{Database, StoreProject};
use crate::support::project;

/// A running receiver.
struct Receiver {
    running: RunningCommand,
    address: String,
}

impl Receiver {
    fn start(project: &TempProject, arguments: &[&str]) -> Self {
        let arguments = [&["trace", "receive", "--listen", "127.0.0.1:0"], arguments].concat();
        let running = project.command(arguments).timeout(Duration::from_mins(5)).start();
        let started = Instant::now();
        let address = loop {
            let stderr = running.stderr_so_far();
            if let Some((_, rest)) = stderr.split_once("listening on http://")
                && let Some((address, _)) = rest.split_once(' ')
            {
                break address.to_owned();
            }
            assert!(started.elapsed() < Duration::from_secs(30), "the receiver does not listen: {stderr}");
            std::thread::sleep(Duration::from_millis(10));
        };
        Self { running, address }
    }

    /// Stops the receiver and returns its output.
    fn stop(self) -> karat_testkit::project::Output {
        self.running.interrupt();
        self.running.wait().expect("karat exits")
    }
}

/// Sends a request and returns the status, or `None` without a response.
fn post(address: &str, path: &str, body: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(address).ok()?;
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).ok()?;
    response.split(' ').nth(1)?.parse().ok()
}

/// Returns the span of a model call as OTLP JSON.
fn span(trace: &str, id: &str, response: &str) -> Value {
    let text = |key: &str, text: &str| json!({"key": key, "value": {"stringValue": text}});
    let messages = json!([{"role": "assistant", "parts": [{"type": "text", "content": response}]}]);
    json!({
        "traceId": trace,
        "spanId": id,
        "name": "chat m-1",
        "startTimeUnixNano": "1790000000000000000",
        "endTimeUnixNano": "1790000001000000000",
        "attributes": [
            text("gen_ai.operation.name", "chat"),
            text("gen_ai.request.model", "m-1"),
            text("gen_ai.output.messages", &messages.to_string()),
        ],
    })
}

fn export_request(spans: &[Value]) -> String {
    json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).to_string()
}

fn trace_id(number: u64) -> String {
    format!("{:016x}{number:016x}", 0xab)
}

fn list_traces(project: &TempProject) -> Vec<Value> {
    let output = project.run(["trace", "list", "--limit", "0", "--format", "json"]);
    assert!(output.code == Some(0) || output.code == Some(4), "{}", output.both());
    let list: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
    list["traces"].as_array().cloned().unwrap_or_default()
}

fn show_trace(project: &TempProject, id: &str) -> Value {
    let output = project.run(["trace", "show", id, "--format", "json"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    serde_json::from_str(&output.stdout).unwrap()
}

#[test]
fn prints_the_address_and_stored_traces() {
    let project = project();
    let receiver = Receiver::start(&project, &[]);
    let address = receiver.address.clone();
    let (id, other) = (trace_id(1), trace_id(2));
    let first = export_request(&[span(&id, "0000000000000001", "Hello."), span(&other, "0000000000000001", "Hi.")]);
    assert_eq!(post(&address, "/v1/traces", &first), Some(200));
    assert_eq!(post(&address, "/v1/traces", &export_request(&[span(&id, "0000000000000002", "Bye.")])), Some(200));
    assert_eq!(post(&address, "/v1/traces", "nonsense"), Some(400));
    assert_eq!(post(&address, "/v1/traces", "nonsense"), Some(400));
    let output = receiver.stop();
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert_eq!(output.stdout, "2 traces, 3 spans, 2 requests refused | 2 new\n");
    let stderr = output.stderr.replace(&address, "ADDRESS");
    insta::assert_snapshot!(stderr, @"
    listening on http://ADDRESS (OTLP over HTTP), storing in .karat/karat.db
    to send data from an OpenTelemetry SDK:
      export OTEL_EXPORTER_OTLP_ENDPOINT=http://ADDRESS
      export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf
    press Ctrl-C to stop
    warning: refused with 400: cannot parse the body: invalid JSON: starts with
      'nonsense'
    stopping: finishing open requests (press Ctrl-C again to stop now)
    next: 'karat trace list', 'karat trace show ID' or
      'karat eval run NAME --stored'
    ");
    let responses = |id: &str| -> Vec<Value> {
        let document = &show_trace(&project, id)["document"];
        document["steps"].as_array().unwrap().iter().map(|step| step["output"]["response"].clone()).collect()
    };
    assert_eq!((responses(&id), responses(&other)), (vec![json!("Hello."), json!("Bye.")], vec![json!("Hi.")]));
}

#[test]
fn verbose_logs_requests() {
    let receiver = Receiver::start(&project(), &["-vv"]);
    assert_eq!(
        post(&receiver.address, "/v1/traces", &export_request(&[span(&trace_id(1), "0000000000000001", "Hi.")])),
        Some(200)
    );
    assert_eq!(post(&receiver.address, "/v1/nothing", "{}"), Some(404));
    let output = receiver.stop();
    assert_eq!(output.code, Some(0), "{}", output.both());
    for request in [
        "/v1/traces}: karat_server::otlp::router: answered status=200",
        "/v1/nothing}: karat_server::otlp::router: answered status=404",
    ] {
        let logged = format!("request{{method=POST path={request}");
        assert!(output.stderr.contains(&logged), "{}", output.stderr);
    }
}

#[test]
fn does_not_wrap_commands_and_limits_refusal_messages() {
    let project = project().env("COLUMNS", "45");
    let receiver = Receiver::start(&project, &[]);
    let address = receiver.address.clone();
    for number in 10..23 {
        assert_eq!(post(&address, "/v1/traces", &format!("nonsense{number}")), Some(400));
    }
    let stderr = receiver.stop().stderr;
    assert!(stderr.contains("\n  export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf\n"), "{stderr}");
    assert!(stderr.contains(&format!("\n  export OTEL_EXPORTER_OTLP_ENDPOINT=http://{address}\n")), "{stderr}");
    assert_eq!(stderr.matches("refused with 400").count(), 10, "{stderr}");
    assert_eq!(stderr.matches("further reasons are not shown").count(), 1, "{stderr}");
}

#[test]
fn prints_events_as_json_lines() {
    let project = project();
    let receiver = Receiver::start(&project, &["--format", "jsonl", "--quiet"]);
    let address = receiver.address.clone();
    let id = trace_id(1);
    let body = export_request(&[span(&id, "0000000000000001", "Hello.")]);
    assert_eq!(post(&address, "/v1/traces", &body), Some(200));
    assert_eq!(post(&address, "/v1/traces", &body), Some(200));
    assert_eq!(post(&address, "/v1/traces", &export_request(&[span(&id, "0000000000000002", "Bye.")])), Some(200));
    assert_eq!(post(&address, "/v1/traces", &export_request(&[json!({"name": "of no trace"})])), Some(200));
    assert_eq!(post(&address, "/v1/logs", "{"), Some(400));
    let output = receiver.stop();
    assert_eq!(output.code, Some(0), "{}", output.both());
    let lines: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["listening", "stored", "stored", "stored", "refused", "refused", "stopped"]);
    assert_eq!(lines[0]["url"], format!("http://{address}"));
    let stored: Vec<(&Value, &Value, &Value)> =
        lines[1..4].iter().map(|line| (&line["change"], &line["trace_id"], &line["steps"])).collect();
    let id = json!(id);
    let (one_step, two_steps) = (json!(1), json!(2));
    let (added, unchanged, changed) = (json!("added"), json!("unchanged"), json!("changed"));
    assert_eq!(stored, [(&added, &id, &one_step), (&unchanged, &id, &one_step), (&changed, &id, &two_steps)]);
    assert_eq!((&lines[4]["status"], &lines[4]["rejected"]), (&json!(200), &json!(1)));
    assert_eq!(lines[5]["status"], 400);
    let expected = json!({
        "event": "stopped", "traces": 1, "added": 1, "changed": 0, "unchanged": 0, "spans": 3, "log_records": 0,
        "refused_requests": 1, "rejected": 1,
    });
    assert_eq!(lines[6], expected);
}

#[test]
fn received_spans_do_not_replace_a_whole_trace() {
    let project = project();
    let id = trace_id(1);
    let document = json!({"trace_id": id, "steps": [{"input": "Hi", "output": "Mine."}]});
    project.write("mine.jsonl", document.to_string());
    assert_eq!(project.run(["trace", "import", "mine.jsonl"]).code, Some(0));
    let receiver = Receiver::start(&project, &["--format", "jsonl", "--quiet"]);
    let body =
        export_request(&[span(&id, "0000000000000001", "Yours."), span(&trace_id(2), "0000000000000001", "New.")]);
    assert_eq!(post(&receiver.address, "/v1/traces", &body), Some(200));
    let output = receiver.stop();
    let lines: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let refused = lines.iter().find(|line| line["event"] == "refused").expect("a refused event");
    assert_eq!((&refused["status"], &refused["rejected"]), (&json!(200), &json!(1)));
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains(&format!("trace {id}: ")) && message.contains("from karat"), "{message}");
    let stopped = lines.last().unwrap();
    assert_eq!((&stopped["traces"], &stopped["spans"], &stopped["rejected"]), (&json!(1), &json!(1), &json!(1)));
    assert_eq!(show_trace(&project, &id)["document"], document);
}

#[test]
fn reports_a_port_in_use() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let project = project();
    let output = project.run(["trace", "receive", "--listen", &address]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    insta::assert_snapshot!(output.stderr.replace(&address, "ADDRESS"), @"
    error: cannot listen on ADDRESS: the port is in use
    hint: another receiver or an OpenTelemetry collector may be running
    hint: pass --listen 127.0.0.1:0 to use any free port
    ");
    assert!(!project.path().join(".karat").exists(), "a store was created");
    let output = project.run(["trace", "receive", "--listen", "http://localhost:4318"]);
    assert_eq!(output.code, Some(2), "{}", output.both());
    assert!(output.stderr.contains("did you mean 'localhost:4318'?"), "{}", output.stderr);
}

#[test]
fn warns_when_listening_on_all_interfaces() {
    let project = project();
    let running = project.command(["trace", "receive", "--listen", "0.0.0.0:0"]).start();
    let started = Instant::now();
    while !running.stderr_so_far().contains("warning: other machines can write to the store") {
        assert!(started.elapsed() < Duration::from_secs(30), "{}", running.stderr_so_far());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(running.stderr_so_far().contains("listening on http://127.0.0.1:"));
    running.interrupt();
    assert_eq!(running.wait().expect("karat exits").code, Some(0));
}

/// Another command reads the trace while the receiver runs.
#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgres(Database::Postgres)]
fn stores_spans_in_either_database(#[case] database: Database) {
    let store = StoreProject::new(database);
    let receiver = Receiver::start(&store.project, &[]);
    let id = trace_id(1);
    for (span_id, answer) in [("0000000000000001", "Hello."), ("0000000000000002", "Bye.")] {
        let body = export_request(&[span(&id, span_id, answer)]);
        assert_eq!(post(&receiver.address, "/v1/traces", &body), Some(200));
        assert_eq!(show_trace(&store.project, &id)["source"], "otlp");
    }
    let output = receiver.stop();
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert_eq!(output.stdout, "1 trace, 2 spans | 1 new\n");
    assert!(!output.both().contains(":karat@"), "{}", output.both());
    let steps = &show_trace(&store.project, &id)["document"]["steps"];
    let answers: Vec<&Value> = steps.as_array().unwrap().iter().map(|step| &step["output"]["response"]).collect();
    assert_eq!(answers, ["Hello.", "Bye."]);
    assert_eq!(store.dump().len(), 1);
}

/// Two receivers and four clients write spans of the same traces; no span is lost.
#[test]
fn two_receivers_share_a_store() {
    let project = project();
    let receivers = [Receiver::start(&project, &[]), Receiver::start(&project, &[])];
    let clients: Vec<_> = (1..=4u64)
        .map(|client| {
            let address = receivers[usize::from(client % 2 == 0)].address.clone();
            std::thread::spawn(move || {
                for trace in 0..10 {
                    let body = export_request(&[span(
                        &trace_id(trace),
                        &format!("{client:016x}"),
                        &format!("I am {client}."),
                    )]);
                    assert_eq!(post(&address, "/v1/traces", &body), Some(200));
                }
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
    for receiver in receivers {
        assert_eq!(receiver.stop().code, Some(0));
    }
    let traces = list_traces(&project);
    assert_eq!(traces.len(), 10);
    assert!(traces.iter().all(|trace| trace["steps"] == 4), "{traces:?}");
}

#[test]
fn acknowledged_traces_survive_a_kill() {
    let project = project();
    let acknowledged = Arc::new(Mutex::new(BTreeSet::new()));
    for round in 0..5u64 {
        let receiver = Receiver::start(&project, &["--quiet"]);
        let is_done = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..4u64)
            .map(|client| {
                let (address, acknowledged) = (receiver.address.clone(), Arc::clone(&acknowledged));
                let is_done = Arc::clone(&is_done);
                std::thread::spawn(move || {
                    for number in 0.. {
                        if is_done.load(Ordering::SeqCst) {
                            return;
                        }
                        let id = trace_id(round << 40 | client << 32 | number);
                        let body = export_request(&[span(&id, "0000000000000001", &"word ".repeat(200))]);
                        if post(&address, "/v1/traces", &body) == Some(200) {
                            acknowledged.lock().unwrap().insert(id);
                        }
                    }
                })
            })
            .collect();
        let before = acknowledged.lock().unwrap().len();
        let started = Instant::now();
        while acknowledged.lock().unwrap().len() < before + 20 {
            assert!(started.elapsed() < Duration::from_mins(1), "too few traces were acknowledged");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(37 * round));
        receiver.running.signal("KILL");
        is_done.store(true, Ordering::SeqCst);
        for client in clients {
            client.join().unwrap();
        }
    }
    let acknowledged = acknowledged.lock().unwrap();
    let stored: BTreeSet<String> =
        list_traces(&project).iter().map(|trace| trace["trace_id"].as_str().unwrap().to_owned()).collect();
    let lost: Vec<&String> = acknowledged.difference(&stored).collect();
    assert!(lost.is_empty(), "{} of {} acknowledged traces are lost", lost.len(), acknowledged.len());
    // Only requests in flight may be stored without acknowledgement.
    assert!(stored.len() - acknowledged.len() <= 4 * 5, "{} stored, {} acknowledged", stored.len(), acknowledged.len());
}

/// Requests in flight are stored and acknowledged.
#[test]
fn a_graceful_stop_loses_nothing() {
    let project = project();
    let receiver = Receiver::start(&project, &[]);
    let address = receiver.address.clone();
    let sending = std::thread::spawn(move || {
        let mut acknowledged = 0;
        for number in 0.. {
            match post(
                &address,
                "/v1/traces",
                &export_request(&[span(&trace_id(number), "0000000000000001", "Hello.")]),
            ) {
                Some(200) => acknowledged += 1,
                _ => return acknowledged,
            }
        }
        acknowledged
    });
    std::thread::sleep(Duration::from_millis(500));
    let output = receiver.stop();
    let acknowledged: u64 = sending.join().unwrap();
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(acknowledged > 0);
    assert_eq!(list_traces(&project).len() as u64, acknowledged);
    assert!(output.stdout.starts_with(&format!("{acknowledged} trace")), "{}", output.stdout);
}

/// Messages are in span attributes, or in log events of the current or the older conventions.
#[rstest]
#[case("attributes", "none")]
#[case("attributes", "gzip")]
#[case("attributes", "deflate")]
#[case("details", "gzip")]
#[case("events", "none")]
#[ignore = "needs opentelemetry-sdk"]
fn receives_from_the_python_sdk(#[case] messages: &str, #[case] compression: &str) {
    let python = TestTool::OpenTelemetry.command();
    let project = project();
    let receiver = Receiver::start(&project, &[]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fixtures/otel_agent.py");
    let agent = Command::new(&python[0])
        .args([script, messages])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", receiver.address))
        .env("OTEL_EXPORTER_OTLP_COMPRESSION", compression)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&agent.stderr).into_owned();
    assert!(agent.status.success() && stderr.is_empty(), "{stderr}");
    let id = String::from_utf8(agent.stdout).unwrap().trim().to_owned();
    let output = receiver.stop();
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stdout.starts_with("1 trace, 5 spans"), "{}", output.stdout);

    let trace = show_trace(&project, &id);
    assert_eq!((&trace["source"], &trace["session_id"]), (&json!("otlp"), &json!("conversation-7")));
    assert_eq!((&trace["steps"], &trace["tool_calls"], &trace["errors"]), (&json!(2), &json!(2), &json!(1)));
    assert_eq!((&trace["input_tokens"], &trace["output_tokens"]), (&json!(280), &json!(30)));
    let expected = r#"invoke_agent Weather
user: Wird es morgen in Köln regnen? 🌧
get_weather({"city":"Köln","day":"2026-11-17"}) = {"rain":true,"mm":4.5}
(gpt-5-mini-2026-08-07)
Ja, nehmen Sie einen Schirm mit.
log_answer({}) = null: the log did not answer
(gpt-5-mini-2026-08-07)
"#;
    assert_eq!(conversation(&trace["document"]), expected);
    // The text output shows the same.
    let output = project.run(["trace", "show", &id[..8]]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    for text in
        ["Wird es morgen in Köln regnen?", "get_weather", "Ja, nehmen Sie einen Schirm mit.", "the log did not answer"]
    {
        assert!(output.stdout.contains(text), "{text} is missing:\n{}", output.stdout);
    }
}

/// The SDK for JavaScript sends JSON.
#[rstest]
#[case("none")]
#[case("gzip")]
#[ignore = "needs @opentelemetry/sdk-trace"]
fn receives_from_the_javascript_sdk(#[case] compression: &str) {
    let node = TestTool::OpenTelemetryJs.command();
    let project = project();
    let receiver = Receiver::start(&project, &[]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fixtures/otel_agent.cjs");
    let agent = Command::new(&node[0])
        .arg(script)
        .env("NODE_PATH", &node[1])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", receiver.address))
        .env("OTEL_EXPORTER_OTLP_COMPRESSION", compression)
        .output()
        .unwrap();
    assert!(agent.status.success(), "{}", String::from_utf8_lossy(&agent.stderr));
    let id = String::from_utf8(agent.stdout).unwrap().trim().to_owned();
    assert_eq!(receiver.stop().code, Some(0));
    let expected = "invoke_agent Weather\nuser: Wird es morgen in Köln regnen? 🌧\nJa.\n(gpt-5-mini)\n";
    assert_eq!(conversation(&show_trace(&project, &id)["document"]), expected);
}

/// Renders messages and tool calls in order.
fn conversation(document: &Value) -> String {
    let mut text = format!("{}\n", document["name"].as_str().unwrap_or_default());
    for step in document["steps"].as_array().unwrap() {
        if let Some(message) = step["input"]["message"].as_str() {
            let _ = writeln!(text, "user: {message}");
        }
        if let Some(response) = step["output"]["response"].as_str().filter(|response| !response.is_empty()) {
            let _ = writeln!(text, "{response}");
        }
        for call in step["tool_calls"].as_array().unwrap() {
            let error = call["error"].as_str().map(|error| format!(": {error}")).unwrap_or_default();
            let _ =
                writeln!(text, "{}({}) = {}{error}", call["name"].as_str().unwrap(), call["arguments"], call["result"]);
        }
        let _ = writeln!(text, "({})", step["model"].as_str().unwrap_or_default());
    }
    text
}
