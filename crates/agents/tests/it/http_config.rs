//! Configuration of HTTP agents.

use karat_agents::{HttpConfig, Method, RequestMap, ResponseMap};
use karat_json::{Path, Problems};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::config;

/// Returns each problem as `pointer: message`.
fn problems(value: &Value) -> Vec<String> {
    let mut problems = Problems::default();
    HttpConfig::read(value, &Path::Root, &mut problems);
    problems.into_list().into_iter().map(|problem| format!("{}: {}", problem.pointer, problem.message)).collect()
}

#[test]
fn missing_and_null_keys_have_defaults() {
    assert_eq!(config(&json!({})), HttpConfig::default());
    assert_eq!(config(&json!({"request": {}, "response": {"toolCall": {}}, "headers": {}})), HttpConfig::default());
    let null = json!({
        "method": null,
        "headers": null,
        "request": {"body": null, "message": null, "query": null},
        "response": {"response": null, "toolCalls": null, "toolCall": null, "usage": null, "model": null},
        "maxResponseBytes": null,
    });
    assert_eq!(config(&null), HttpConfig::default());
}

#[test]
fn round_trips_through_json() {
    let value = json!({
        "method": "GET",
        "headers": {"x-a": "${A}"},
        "request": {"body": {}, "message": "/message", "query": "q"},
        "response": {
            "response": "/a",
            "toolCalls": "/b",
            "toolCall": {"name": "/c", "params": "/d", "success": "/e", "durationMs": "/f", "result": "/g"},
            "usage": "/h",
            "model": "",
        },
        "maxResponseBytes": 5,
    });
    let read = config(&value);
    assert_eq!(serde_json::to_value(&read).unwrap(), value);
    assert_eq!((read.method, read.max_response_bytes), (Method::Get, 5));
    assert_eq!(read.request, RequestMap { query: Some("q".to_owned()), ..RequestMap::default() });
    assert_ne!(read.response, ResponseMap::default());
}

#[rstest]
#[case(json!([]), &[": the file must be an object, found an array"])]
#[case(json!({"metod": "GET"}), &["/metod: unknown key 'metod'"])]
#[case(json!({"method": "get"}), &["/method: invalid value 'get' for 'method'"])]
#[case(json!({"method": "GET"}), &[": this method has no body: set 'request.query' to the parameter for the message"])]
#[case(json!({"method": "DELETE", "request": {}}), &[": this method has no body: set 'request.query' to the parameter for the message"])]
#[case(
    json!({"headers": {"a": 1, "b": "fine", "c": null}}),
    &["/headers/a: 'a' must be a string, found a number", "/headers/c: 'c' must be a string, found null"]
)]
#[case(json!({"headers": ["a"]}), &["/headers: 'headers' must be an object, found an array"])]
#[case(json!({"maxResponseBytes": 0}), &["/maxResponseBytes: 'maxResponseBytes' must be an integer of at least 1, found 0"])]
#[case(json!({"request": {"message": "message"}}), &["/request/message: 'message' must be a JSON pointer that starts with '/'"])]
#[case(json!({"request": {"message": "/a/b"}}), &["/request: 'message': the body has no element at '/a/b'"])]
#[case(json!({"request": {"message": ""}}), &["/request: 'message': the body has no element at ''"])]
#[case(json!({"request": {"body": {"a": [1]}, "message": "/a/1"}}), &["/request: 'message': the body has no element at '/a/1'"])]
#[case(json!({"request": {"body": {"a": "x"}, "message": "/a/b"}}), &["/request: 'message': the body has no element at '/a/b'"])]
#[case(json!({"request": {"body": []}}), &["/request/body: 'body' must be an object, found an array"])]
#[case(
    json!({"response": {"response": "response", "toolCall": {"nane": "/x", "params": 1}}}),
    &[
        "/response/response: 'response' must be a JSON pointer that starts with '/', or a JSONPath that starts with '$'",
        "/response/toolCall/params: 'params' must be a string, found a number",
        "/response/toolCall/nane: unknown key 'nane'",
    ]
)]
fn rejects_invalid_configurations(#[case] value: Value, #[case] expected: &[&str]) {
    assert_eq!(problems(&value), expected);
}
