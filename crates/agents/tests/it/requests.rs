//! HTTP requests that are sent.

use karat_agents::HttpAgent;
use karat_core::assertion::Mode;
use karat_core::port::Agent;
use karat_http::Url;
use karat_testkit::server::{Request, ScriptedServer};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::{agent, agent_at, ask, case, config, serve};

fn server() -> ScriptedServer {
    serve(json!({"*": {"response": "ok"}}))
}

/// Sends one message with this configuration and returns the request that arrived.
async fn send(settings: Value, message: &str) -> Request {
    let server = server();
    ask(&agent_at(&server.endpoint(), &settings), message).await.unwrap();
    let [request] = &server.requests()[..] else { panic!("{:?}", server.requests()) };
    request.clone()
}

fn query(path: &str) -> Vec<(String, String)> {
    let url = Url::parse("http://host").unwrap().join(path).unwrap();
    url.query_pairs().map(|(key, value)| (key.into_owned(), value.into_owned())).collect()
}

#[tokio::test]
async fn the_message_is_posted_as_json() {
    let request = send(json!({}), "What's up?").await;
    assert_eq!(request.path, "/chat");
    assert_eq!(request.body, json!({"message": "What's up?"}));
    assert_eq!(request.headers["content-type"], "application/json");
    assert_eq!(request.headers["user-agent"], concat!("karat/", env!("CARGO_PKG_VERSION")));
    assert!(!request.headers.contains_key("accept-encoding"), "compression is not supported, so it is not requested");
    assert!(!request.headers.contains_key("authorization"));
}

#[rstest]
#[case::empty("")]
#[case::quotes(r#""quoted" \ / and \u0041"#)]
#[case::control("\0\u{1}\t\r\n\u{7f}\u{2028}")]
#[case::scripts("日本語 😀👩‍👩‍👧 e\u{301} \u{202e}back")]
#[case::long(&"ü😀 word ".repeat(100_000))]
#[tokio::test]
async fn any_message_arrives_unchanged(#[case] message: &str) {
    assert_eq!(send(json!({}), message).await.body, json!({"message": message}));
}

#[rstest]
#[case(
    json!({"body": {"messages": [{"role": "user", "content": ""}], "stream": false}, "message": "/messages/0/content"}),
    json!({"messages": [{"role": "user", "content": "hi"}], "stream": false})
)]
#[case(json!({"body": {"input": {}}, "message": "/input/text"}), json!({"input": {"text": "hi"}}))]
#[case(json!({"body": {"z": 1, "message": "old", "a": null}}), json!({"z": 1, "message": "hi", "a": null}))]
#[case(json!({"body": {"a/b": {}}, "message": "/a~1b/~01c~1d"}), json!({"a/b": {"~1c/d": "hi"}}))]
#[tokio::test]
async fn the_message_is_inserted_at_its_pointer(#[case] request: Value, #[case] body: Value) {
    let request = send(json!({"request": request}), "hi").await;
    assert_eq!(request.body.to_string(), body.to_string(), "keys stay in the configured order");
}

#[tokio::test]
async fn the_message_goes_into_the_query_instead_of_the_body() {
    let request =
        send(json!({"request": {"query": "q", "body": {"stream": false}, "message": "/not/there"}}), "hi").await;
    assert_eq!(query(&request.path), [("q".to_owned(), "hi".to_owned())]);
    assert_eq!(request.body, json!({"stream": false}));
}

/// Checks the raw bytes, which the scripted server does not expose.
#[rstest]
#[case("POST", "POST /chat HTTP/1.1", r#"{"message":"hi"}"#)]
#[case("PUT", "PUT /chat HTTP/1.1", r#"{"message":"hi"}"#)]
#[case("PATCH", "PATCH /chat HTTP/1.1", r#"{"message":"hi"}"#)]
#[case("GET", "GET /chat?q=hi HTTP/1.1", "")]
#[case("DELETE", "DELETE /chat?q=hi HTTP/1.1", "")]
#[tokio::test]
async fn sends_each_method(#[case] method: &str, #[case] line: &str, #[case] body: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/chat", listener.local_addr().unwrap());
    let settings = match body {
        "" => json!({"method": method, "request": {"query": "q"}}),
        _ => json!({"method": method}),
    };
    let agent = agent_at(&url, &settings);
    let serving = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut seen = String::new();
        let mut buffer = [0; 4096];
        while !seen.contains("\r\n\r\n") || !seen.ends_with(body) {
            let count = socket.read(&mut buffer).await.unwrap();
            assert!(count > 0, "{seen}");
            seen.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
        }
        let reply = b"HTTP/1.1 200 OK\r\ncontent-length: 17\r\n\r\n{\"response\":\"ok\"}";
        socket.write_all(reply).await.unwrap();
        seen
    };
    let (answer, seen) = tokio::join!(ask(&agent, "hi"), serving);
    assert_eq!(answer.unwrap().response, "ok");
    let (head, sent) = seen.split_once("\r\n\r\n").unwrap();
    assert_eq!((head.lines().next(), sent), (Some(line), body));
}

#[tokio::test]
async fn get_sends_the_message_in_the_query() {
    let message = "a&b=c d+e#f?ü😀%41\n";
    let server = serve(json!({}));
    let settings = json!({"method": "GET", "request": {"query": "q"}});
    let agent = agent_at(&format!("{}/chat?version=2&q=1#part", server.base_url()), &settings);
    let error = ask(&agent, message).await.expect_err("the server has no such path").message;
    assert_eq!(error, r#"the agent returned HTTP 404 Not Found: {"error":"no such path"}"#);
    let [request] = &server.gets()[..] else { panic!("{:?}", server.gets()) };
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(query(&request.path), [pair("version", "2"), pair("q", "1"), pair("q", message)]);
    assert!(!request.path.contains("part"));
    assert!(!request.headers.contains_key("content-type"), "there is no body");
    assert_eq!(server.request_count(), 0);
}

#[tokio::test]
async fn a_get_request_is_answered() {
    let server = serve(json!({"GET /chat?q=hi": {"response": "hello"}}));
    let agent = agent_at(&server.endpoint(), &json!({"method": "GET", "request": {"query": "q"}}));
    assert_eq!(ask(&agent, "hi").await.unwrap().response, "hello");
}

#[tokio::test]
async fn delete_sends_no_body() {
    let request = send(json!({"method": "DELETE", "request": {"query": "q"}}), "hi there").await;
    assert_eq!(query(&request.path), [("q".to_owned(), "hi there".to_owned())]);
    assert_eq!(request.body, json!({}), "the server records an empty body as {{}}");
    assert!(!request.headers.contains_key("content-type"));
}

#[tokio::test]
async fn headers_are_sent_with_expanded_variables() {
    let lookup = |name: &str| match name {
        "TOKEN" => Some("s3cr3t".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    };
    let settings = json!({"headers": {
        "Authorization": "Bearer ${TOKEN}", "X-Two": "${TOKEN}-${EMPTY}${TOKEN}", "X-Plain": "$5 ${} ${a b}",
    }});
    let server = server();
    let agent = HttpAgent::new(&server.endpoint(), config(&settings), &lookup).unwrap();
    for _ in 0..2 {
        ask(&agent, "hi").await.unwrap();
    }
    for request in server.requests() {
        assert_eq!(request.headers["authorization"], "Bearer s3cr3t");
        assert_eq!(request.headers["x-two"], "s3cr3t-s3cr3t");
        assert_eq!(request.headers["x-plain"], "$5 ${} ${a b}");
    }
    assert!(!format!("{agent:?}").contains("s3cr3t"), "{agent:?}");
}

#[rstest]
#[case("content-type", "application/vnd.agent+json")]
#[case("User-Agent", "mine/1")]
#[case("Accept", "application/json")]
#[tokio::test]
async fn configured_headers_override_defaults(#[case] name: &str, #[case] value: &str) {
    let request = send(json!({"headers": {name: value}}), "hi").await;
    assert_eq!(request.headers[&name.to_lowercase()], value);
}

#[tokio::test]
async fn url_credentials_are_sent_as_a_header() {
    let server = server();
    let url = server.endpoint().replace("http://", "http://me:p4ss@");
    ask(&agent_at(&url, &json!({})), "hi").await.unwrap();
    let request = server.requests().remove(0);
    assert_eq!(request.headers["authorization"], "Basic bWU6cDRzcw==");
    assert_eq!(request.path, "/chat");
    assert!(!request.headers["host"].contains("p4ss"));
}

/// An answer can echo the credentials in any encoding, so each of them must be redacted.
#[rstest]
#[case::plain("me:p4ss", &["p4ss"])]
#[case::encoded("me:p%40ss%2f%C3%BC%zz", &["p%40ss%2f%C3%BC%zz", "p@ss/ü%zz"])]
#[case::to_be_encoded("me:pä ss", &["p%C3%A4%20ss", "pä ss"])]
#[case::user_encoded("m%65:p4ss", &["p4ss"])]
#[case::only_user("t0ken", &["t0ken"])]
#[case::only_password(":p4ss", &["p4ss"])]
#[tokio::test]
async fn url_credentials_are_known_in_every_encoding(#[case] user: &str, #[case] secrets: &[&str]) {
    let server = server();
    let agent = agent_at(&server.endpoint().replace("http://", &format!("http://{user}@")), &json!({}));
    ask(&agent, "hi").await.unwrap();
    let request = server.requests().remove(0);
    let sent = request.headers["authorization"].strip_prefix("Basic ").unwrap();
    let known = agent.credentials();
    assert!(known.iter().any(|secret| secret == sent), "{sent} is not in {known:?}");
    for secret in secrets {
        assert!(known.iter().any(|known| known == secret), "{secret} is not in {known:?}");
    }
}

#[test]
fn a_url_without_a_user_has_no_credentials() {
    assert_eq!(agent_at("http://host/chat?key=s3cr3t", &json!({})).credentials(), Vec::<String>::new());
}

#[tokio::test]
async fn identity_is_the_url_and_mode_is_endpoint() {
    let server = server();
    let agent = agent(&server);
    assert_eq!(agent.identity(), server.endpoint());
    let mut stubbed = case("hi");
    stubbed.stubs = Some(serde_json::Map::new());
    assert_eq!((agent.mode(&case("hi")), agent.mode(&stubbed)), (Mode::Endpoint, Mode::Endpoint));
}
