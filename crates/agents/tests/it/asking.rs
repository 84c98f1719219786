//! What is sent.

use karat_agents::expand_variables;
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

/// Asks once with this configuration and returns what came in with a body.
async fn sent(settings: Value, message: &str) -> Request {
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
    let request = sent(json!({}), "What's up?").await;
    assert_eq!(request.path, "/chat");
    assert_eq!(request.body, json!({"message": "What's up?"}));
    assert_eq!(request.headers["content-type"], "application/json");
    assert_eq!(request.headers["user-agent"], concat!("karat/", env!("CARGO_PKG_VERSION")));
    assert!(!request.headers.contains_key("accept-encoding"), "what is not unpacked is not asked for");
    assert!(!request.headers.contains_key("authorization"));
}

#[rstest]
#[case::empty("")]
#[case::quotes(r#""quoted" \ / and \u0041"#)]
#[case::control("\0\u{1}\t\r\n\u{7f}\u{2028}")]
#[case::scripts("日本語 😀👩‍👩‍👧 e\u{301} \u{202e}back")]
#[case::long(&"ü😀 word ".repeat(100_000))]
#[tokio::test]
async fn any_message_arrives_as_it_is(#[case] message: &str) {
    assert_eq!(sent(json!({}), message).await.body, json!({"message": message}));
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
async fn the_message_goes_where_the_configuration_says(#[case] request: Value, #[case] body: Value) {
    let sent = sent(json!({"request": request}), "hi").await;
    assert_eq!(sent.body.to_string(), body.to_string(), "in the configuration's order");
}

#[tokio::test]
async fn the_query_gets_the_message_instead_of_the_body() {
    let request =
        sent(json!({"request": {"query": "q", "body": {"stream": false}, "message": "/not/there"}}), "hi").await;
    assert_eq!(query(&request.path), [("q".to_owned(), "hi".to_owned())]);
    assert_eq!(request.body, json!({"stream": false}));
}

/// Looks at the very bytes, which the scripted server does not show.
#[rstest]
#[case("POST", "POST /chat HTTP/1.1", r#"{"message":"hi"}"#)]
#[case("PUT", "PUT /chat HTTP/1.1", r#"{"message":"hi"}"#)]
#[case("PATCH", "PATCH /chat HTTP/1.1", r#"{"message":"hi"}"#)]
#[case("GET", "GET /chat?q=hi HTTP/1.1", "")]
#[case("DELETE", "DELETE /chat?q=hi HTTP/1.1", "")]
#[tokio::test]
async fn each_method_is_sent_as_such(#[case] method: &str, #[case] line: &str, #[case] body: &str) {
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
async fn get_puts_the_message_into_the_query() {
    let message = "a&b=c d+e#f?ü😀%41\n";
    let server = serve(json!({}));
    let settings = json!({"method": "GET", "request": {"query": "q"}});
    let agent = agent_at(&format!("{}/chat?version=2&q=1#part", server.base()), &settings);
    let error = ask(&agent, message).await.expect_err("nothing is scripted").message;
    assert_eq!(error, r#"the agent answered HTTP 404 Not Found: {"error":"no such path"}"#);
    let [request] = &server.gets()[..] else { panic!("{:?}", server.gets()) };
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(query(&request.path), [pair("version", "2"), pair("q", "1"), pair("q", message)]);
    assert!(!request.path.contains("part"));
    assert!(!request.headers.contains_key("content-type"), "there is no content");
    assert_eq!(server.request_count(), 0);
}

#[tokio::test]
async fn a_get_is_answered_like_any_other() {
    let server = serve(json!({"GET /chat?q=hi": {"response": "hello"}}));
    let agent = agent_at(&server.endpoint(), &json!({"method": "GET", "request": {"query": "q"}}));
    assert_eq!(ask(&agent, "hi").await.unwrap().response, "hello");
}

#[tokio::test]
async fn delete_sends_no_body() {
    let request = sent(json!({"method": "DELETE", "request": {"query": "q"}}), "hi there").await;
    assert_eq!(query(&request.path), [("q".to_owned(), "hi there".to_owned())]);
    assert_eq!(request.body, json!({}), "which is how the server takes note of none");
    assert!(!request.headers.contains_key("content-type"));
}

#[tokio::test]
async fn headers_are_sent_with_their_variables_filled_in() {
    let lookup = |name: &str| match name {
        "TOKEN" => Some("s3cr3t".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    };
    let headers: Vec<(String, String)> =
        [("Authorization", "Bearer ${TOKEN}"), ("X-Two", "${TOKEN}-${EMPTY}${TOKEN}"), ("X-Plain", "$5 ${} ${a b}")]
            .map(|(name, value)| (name.to_owned(), expand_variables(value, &lookup).unwrap().text))
            .to_vec();
    let server = server();
    let agent = karat_agents::HttpAgent::new(&server.endpoint(), &headers, config(&json!({}))).unwrap();
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

/// Whoever sets a header means it.
#[rstest]
#[case("content-type", "application/vnd.agent+json")]
#[case("User-Agent", "mine/1")]
#[case("Accept", "application/json")]
#[tokio::test]
async fn headers_of_the_configuration_win(#[case] name: &str, #[case] value: &str) {
    let request = sent(json!({"headers": {name: value}}), "hi").await;
    assert_eq!(request.headers[&name.to_lowercase()], value);
}

#[tokio::test]
async fn the_urls_user_is_sent_as_a_header_not_in_the_path() {
    let server = server();
    let url = server.endpoint().replace("http://", "http://me:p4ss@");
    ask(&agent_at(&url, &json!({})), "hi").await.unwrap();
    let request = server.requests().remove(0);
    assert_eq!(request.headers["authorization"], "Basic bWU6cDRzcw==");
    assert_eq!(request.path, "/chat");
    assert!(!request.headers["host"].contains("p4ss"));
}

/// What is sent can come back in an answer, so it must be known as a secret in that spelling too.
#[rstest]
#[case::plain("me:p4ss", &["p4ss"])]
#[case::encoded("me:p%40ss%2f%C3%BC%zz", &["p%40ss%2f%C3%BC%zz", "p@ss/ü%zz"])]
#[case::to_be_encoded("me:pä ss", &["p%C3%A4%20ss", "pä ss"])]
#[case::user_encoded("m%65:p4ss", &["p4ss"])]
#[case::only_user("t0ken", &["t0ken"])]
#[case::only_password(":p4ss", &["p4ss"])]
#[tokio::test]
async fn the_urls_secrets_are_known_as_they_are_sent(#[case] user: &str, #[case] secrets: &[&str]) {
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
fn a_url_without_a_user_holds_no_credentials() {
    assert_eq!(agent_at("http://host/chat?key=s3cr3t", &json!({})).credentials(), Vec::<String>::new());
}

#[tokio::test]
async fn the_agent_is_its_url_and_runs_its_own_tools() {
    let server = server();
    let agent = agent(&server);
    assert_eq!(agent.identity(), server.endpoint());
    let mut stubbed = case("hi");
    stubbed.stubs = Some(serde_json::Map::new());
    assert_eq!((agent.mode(&case("hi")), agent.mode(&stubbed)), (Mode::Endpoint, Mode::Endpoint));
}
