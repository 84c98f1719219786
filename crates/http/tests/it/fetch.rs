//! Tests of `fetch`.

use karat_http::fetch;
use karat_testkit::server::ScriptedServer;
use serde_json::{Value, json};

const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Starts a server on its own thread, because it cannot share the test's runtime.
fn serve(script: Value) -> ScriptedServer {
    std::thread::spawn(|| ScriptedServer::start(script)).join().expect("a server")
}

async fn fetched(url: &str, headers: &[(String, String)]) -> Result<Vec<u8>, String> {
    fetch(url, headers, MAX_BYTES).await.map_err(|error| error.to_string())
}

#[tokio::test]
async fn returns_the_body() {
    let server = serve(json!({
        "GET /snapshot?day=1": {"rawBytes": [255, 0, 10]},
        "GET /empty": {"raw": ""},
    }));
    let headers = [("X-Key".to_owned(), "s3cr3t".to_owned())];
    let bytes = fetched(&format!("{}/snapshot?day=1", server.base_url()), &headers).await;
    assert_eq!(bytes, Ok(vec![255, 0, 10]));
    assert_eq!(fetched(&format!("{}/empty", server.base_url()), &[]).await, Ok(Vec::new()));
    let [first, second] = &server.gets()[..] else { panic!("{:?}", server.gets()) };
    assert_eq!((first.path.as_str(), first.headers["x-key"].as_str()), ("/snapshot?day=1", "s3cr3t"));
    assert!(!second.headers.contains_key("x-key"));
}

#[tokio::test]
async fn reports_failed_requests() {
    let other_server = serve(json!({"GET /": {"secret": true}}));
    let server = serve(json!({
        "GET /moved": {"status": 302, "headers": {"location": other_server.base_url()}, "raw": ""},
        "GET /hangup": {"hangup": true},
        "GET /large": {"huge": MAX_BYTES + 1},
    }));
    let error = async |path: &str| fetched(&format!("{}{path}", server.base_url()), &[]).await.expect_err(path);
    assert!(error("/missing").await.contains("HTTP 404 Not Found"));
    assert!(error("/moved").await.contains(&format!("a redirect to {}", other_server.base_url())));
    assert_eq!(other_server.connections(), 0);
    assert!(error("/hangup").await.contains("connection closed"));
    assert!(error("/large").await.contains("larger than 67108864 bytes"));
}

#[tokio::test]
async fn errors_show_no_secrets() {
    for url in ["nonsense", "ftp://me:s3cr3t@host/", "http://[?key=s3cr3t"] {
        let error = fetched(url, &[]).await.expect_err(url);
        assert!(!error.contains("s3cr3t"), "{error}");
    }
    let headers = [("x-key".to_owned(), "s3cr3t\n".to_owned())];
    let error = fetched("http://127.0.0.1:9", &headers).await.expect_err("an invalid header");
    assert_eq!(error, "cannot send the header 'x-key': its value contains forbidden characters");
}
