//! The Langfuse API, with a mock server on a real socket.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use karat_core::rating::Rating;
use karat_traces::{LangfuseApi, LangfuseError, LangfuseKeys, LangfusePage, Piece, TraceFormat, resume_from};
use serde_json::{Value, json};

use crate::fixture::document;

/// A response: status, header line (may be empty) and body.
type Response = (u16, &'static str, String);

/// Answers a request by its path and query.
type Handler = dyn Fn(&str, &BTreeMap<String, String>) -> Response + Send + Sync;

struct Server {
    url: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(handler: impl Fn(&str, &BTreeMap<String, String>) -> Response + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (handler, log): (Arc<Handler>, _) = (Arc::new(handler), Arc::clone(&seen));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (handler, log) = (Arc::clone(&handler), Arc::clone(&log));
                thread::spawn(move || serve(stream, handler.as_ref(), &log));
            }
        });
        Self { url, seen }
    }

    fn api(&self) -> LangfuseApi {
        let keys = LangfuseKeys { public: "pk".to_owned(), secret: "sk".to_owned() };
        LangfuseApi::new(&self.url, keys).expect("valid URL").with_retry_delay(Duration::from_millis(1))
    }

    /// Returns the requests for a path in order of arrival.
    fn seen(&self, path: &str) -> Vec<String> {
        let seen = self.seen.lock().expect("no panic").clone();
        seen.into_iter().filter(|target| target.split('?').next() == Some(path)).collect()
    }
}

fn serve(stream: TcpStream, handler: &Handler, log: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        if line == "\r\n" {
            break;
        }
        lines.push(line.trim_end().to_owned());
    }
    let target = lines[0].split(' ').nth(1).expect("a target").to_owned();
    log.lock().expect("no panic").push(target.clone());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let query = query.split('&').filter_map(|pair| pair.split_once('='));
    let query = query.map(|(name, value)| (name.to_owned(), value.replace("%3A", ":").replace("%2C", ",")));
    // cGs6c2s= encodes pk:sk.
    let authorised = lines.iter().any(|line| line.eq_ignore_ascii_case("authorization: Basic cGs6c2s="));
    let (status, header, body) = if authorised { handler(path, &query.collect()) } else { (401, "", "{}".to_owned()) };
    let header = if header.is_empty() { String::new() } else { format!("{header}\r\n") };
    let head = format!("HTTP/1.1 {status} X\r\n{header}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
    let mut stream = stream;
    stream.write_all((head + &body).as_bytes()).ok();
}

fn ok(value: &Value) -> Response {
    (200, "", value.to_string())
}

fn page(items: &[Value], number: u64, pages: u64) -> Response {
    ok(&json!({"data": items, "meta": {"page": number, "limit": 50, "totalItems": 3, "totalPages": pages}}))
}

fn trace(id: &str, second: u8) -> Value {
    json!({"id": id, "name": "ask", "timestamp": format!("2026-01-01T00:00:{second:02}.000Z"), "input": "Hi", "scores": ["s"], "observations": ["o"]})
}

fn generation(trace: &str, id: &str, output: &str) -> Value {
    json!({"id": id, "traceId": trace, "type": "GENERATION", "name": "chat", "startTime": "2026-01-01T00:00:01.000Z",
           "providedModelName": "m", "input": "[{\"role\":\"user\",\"content\":\"Hi\"}]", "output": output})
}

/// Serves three traces on two pages. The second trace has its observations on two pages.
fn default_handler(path: &str, query: &BTreeMap<String, String>) -> Response {
    let get = |name: &str| query.get(name).map(String::as_str);
    match (path, get("traceId"), get("page"), get("cursor")) {
        ("/api/public/v2/scores", _, Some("1"), _) => page(
            &[
                json!({"id": "s1", "traceId": "b", "source": "ANNOTATION", "name": "good", "dataType": "BOOLEAN", "value": 0,
                     "authorUserId": "ann", "timestamp": "2026-01-02T00:00:00Z"}),
            ],
            1,
            2,
        ),
        ("/api/public/v2/scores", _, Some("2"), _) => page(
            &[
                json!({"id": "s2", "traceId": "old", "source": "ANNOTATION", "name": "good", "dataType": "BOOLEAN", "value": 1,
                     "authorUserId": "ann", "timestamp": "2026-01-02T00:00:00Z"}),
            ],
            2,
            2,
        ),
        ("/api/public/traces", _, Some("1"), _) => page(&[trace("a", 1), trace("b", 2)], 1, 2),
        ("/api/public/traces", _, Some("2"), _) => page(&[trace("c", 3)], 2, 2),
        ("/api/public/v2/observations", Some("b"), _, None) => {
            ok(&json!({"data": [generation("b", "b1", "One")], "meta": {"cursor": "next"}}))
        }
        ("/api/public/v2/observations", Some("b"), _, Some("next")) => {
            let mut second = generation("b", "b2", "Two");
            second["startTime"] = json!("2026-01-01T00:00:02.000Z");
            ok(&json!({"data": [second], "meta": {}}))
        }
        ("/api/public/v2/observations", Some(id), ..) => {
            ok(&json!({"data": [generation(id, "o", "Hello")], "meta": {}}))
        }
        ("/api/public/traces/old", ..) => {
            let mut trace = trace("old", 0);
            trace["observations"] = json!([generation("old", "o", "Long ago")]);
            ok(&trace)
        }
        _ => (404, "", "{}".to_owned()),
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

/// Reads all pages up to the first error.
fn read_all(api: LangfuseApi) -> (Vec<LangfusePage>, Option<LangfuseError>) {
    run(async {
        let mut pages = api.pages(Some("2026-01-01T00:00:00Z".parse().expect("a time")), None);
        let mut read = Vec::new();
        loop {
            match pages.next().await {
                Ok(Some(page)) => read.push(page),
                Ok(None) => return (read, None),
                Err(error) => return (read, Some(error)),
            }
        }
    })
}

/// Renders the traces of a page: ids, responses and ratings.
fn render(page: &LangfusePage) -> Vec<String> {
    let show = |piece: &Result<Piece, _>| match piece {
        Ok(Piece::Whole(imported)) => {
            assert_eq!(imported.format, TraceFormat::Langfuse);
            let responses: Vec<_> = document(imported).steps.into_iter().map(|step| step.output.response).collect();
            let ratings: Vec<&str> = imported.feedback.iter().map(|entry| entry.rating.name()).collect();
            format!("{} {responses:?} {ratings:?}", imported.trace_id)
        }
        other => format!("{other:?}"),
    };
    page.pieces.iter().map(show).collect()
}

#[test]
fn reads_pages_cursors_and_scores() {
    let server = Server::start(default_handler);
    let (pages, error) = read_all(server.api());
    assert!(error.is_none(), "{error:?}");
    let rendered: Vec<_> = pages.iter().map(render).collect();
    assert_eq!(
        rendered,
        [
            vec![r#"a ["Hello"] []"#.to_owned(), r#"b ["One", "Two"] ["negative"]"#.to_owned()],
            vec![r#"c ["Hello"] []"#.to_owned()],
            // An older trace that was scored in the time range.
            vec![r#"old ["Long ago"] ["positive"]"#.to_owned()],
        ]
    );
    let seen: Vec<_> = pages.iter().map(|page| page.seen_until.expect("known").to_string()).collect();
    assert_eq!(seen, ["2026-01-01T00:00:02Z", "2026-01-01T00:00:03Z", "2026-01-01T00:00:03Z"]);
    assert_eq!(resume_from(pages[1].seen_until.expect("known")).to_string(), "2025-12-31T23:45:03Z");
    assert_eq!(pages[0].total, Some(3));
    let requests = server.seen("/api/public/traces");
    assert_eq!(requests.len(), 2);
    assert!(requests.iter().all(|target| target.contains("fromTimestamp=2026-01-01T00%3A00%3A00Z")), "{requests:?}");
}

#[test]
fn retries_rate_limits_server_errors_and_invalid_pages() {
    let failures = Mutex::new(vec![
        (429, "retry-after: 0", "{\"message\":\"slow down\"}".to_owned()),
        (503, "", "<html>".to_owned()),
        (200, "", "{\"data\": [".to_owned()),
        (200, "", "{\"message\": \"temporarily limited\"}".to_owned()),
    ]);
    let server = Server::start(move |path, query| {
        if path == "/api/public/traces"
            && let Some(failure) = failures.lock().expect("no panic").pop()
        {
            return failure;
        }
        default_handler(path, query)
    });
    let (pages, error) = read_all(server.api());
    assert!(error.is_none(), "{error:?}");
    assert_eq!(pages.iter().map(|page| page.pieces.len()).sum::<usize>(), 4);
    assert_eq!(server.seen("/api/public/traces").len(), 6);
}

#[test]
fn returns_earlier_pages_before_a_permanent_error() {
    let server = Server::start(|path, query| match (path, query.get("page").map(String::as_str)) {
        ("/api/public/traces", Some("2")) => (200, "", "not JSON".to_owned()),
        _ => default_handler(path, query),
    });
    let (pages, error) = read_all(server.api());
    assert_eq!(pages.len(), 1);
    let error = error.expect("broken").to_string();
    assert_eq!(error, "invalid response to 'api/public/traces': invalid JSON: starts with 'not'");
}

/// Otherwise incomplete data would replace what was stored before.
#[test]
fn a_response_without_a_list_is_not_an_empty_list() {
    let limited = || (200, "", "{\"message\": \"temporarily limited\"}".to_owned());
    for broken in ["/api/public/v2/observations", "/api/public/v2/scores", "/api/public/traces"] {
        let server =
            Server::start(move |path, query| if path == broken { limited() } else { default_handler(path, query) });
        let (pages, error) = read_all(server.api());
        let expected = format!("invalid response to '{}': missing list 'data'", &broken[1..]);
        assert_eq!((pages.len(), error.map(|error| error.to_string())), (0, Some(expected)));
    }
}

#[test]
fn an_empty_page_before_the_last_is_an_error() {
    for broken in ["/api/public/v2/scores", "/api/public/traces"] {
        let server = Server::start(move |path, query| match query.get("page").map(String::as_str) {
            Some("2") if path == broken => page(&[], 2, 3),
            _ => default_handler(path, query),
        });
        let (_, error) = read_all(server.api());
        let error = error.expect("broken").to_string();
        assert!(error.ends_with("page 2 is empty but not the last one"), "{error}");
    }
}

#[test]
fn a_page_can_be_retried_after_an_error() {
    let server = Server::start({
        let left = Mutex::new(7);
        move |path, query| {
            let mut left = left.lock().expect("no panic");
            if path == "/api/public/v2/observations" && query.get("traceId").is_some_and(|id| id == "c") && *left > 0 {
                *left -= 1;
                return (500, "", String::new());
            }
            default_handler(path, query)
        }
    });
    let read = run(async {
        let mut pages = server.api().pages(None, None);
        let first = pages.next().await.expect("fine").expect("a page");
        let error = pages.next().await.expect_err("it is down").to_string();
        let again = pages.next().await.expect("up again").expect("a page");
        (render(&first).len(), error, render(&again))
    });
    assert_eq!(read.0, 2);
    assert_eq!(read.1, "request for 'api/public/v2/observations' failed with status 500");
    assert_eq!(read.2, [r#"c ["Hello"] []"#]);
}

#[test]
fn wrong_keys_are_not_retried() {
    let server = Server::start(default_handler);
    let keys = LangfuseKeys { public: "pk".to_owned(), secret: "wrong".to_owned() };
    assert_eq!(format!("{keys:?}"), "LangfuseKeys { .. }");
    let api = LangfuseApi::new(&server.url, keys).expect("valid URL");
    let (pages, error) = read_all(api);
    assert!(pages.is_empty());
    assert_eq!(error.expect("refused").to_string(), "the server rejected the API keys (status 401)");
    assert_eq!(server.seen("/api/public/v2/scores").len(), 1);
}

#[test]
fn reads_traces_one_by_one_from_an_older_server() {
    let server = Server::start(|path, query| match path {
        path if path.starts_with("/api/public/v2/") => (404, "", "{}".to_owned()),
        path if path.starts_with("/api/public/traces/") => {
            let id = path.rsplit('/').next().expect("an id");
            let mut whole = trace(id, 1);
            whole["observations"] = json!([generation(id, "o", "Old")]);
            whole["scores"] = json!([{"source": "ANNOTATION", "name": "x", "dataType": "NUMERIC", "value": 1}]);
            ok(&whole)
        }
        path => default_handler(path, query),
    });
    let (pages, error) = read_all(server.api());
    assert!(error.is_none(), "{error:?}");
    assert_eq!(render(&pages[0]), [r#"a ["Old"] ["positive"]"#, r#"b ["Old"] ["positive"]"#]);
    let imported = pages[0].pieces.iter().flatten().next().expect("a trace");
    assert!(matches!(imported, Piece::Whole(trace) if trace.feedback[0].rating == Rating::Positive));
    assert!(server.seen("/api/public/v2/observations").len() <= 4);
}

#[test]
fn a_web_page_is_reported_without_retries() {
    let server = Server::start(|_, _| (200, "", "\n<!doctype html><html>Sign in</html>".to_owned()));
    let (pages, error) = read_all(server.api());
    assert!(pages.is_empty());
    let error = error.expect("not a Langfuse server").to_string();
    assert_eq!(error, "'api/public/v2/scores' returned a web page: is this the URL of a Langfuse server?");
    assert_eq!(server.seen("/api/public/v2/scores").len(), 1);
}

#[test]
fn reports_invalid_and_unreachable_servers() {
    let keys = || LangfuseKeys { public: String::new(), secret: String::new() };
    let error = LangfuseApi::new("ftp://x", keys()).expect_err("not HTTP").to_string();
    assert_eq!(error, "'ftp://x' is not a valid Langfuse URL: expected http:// or https://");
    let error = LangfuseApi::new("https://me:pass word@", keys()).expect_err("invalid URL").to_string();
    assert!(!error.contains("pass"), "{error}");
    let server = Server::start(|_, _| (404, "", String::new()));
    let (_, error) = read_all(server.api());
    assert_eq!(error.expect("missing").to_string(), "'api/public/traces' not found: is this a Langfuse server?");
    let (_, error) =
        read_all(LangfuseApi::new("http://127.0.0.1:9", keys()).expect("valid URL").with_retry_delay(Duration::ZERO));
    assert!(error.expect("closed").to_string().starts_with("cannot reach the server: "));
}
