//! Getting what an address answers.

use karat_agents::fetch;
use serde_json::json;

use crate::support::serve;

#[tokio::test]
async fn what_an_address_answers_comes_as_it_is() {
    let server = serve(json!({
        "GET /snapshot?day=1": {"rawBytes": [255, 0, 10]},
        "GET /empty": {"raw": ""},
    }));
    let headers = [("X-Key".to_owned(), "s3cr3t".to_owned())];
    let bytes = fetch(&format!("{}/snapshot?day=1", server.base()), &headers).await;
    assert_eq!(bytes, Ok(vec![255, 0, 10]));
    assert_eq!(fetch(&format!("{}/empty", server.base()), &[]).await, Ok(Vec::new()));
    let [first, second] = &server.gets()[..] else { panic!("{:?}", server.gets()) };
    assert_eq!((first.path.as_str(), first.headers["x-key"].as_str()), ("/snapshot?day=1", "s3cr3t"));
    assert!(!second.headers.contains_key("x-key"));
}

#[tokio::test]
async fn what_is_no_success_is_an_error() {
    let elsewhere = serve(json!({"GET /": {"secret": true}}));
    let server = serve(json!({
        "GET /moved": {"status": 302, "headers": {"location": elsewhere.base()}, "raw": ""},
        "GET /hangup": {"hangup": true},
        "GET /large": {"huge": 64 * 1024 * 1024 + 1},
    }));
    let error = async |path: &str| fetch(&format!("{}{path}", server.base()), &[]).await.expect_err(path);
    assert!(error("/missing").await.contains("HTTP 404 Not Found"));
    assert!(error("/moved").await.contains(&format!("which leads to {}", elsewhere.base())));
    assert_eq!(elsewhere.connections(), 0);
    assert!(error("/hangup").await.contains("connection closed"));
    assert!(error("/large").await.contains("larger than 67108864 bytes"));
}

#[tokio::test]
async fn an_address_that_is_none_is_an_error_without_its_secrets() {
    for url in ["nonsense", "ftp://me:s3cr3t@host/", "http://[?key=s3cr3t"] {
        let error = fetch(url, &[]).await.expect_err(url);
        assert!(!error.contains("s3cr3t"), "{error}");
    }
    let headers = [("x-key".to_owned(), "s3cr3t\n".to_owned())];
    let error = fetch("http://127.0.0.1:9", &headers).await.expect_err("not sendable");
    assert_eq!(error, "the header 'x-key' cannot be sent: its value has forbidden characters");
}
