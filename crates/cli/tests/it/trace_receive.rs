//! `karat trace receive`: what is acknowledged is stored.

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

/// A receiver that listens.
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
            let said = running.stderr_so_far();
            if let Some((_, rest)) = said.split_once("listening on http://")
                && let Some((address, _)) = rest.split_once(' ')
            {
                break address.to_owned();
            }
            assert!(started.elapsed() < Duration::from_secs(30), "it never listens: {said}");
            std::thread::sleep(Duration::from_millis(10));
        };
        Self { running, address }
    }

    /// Asks it to stop, and returns what it wrote.
    fn stop(self) -> karat_testkit::project::Output {
        self.running.interrupt();
        self.running.wait().expect("it ends")
    }
}

/// Sends a body, and returns the status; none where no answer came.
fn post(address: &str, path: &str, body: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(address).ok()?;
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split(' ').nth(1)?.parse().ok()
}

/// A model's span, as JSON.
fn span(trace: &str, id: &str, response: &str) -> Value {
    let text = |key: &str, text: &str| json!({"key": key, "value": {"stringValue": text}});
    let said = json!([{"role": "assistant", "parts": [{"type": "text", "content": response}]}]);
    json!({
        "traceId": trace,
        "spanId": id,
        "name": "chat m-1",
        "startTimeUnixNano": "1790000000000000000",
        "endTimeUnixNano": "1790000001000000000",
        "attributes": [
            text("gen_ai.operation.name", "chat"),
            text("gen_ai.request.model", "m-1"),
            text("gen_ai.output.messages", &said.to_string()),
        ],
    })
}

fn spans(spans: &[Value]) -> String {
    json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).to_string()
}

fn trace_id(number: u64) -> String {
    format!("{:016x}{number:016x}", 0xab)
}

fn listed(project: &TempProject) -> Vec<Value> {
    let output = project.run(["trace", "list", "--limit", "0", "--format", "json"]);
    assert!(output.code == Some(0) || output.code == Some(4), "{}", output.both());
    let list: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
    list["traces"].as_array().cloned().unwrap_or_default()
}

fn shown(project: &TempProject, id: &str) -> Value {
    let output = project.run(["trace", "show", id, "--format", "json"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    serde_json::from_str(&output.stdout).unwrap()
}

#[test]
fn a_person_is_told_where_to_send_and_what_came() {
    let project = project();
    let receiver = Receiver::start(&project, &[]);
    let address = receiver.address.clone();
    let (id, other) = (trace_id(1), trace_id(2));
    let first = spans(&[span(&id, "0000000000000001", "Hello."), span(&other, "0000000000000001", "Hi.")]);
    assert_eq!(post(&address, "/v1/traces", &first), Some(200));
    assert_eq!(post(&address, "/v1/traces", &spans(&[span(&id, "0000000000000002", "Bye.")])), Some(200));
    assert_eq!(post(&address, "/v1/traces", "nonsense"), Some(400));
    assert_eq!(post(&address, "/v1/traces", "nonsense"), Some(400));
    let output = receiver.stop();
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert_eq!(output.stdout, "2 traces, 3 spans, 2 requests refused | 2 new\n");
    let said = output.stderr.replace(&address, "ADDRESS");
    insta::assert_snapshot!(said, @"
    listening on http://ADDRESS (OTLP over HTTP), storing in .karat/karat.db
    point an OpenTelemetry SDK here:
      export OTEL_EXPORTER_OTLP_ENDPOINT=http://ADDRESS
      export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf
    Ctrl-C ends
    warning: refused with 400: cannot parse the body: not JSON: it begins with
      'nonsense'
    stopping: what is under way is stored first; Ctrl-C again ends at once
    next: karat trace list, karat trace show ID, karat eval run NAME --stored
    ");
    let responses = |id: &str| -> Vec<Value> {
        let document = &shown(&project, id)["document"];
        document["steps"].as_array().unwrap().iter().map(|step| step["output"]["response"].clone()).collect()
    };
    assert_eq!((responses(&id), responses(&other)), (vec![json!("Hello."), json!("Bye.")], vec![json!("Hi.")]));
}

#[test]
fn requests_are_logged_when_asked_for() {
    let receiver = Receiver::start(&project(), &["-v"]);
    assert_eq!(
        post(&receiver.address, "/v1/traces", &spans(&[span(&trace_id(1), "0000000000000001", "Hi.")])),
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
fn what_is_copied_is_not_broken_and_what_is_left_out_is_said() {
    let project = project().env("COLUMNS", "45");
    let receiver = Receiver::start(&project, &[]);
    let address = receiver.address.clone();
    for number in 10..23 {
        assert_eq!(post(&address, "/v1/traces", &format!("nonsense{number}")), Some(400));
    }
    let said = receiver.stop().stderr;
    assert!(said.contains("\n  export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf\n"), "{said}");
    assert!(said.contains(&format!("\n  export OTEL_EXPORTER_OTLP_ENDPOINT=http://{address}\n")), "{said}");
    assert_eq!(said.matches("refused with 400").count(), 10, "{said}");
    assert_eq!(said.matches("further reasons are not shown").count(), 1, "{said}");
}

#[test]
fn a_program_is_told_line_by_line() {
    let project = project();
    let receiver = Receiver::start(&project, &["--format", "jsonl", "--quiet"]);
    let address = receiver.address.clone();
    let id = trace_id(1);
    let body = spans(&[span(&id, "0000000000000001", "Hello.")]);
    assert_eq!(post(&address, "/v1/traces", &body), Some(200));
    assert_eq!(post(&address, "/v1/traces", &body), Some(200));
    assert_eq!(post(&address, "/v1/traces", &spans(&[span(&id, "0000000000000002", "Bye.")])), Some(200));
    assert_eq!(post(&address, "/v1/traces", &spans(&[json!({"name": "of no trace"})])), Some(200));
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
    let (one, two) = (json!(1), json!(2));
    let (added, unchanged, changed) = (json!("added"), json!("unchanged"), json!("changed"));
    assert_eq!(stored, [(&added, &id, &one), (&unchanged, &id, &one), (&changed, &id, &two)]);
    assert_eq!((&lines[4]["status"], &lines[4]["rejected"]), (&json!(200), &json!(1)));
    assert_eq!(lines[5]["status"], 400);
    let expected = json!({
        "event": "stopped", "traces": 1, "added": 1, "changed": 0, "unchanged": 0, "spans": 3, "log_records": 0,
        "refused_requests": 1, "rejected": 1,
    });
    assert_eq!(lines[6], expected);
}

#[test]
fn what_is_sent_does_not_replace_a_whole_trace() {
    let project = project();
    let id = trace_id(1);
    let document = json!({"trace_id": id, "steps": [{"input": "Hi", "output": "Mine."}]});
    project.write("mine.jsonl", document.to_string());
    assert_eq!(project.run(["trace", "import", "mine.jsonl"]).code, Some(0));
    let receiver = Receiver::start(&project, &["--format", "jsonl", "--quiet"]);
    let body = spans(&[span(&id, "0000000000000001", "Yours."), span(&trace_id(2), "0000000000000001", "New.")]);
    assert_eq!(post(&receiver.address, "/v1/traces", &body), Some(200));
    let output = receiver.stop();
    let lines: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let refused = lines.iter().find(|line| line["event"] == "refused").expect("it is told");
    assert_eq!((&refused["status"], &refused["rejected"]), (&json!(200), &json!(1)));
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains(&format!("trace {id}: ")) && message.contains("from karat"), "{message}");
    let stopped = lines.last().unwrap();
    assert_eq!((&stopped["traces"], &stopped["spans"], &stopped["rejected"]), (&json!(1), &json!(1), &json!(1)));
    assert_eq!(shown(&project, &id)["document"], document);
}

#[test]
fn a_port_that_is_taken_is_said_to_be() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let project = project();
    let output = project.run(["trace", "receive", "--listen", &address]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    insta::assert_snapshot!(output.stderr.replace(&address, "ADDRESS"), @r"
    error: cannot listen on ADDRESS: the port is taken
    hint: another receiver or an OpenTelemetry collector may be there
    hint: --listen 127.0.0.1:0 takes any port that is free, and says which
    ");
    assert!(!project.path().join(".karat").exists(), "nothing was made");
    let output = project.run(["trace", "receive", "--listen", "http://localhost:4318"]);
    assert_eq!(output.code, Some(2), "{}", output.both());
    assert!(output.stderr.contains("did you mean 'localhost:4318'?"), "{}", output.stderr);
}

#[test]
fn who_lets_others_in_is_warned() {
    let project = project();
    let running = project.command(["trace", "receive", "--listen", "0.0.0.0:0"]).start();
    let started = Instant::now();
    while !running.stderr_so_far().contains("warning: other machines can write to the store") {
        assert!(started.elapsed() < Duration::from_secs(30), "{}", running.stderr_so_far());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(running.stderr_so_far().contains("listening on http://127.0.0.1:"));
    running.interrupt();
    assert_eq!(running.wait().expect("it ends").code, Some(0));
}

/// What several requests sent of a trace is read from the same store by another command.
#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgres(Database::Postgres)]
fn either_database_takes_what_is_sent(#[case] database: Database) {
    let store = StoreProject::new(database);
    let receiver = Receiver::start(&store.project, &[]);
    let id = trace_id(1);
    for (span_id, answer) in [("0000000000000001", "Hello."), ("0000000000000002", "Bye.")] {
        let body = spans(&[span(&id, span_id, answer)]);
        assert_eq!(post(&receiver.address, "/v1/traces", &body), Some(200));
        // It is there before anybody stops.
        assert_eq!(shown(&store.project, &id)["source"], "otlp");
    }
    let output = receiver.stop();
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert_eq!(output.stdout, "1 trace, 2 spans | 1 new\n");
    assert!(!output.both().contains(":karat@"), "{}", output.both());
    let steps = &shown(&store.project, &id)["document"]["steps"];
    let answers: Vec<&Value> = steps.as_array().unwrap().iter().map(|step| &step["output"]["response"]).collect();
    assert_eq!(answers, ["Hello.", "Bye."]);
    assert_eq!(store.dump().len(), 1);
}

/// Two receivers and four clients write the spans of the same traces: each is whole in the end.
#[test]
fn two_receivers_share_a_store() {
    let project = project();
    let receivers = [Receiver::start(&project, &[]), Receiver::start(&project, &[])];
    let clients: Vec<_> = (1..=4u64)
        .map(|client| {
            let address = receivers[usize::from(client % 2 == 0)].address.clone();
            std::thread::spawn(move || {
                for trace in 0..10 {
                    let body = spans(&[span(&trace_id(trace), &format!("{client:016x}"), &format!("I am {client}."))]);
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
    let traces = listed(&project);
    assert_eq!(traces.len(), 10);
    assert!(traces.iter().all(|trace| trace["steps"] == 4), "{traces:?}");
}

/// Whatever was acknowledged before the receiver was killed is there.
#[test]
fn what_is_acknowledged_survives_a_kill() {
    let project = project();
    let acknowledged = Arc::new(Mutex::new(BTreeSet::new()));
    for round in 0..5u64 {
        let receiver = Receiver::start(&project, &["--quiet"]);
        let is_over = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..4u64)
            .map(|client| {
                let (address, acknowledged) = (receiver.address.clone(), Arc::clone(&acknowledged));
                let is_over = Arc::clone(&is_over);
                std::thread::spawn(move || {
                    for number in 0.. {
                        if is_over.load(Ordering::SeqCst) {
                            return;
                        }
                        let id = trace_id(round << 40 | client << 32 | number);
                        let body = spans(&[span(&id, "0000000000000001", &"word ".repeat(200))]);
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
            assert!(started.elapsed() < Duration::from_mins(1), "hardly anything is acknowledged");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(37 * round));
        receiver.running.signal("KILL");
        is_over.store(true, Ordering::SeqCst);
        for client in clients {
            client.join().unwrap();
        }
    }
    let acknowledged = acknowledged.lock().unwrap();
    let stored: BTreeSet<String> =
        listed(&project).iter().map(|trace| trace["trace_id"].as_str().unwrap().to_owned()).collect();
    let lost: Vec<&String> = acknowledged.difference(&stored).collect();
    assert!(lost.is_empty(), "{} of {} acknowledged traces are lost", lost.len(), acknowledged.len());
    // What was stored and not acknowledged is at most what was under way.
    assert!(stored.len() - acknowledged.len() <= 4 * 5, "{} stored, {} acknowledged", stored.len(), acknowledged.len());
}

/// What is under way when it is asked to stop is stored and acknowledged.
#[test]
fn an_end_loses_nothing() {
    let project = project();
    let receiver = Receiver::start(&project, &[]);
    let address = receiver.address.clone();
    let sending = std::thread::spawn(move || {
        let mut acknowledged = 0;
        for number in 0.. {
            match post(&address, "/v1/traces", &spans(&[span(&trace_id(number), "0000000000000001", "Hello.")])) {
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
    assert_eq!(listed(&project).len() as u64, acknowledged);
    assert!(output.stdout.starts_with(&format!("{acknowledged} trace")), "{}", output.stdout);
}

/// OpenTelemetry's own SDK and exporter send an agent's spans, and its messages wherever the conventions put them.
#[rstest]
#[case("attributes", "none")]
#[case("attributes", "gzip")]
#[case("attributes", "deflate")]
#[case("details", "gzip")]
#[case("events", "none")]
#[ignore = "needs opentelemetry-sdk"]
fn the_sdk_of_opentelemetry_is_understood(#[case] messages: &str, #[case] compression: &str) {
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
    let complaints = String::from_utf8_lossy(&agent.stderr).into_owned();
    assert!(agent.status.success() && complaints.is_empty(), "{complaints}");
    let id = String::from_utf8(agent.stdout).unwrap().trim().to_owned();
    let output = receiver.stop();
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stdout.starts_with("1 trace, 5 spans"), "{}", output.stdout);

    let shown = shown(&project, &id);
    assert_eq!((&shown["source"], &shown["session_id"]), (&json!("otlp"), &json!("conversation-7")));
    assert_eq!((&shown["steps"], &shown["tool_calls"], &shown["errors"]), (&json!(2), &json!(2), &json!(1)));
    assert_eq!((&shown["input_tokens"], &shown["output_tokens"]), (&json!(280), &json!(30)));
    let expected = r#"invoke_agent Weather
user: Wird es morgen in Köln regnen? 🌧
get_weather({"city":"Köln","day":"2026-11-17"}) = {"rain":true,"mm":4.5}
(gpt-5-mini-2026-08-07)
Ja, nehmen Sie einen Schirm mit.
log_answer({}) = null: the log did not answer
(gpt-5-mini-2026-08-07)
"#;
    assert_eq!(conversation(&shown["document"]), expected);
    // A person sees the same.
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
fn the_sdk_for_javascript_is_understood(#[case] compression: &str) {
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
    assert_eq!(conversation(&shown(&project, &id)["document"]), expected);
}

/// Returns what was said and done, in order.
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
