//! `karat trace import --from langfuse --url …`: paging and incremental imports.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use karat_testkit::project::{Output, TempProject};
use serde_json::{Value, json};

use crate::support::project;

/// A Langfuse server with one trace per day of January. Without traces, it rejects all keys.
struct Server {
    url: String,
    targets: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(traces: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let targets = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&targets);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let log = Arc::clone(&log);
                std::thread::spawn(move || serve(&stream, traces, &log));
            }
        });
        Self { url, targets }
    }

    /// Returns and clears the start times of list requests.
    fn requested_start_times(&self) -> Vec<String> {
        let targets = std::mem::take(&mut *self.targets.lock().unwrap());
        let lists = targets.iter().filter(|target| target.starts_with("/api/public/traces?"));
        lists.map(|target| parameter(target, "fromTimestamp").unwrap_or_default().replace("%3A", ":")).collect()
    }
}

fn parameter<'t>(target: &'t str, name: &str) -> Option<&'t str> {
    target.split_once('?')?.1.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

fn serve(mut stream: &TcpStream, traces: u32, log: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
    let Some(first) = lines.next() else { return };
    let authorised = traces > 0 && lines.any(|line| line.to_ascii_lowercase().starts_with("authorization: basic "));
    let target = first.split(' ').nth(1).unwrap_or_default().to_owned();
    log.lock().unwrap().push(target.clone());
    let path = target.split('?').next().unwrap_or_default();
    let page: u32 = parameter(&target, "page").and_then(|page| page.parse().ok()).unwrap_or(1);
    let body = match path {
        "/api/public/v2/scores" => json!({"data": [], "meta": {"totalPages": 1}}),
        "/api/public/v2/observations" => {
            let generation = json!({"id": "g", "type": "GENERATION", "startTime": "2026-01-01T00:00:00Z",
                "input": [{"role": "user", "content": "Hi"}], "output": {"role": "assistant", "content": "Hello"}});
            json!({"data": [generation], "meta": {}})
        }
        // One trace on each page.
        _ => {
            let item = json!({"id": format!("lf-{page:02}"), "timestamp": format!("2026-01-{page:02}T00:00:00Z")});
            json!({"data": [item], "meta": {"page": page, "totalPages": traces, "totalItems": traces}})
        }
    };
    let (status, body) = if authorised { (200, body.to_string()) } else { (401, "{}".to_owned()) };
    let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    stream.write_all((head + &body).as_bytes()).ok();
}

fn project_with_keys() -> TempProject {
    project().env("LANGFUSE_PUBLIC_KEY", "pk-lf-1").env("LANGFUSE_SECRET_KEY", "sk-lf-very-secret")
}

fn import(project: &TempProject, server: &Server, since: Option<&str>) -> (Output, Value) {
    let mut arguments = vec!["trace", "import", "--from", "langfuse", "--url", &server.url, "--format", "json"];
    arguments.extend(since.iter().flat_map(|since| ["--since", since]));
    let output = project.run(arguments);
    let report = serde_json::from_str(&output.stdout).unwrap_or_default();
    (output, report)
}

#[test]
fn the_next_import_resumes_at_the_newest_trace() {
    let (project, server) = (project_with_keys(), Server::start(3));
    let (output, report) = import(&project, &server, Some("2026-01-01"));
    assert_eq!((output.code, report["added"].as_u64()), (Some(0), Some(3)), "{}", output.both());
    assert!(server.requested_start_times().iter().all(|since| since == "2026-01-01T00:00:00Z"));
    // The newest trace started on January 3; the overlap covers traces that arrived late.
    let (_, report) = import(&project, &server, Some("2026-01-01"));
    assert_eq!((report["added"].as_u64(), report["unchanged"].as_u64()), (Some(0), Some(3)));
    assert!(server.requested_start_times().iter().all(|since| since == "2026-01-02T23:45:00Z"));
    // An earlier --since imports again.
    import(&project, &server, Some("2025-12-01"));
    assert!(server.requested_start_times().iter().all(|since| since == "2025-12-01T00:00:00Z"));
    // A new store starts from the beginning.
    std::fs::remove_file(project.path().join(".karat/karat.db")).unwrap();
    let (_, report) = import(&project, &server, Some("2026-01-01"));
    assert_eq!(report["added"].as_u64(), Some(3));
    assert!(server.requested_start_times().iter().all(|since| since == "2026-01-01T00:00:00Z"));
}

#[test]
fn requires_keys_and_masks_them() {
    let server = Server::start(1);
    let (output, _) = import(&project(), &server, None);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("LANGFUSE_PUBLIC_KEY is not set"), "{}", output.stderr);
    let project = project_with_keys();
    let (output, _) = import(&project, &Server::start(0), None);
    assert_eq!(output.code, Some(3), "{}", output.both());
    assert!(output.stderr.contains("rejected the API keys"), "{}", output.stderr);
    assert!(!output.both().contains("very-secret"), "{}", output.both());
    import(&project, &server, None);
    let mut saved = Vec::new();
    for file in project.files_in(".karat", ".json") {
        saved.extend(std::fs::read(file).unwrap());
    }
    assert!(!saved.is_empty() && !String::from_utf8_lossy(&saved).contains("lf-1\""));
}
