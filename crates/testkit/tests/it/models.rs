//! The model APIs: responses, refused requests and misbehaving replies.

use std::time::{Duration, Instant};

use karat_testkit::server::ScriptedServer;
use rstest::rstest;
use serde_json::{Value, json};

use crate::wire::{exchange, post, split};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Api {
    OpenAi,
    Anthropic,
}

use Api::{Anthropic, OpenAi};

impl Api {
    fn path(self) -> &'static str {
        match self {
            OpenAi => "/v1/chat/completions",
            Anthropic => "/v1/messages",
        }
    }

    fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            OpenAi => &[("authorization", "Bearer test-key")],
            Anthropic => &[("x-api-key", "test-key"), ("anthropic-version", "2023-06-01")],
        }
    }

    /// Returns a valid request with these messages after the user's.
    fn request(self, message: &str, further: &[Value]) -> Value {
        let mut messages = vec![json!({"role": "user", "content": message})];
        messages.extend_from_slice(further);
        let schema = json!({"type": "object", "properties": {}});
        match self {
            OpenAi => json!({"model": "m", "messages": messages, "tools": [
                {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": schema}}]}),
            Anthropic => json!({"model": "m", "max_tokens": 9, "messages": messages, "tools": [
                {"name": "look", "description": "Looks.", "input_schema": schema}]}),
        }
    }

    /// Returns the messages of a call of `look` and its result.
    fn round(self) -> [Value; 2] {
        match self {
            OpenAi => [
                json!({"role": "assistant", "content": null, "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}]}),
                json!({"role": "tool", "tool_call_id": "a", "content": "1"}),
            ],
            Anthropic => [
                json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {}}]}),
                json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "1"}]}),
            ],
        }
    }

    fn ask(self, server: &ScriptedServer, body: &Value) -> (u16, Value) {
        let (status, _, body) = self.ask_raw(server, body);
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    fn ask_raw(self, server: &ScriptedServer, body: &Value) -> (u16, String, String) {
        split(exchange(server, &post(self.path(), self.headers(), body), usize::MAX).0)
    }

    /// Returns the text of an answer.
    fn text(self, answer: &Value) -> Value {
        match self {
            OpenAi => answer["choices"][0]["message"]["content"].clone(),
            Anthropic => answer["content"][0]["text"].clone(),
        }
    }

    fn error(self, status: u16, text: &str) -> Value {
        let kind = match (self, status) {
            (OpenAi, 429) => "requests",
            (OpenAi, 500..) => "server_error",
            (OpenAi, _) | (Anthropic, 400) => "invalid_request_error",
            (Anthropic, 401) => "authentication_error",
            (Anthropic, 429) => "rate_limit_error",
            (Anthropic, 529) => "overloaded_error",
            (Anthropic, _) => "api_error",
        };
        let code = match status {
            401 => json!("invalid_api_key"),
            429 => json!("rate_limit_exceeded"),
            _ => Value::Null,
        };
        match self {
            OpenAi => json!({"error": {"message": text, "type": kind, "param": null, "code": code}}),
            Anthropic => json!({"type": "error", "error": {"type": kind, "message": text}}),
        }
    }
}

#[test]
fn openai_gets_a_chat_completion() {
    let server = ScriptedServer::start(json!({
        "call": {"text": "let me look", "usage": [10, 5], "calls": [
            {"name": "look", "args": {"at": "x"}}, {"name": "look", "rawArgs": "{no"}, {"name": "listen"}]},
        "say": {"text": "hello"},
        "nothing": {},
    }));
    assert_eq!(
        OpenAi.ask(&server, &OpenAi.request("call", &[])),
        (
            200,
            json!({
                "id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "m",
                "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
                    "role": "assistant", "content": "let me look", "tool_calls": [
                        {"id": "call_0_look", "type": "function", "function": {"name": "look", "arguments": "{\"at\":\"x\"}"}},
                        {"id": "call_1_look", "type": "function", "function": {"name": "look", "arguments": "{no"}},
                        {"id": "call_2_listen", "type": "function", "function": {"name": "listen", "arguments": "{}"}},
                    ]}}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
            })
        )
    );
    let (_, answer) = OpenAi.ask(&server, &OpenAi.request("say", &[]));
    let expected = json!([{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}]);
    assert_eq!(answer["choices"], expected);
    assert_eq!(answer["usage"], json!({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}));
    let (_, silent) = OpenAi.ask(&server, &OpenAi.request("nothing", &[]));
    assert_eq!(silent["choices"][0]["message"], json!({"role": "assistant", "content": null}));
    assert_eq!(server.refusals(), Vec::<String>::new());
}

#[test]
fn anthropic_gets_a_message() {
    let server = ScriptedServer::start(json!({
        "call": {"text": "let me look", "usage": [10, 5], "calls": [
            {"name": "look", "args": {"at": "x"}}, {"name": "look", "rawArgs": "{no"}, {"name": "listen"}]},
        "say": {"text": "hello"},
        "nothing": {},
    }));
    assert_eq!(
        Anthropic.ask(&server, &Anthropic.request("call", &[])),
        (
            200,
            json!({
                "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
                "content": [
                    {"type": "text", "text": "let me look"},
                    {"type": "tool_use", "id": "toolu_0_look", "name": "look", "input": {"at": "x"}},
                    {"type": "tool_use", "id": "toolu_1_look", "name": "look", "input": "{no"},
                    {"type": "tool_use", "id": "toolu_2_listen", "name": "listen", "input": {}},
                ],
                "stop_reason": "tool_use", "stop_sequence": null, "usage": {"input_tokens": 10, "output_tokens": 5},
            })
        )
    );
    let (_, answer) = Anthropic.ask(&server, &Anthropic.request("say", &[]));
    assert_eq!(answer["content"], json!([{"type": "text", "text": "hello"}]));
    assert_eq!((&answer["stop_reason"], &answer["usage"]["input_tokens"]), (&json!("end_turn"), &json!(7)));
    assert_eq!(Anthropic.ask(&server, &Anthropic.request("nothing", &[])).1["content"], json!([]));
    assert_eq!(server.refusals(), Vec::<String>::new());
}

#[rstest]
fn turns_depend_on_the_conversation_and_sequences_on_requests(#[values(OpenAi, Anthropic)] api: Api) {
    let server = ScriptedServer::start(json!({
        "m": {"turns": [{"text": "first"}, {"text": "second"}]},
        "again": {"sequence": [{"status": 503, "text": "busy"}, {"turns": [{"text": "a"}, {"text": "b"}]}]},
    }));
    let [called, answered] = api.round();
    let twice = [called.clone(), answered.clone(), called.clone(), answered.clone()];
    let text = |message: &str, further: &[Value]| api.text(&api.ask(&server, &api.request(message, further)).1);
    assert_eq!(text("m", &[]), "first");
    assert_eq!(text("m", &[]), "first", "repeating a request does not advance");
    assert_eq!(text("m", &twice[..2]), "second");
    assert_eq!(text("m", &twice), "second", "the last turn repeats");
    assert_eq!(api.ask(&server, &api.request("again", &[])), (503, api.error(503, "busy")));
    assert_eq!((text("again", &[]), text("again", &twice[..2])), (json!("a"), json!("b")));
    assert_eq!(api.ask(&server, &api.request("who?", &[])), (400, api.error(400, "message not scripted")));
}

#[rstest]
fn finds_the_message_in_parts_and_after_a_system_prompt(#[values(OpenAi, Anthropic)] api: Api) {
    let server = ScriptedServer::start(json!({"one two": {"text": "found"}}));
    let mut request = api.request("", &[]);
    let parts = json!([{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]);
    let user = json!({"role": "user", "content": parts});
    match api {
        OpenAi => request["messages"] = json!([{"role": "system", "content": "be brief"}, user]),
        Anthropic => {
            request["messages"] = json!([user]);
            request["system"] = json!("be brief");
        }
    }
    assert_eq!(api.text(&api.ask(&server, &request).1), "found");
}

#[rstest]
#[case(429)]
#[case(500)]
#[case(529)]
#[case(400)]
fn errors_have_the_shape_of_the_provider(#[values(OpenAi, Anthropic)] api: Api, #[case] status: u16) {
    let server = ScriptedServer::start(json!({
        "m": {"status": status, "text": "slow down", "headers": {"retry-after": "7"}, "delayMs": 30},
        "bare": {"status": status},
    }));
    let start = Instant::now();
    let (got, head, body) = api.ask_raw(&server, &api.request("m", &[]));
    assert!(start.elapsed() >= Duration::from_millis(30));
    assert_eq!(got, status);
    assert!(head.contains("retry-after: 7"), "{head}");
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), api.error(status, "slow down"));
    assert_eq!(api.ask(&server, &api.request("bare", &[])), (status, api.error(status, "error")));
    assert_eq!(server.refusals(), Vec::<String>::new(), "a scripted error is not a refusal");
}

#[rstest]
fn sends_invalid_truncated_and_slow_turns(#[values(OpenAi, Anthropic)] api: Api) {
    let server = ScriptedServer::start(json!({
        "raw": {"raw": "<html>", "status": 502},
        "bytes": {"turns": [{"rawBytes": [255, 0]}]},
        "json": {"json": {"choices": []}},
        "gone": {"hangup": true},
        "huge": {"huge": 100_000},
        "tiny": {"huge": 5},
        "cut": {"text": "half", "truncated": true},
        "endless": {"endless": true},
        "slow": {"slowHeaders": 5},
        "late": {"text": "x", "delayMs": 60, "headers": {"x-id": "7"}},
    }));
    let bytes =
        |message: &str, limit| exchange(&server, &post(api.path(), api.headers(), &api.request(message, &[])), limit);
    let ask = |message: &str| split(bytes(message, usize::MAX).0);
    assert_eq!((ask("raw").0, ask("raw").2.as_str()), (502, "<html>"));
    assert!(bytes("bytes", usize::MAX).0.ends_with(b"\r\n\r\n\xff\0"));
    assert_eq!(ask("json").2, r#"{"choices":[]}"#);
    assert_eq!(bytes("gone", usize::MAX), (Vec::new(), true));
    let huge = ask("huge").2;
    assert_eq!(huge.len(), 100_000);
    let text = api.text(&serde_json::from_str(&huge).unwrap());
    assert!(text.as_str().unwrap().len() > 99_000, "a huge answer is valid");
    assert_eq!(ask("tiny").2, "aaaaa");
    let (_, head, body) = ask("cut");
    let content_length: usize = head.split("content-length: ").nth(1).unwrap().lines().next().unwrap().parse().unwrap();
    assert_eq!(api.text(&serde_json::from_str(&body).unwrap()), "half");
    assert!(content_length > body.len());
    let (endless, closed) = bytes("endless", 3_000_000);
    assert!(endless.len() >= 3_000_000 && !closed);
    let (slow, closed) = bytes("slow", 40);
    assert!(slow.starts_with(b"HTTP/1.1 200") && !slow.windows(4).any(|end| end == b"\r\n\r\n") && !closed);
    let start = Instant::now();
    assert!(ask("late").1.contains("x-id: 7"));
    assert!(start.elapsed() >= Duration::from_millis(60));
}

/// Sets the value at a JSON pointer. Null removes it.
fn with(mut request: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match request.pointer_mut(parent).unwrap() {
        Value::Object(map) if value.is_null() => drop(map.shift_remove(key)),
        Value::Object(map) => drop(map.insert(key.to_owned(), value)),
        Value::Array(list) if key == "-" => list.push(value),
        Value::Array(list) => list[key.parse::<usize>().unwrap()] = value,
        other => panic!("{other}"),
    }
    request
}

fn refused(api: Api, request: &Value) -> Option<String> {
    let server = ScriptedServer::start(json!({"*": {"text": "fine"}}));
    let (status, answer) = api.ask(&server, request);
    let refusals = server.refusals();
    if refusals.is_empty() {
        assert_eq!((status, api.text(&answer)), (200, json!("fine")));
        return None;
    }
    let [reason] = &refusals[..] else { panic!("{refusals:?}") };
    assert_eq!((status, &answer), (400, &api.error(400, reason)));
    Some(reason.clone())
}

#[rstest]
#[case::no_model("/model", Value::Null, "model")]
#[case::no_messages("/messages", json!([]), "messages")]
#[case::unknown_parameter("/max_turns", json!(1), "max_turns")]
#[case::wrong_temperature("/temperature", json!("0"), "temperature")]
#[case::high_temperature("/temperature", json!(2.5), "temperature")]
#[case::no_tokens("/max_tokens", json!(0), "max_tokens")]
#[case::streams("/stream", json!(true), "stream")]
#[case::unknown_role("/messages/0/role", json!("human"), "role")]
#[case::no_content("/messages/0/content", Value::Null, "content")]
#[case::wrong_content("/messages/0/content", json!({"text": "x"}), "content")]
#[case::no_tool_list("/tools", json!({}), "tools")]
#[case::empty_tool("/tools/0", json!({}), "tools")]
#[case::tool_as_string("/tools/0", json!("look"), "tools")]
fn both_apis_refuse(
    #[values(OpenAi, Anthropic)] api: Api,
    #[case] pointer: &str,
    #[case] value: Value,
    #[case] reason: &str,
) {
    assert_eq!(refused(api, &api.request("m", &[])), None);
    assert_eq!(refused(api, &api.request("m", &api.round())), None);
    let actual_reason = refused(api, &with(api.request("m", &[]), pointer, value));
    assert!(actual_reason.as_ref().is_some_and(|actual| actual.contains(reason)), "{actual_reason:?}");
}

#[rstest]
#[case("")]
#[case("two words")]
#[case("dotted.name")]
#[case("größe")]
#[case(&"a".repeat(65))]
fn both_apis_refuse_invalid_tool_names(#[values(OpenAi, Anthropic)] api: Api, #[case] name: &str) {
    let pointer = match api {
        OpenAi => "/tools/0/function/name",
        Anthropic => "/tools/0/name",
    };
    assert_eq!(refused(api, &with(api.request("m", &[]), pointer, json!("A-z_0".repeat(12)))), None);
    let actual_reason = refused(api, &with(api.request("m", &[]), pointer, json!(name))).unwrap();
    assert!(actual_reason.contains("does not match"), "{actual_reason}");
}

#[rstest]
#[case("/tools/0", json!({"name": "look", "input_schema": {"type": "object"}}), "tools[0].function: missing")]
#[case("/tools/0/input_schema", json!({}), "'input_schema' is not permitted")]
#[case("/tools/0/type", Value::Null, "tools[0].type")]
#[case("/tools/0/function/inputSchema", json!({}), "'inputSchema' is not permitted")]
#[case("/tools/0/function/parameters", json!({}), "of type 'object'")]
#[case("/tools/0/function/description", json!(1), "not a string")]
#[case("/tools", json!([]), "at least one tool")]
#[case("/tool_choice", json!("any"), "tool_choice")]
#[case("/tool_choice", json!({"type": "function", "function": {"name": "other"}}), "does not name a tool")]
#[case("/seed", json!(1.5), "seed")]
#[case("/system", json!("be brief"), "'system' is not permitted")]
#[case("/response_format", json!({"type": "json_schema", "json_schema": {"schema": {}}}), "response_format")]
#[case("/response_format", json!({"type": "json"}), "response_format")]
#[case("/messages/2/tool_call_id", json!("b"), "tool_call_id 'b' matches no open call")]
#[case("/messages/2/content", json!({"t": 1}), "not a string")]
#[case("/messages/2/content", Value::Null, "not a string")]
#[case("/messages/2", json!({"role": "user", "content": "x"}), "did not have response messages: a")]
#[case("/messages/-", json!({"role": "tool", "tool_call_id": "a", "content": "1"}), "matches no open call")]
#[case("/messages/1/content", json!(1), "not a string")]
#[case("/messages/1/tool_calls", json!([]), "at least one")]
#[case("/messages/1/tool_calls/0/id", Value::Null, "id: missing")]
#[case("/messages/1/tool_calls/0/type", Value::Null, "type: not 'function'")]
#[case("/messages/1/tool_calls/0/function/name", json!(""), "does not match")]
#[case("/messages/1/tool_calls/0/function/arguments", json!({}), "arguments: not a string")]
#[case("/messages/-", json!({"role": "assistant", "content": null}), "neither content nor tool_calls")]
fn openai_refuses(#[case] pointer: &str, #[case] value: Value, #[case] reason: &str) {
    let actual_reason = refused(OpenAi, &with(OpenAi.request("m", &OpenAi.round()), pointer, value));
    assert!(actual_reason.as_ref().is_some_and(|actual| actual.contains(reason)), "{actual_reason:?}");
}

#[rstest]
#[case("/tools/0", json!({"type": "function", "function": {"name": "look"}}), "is not permitted")]
#[case("/tools/0/input_schema", Value::Null, "input_schema.type")]
#[case("/tools/0/parameters", json!({}), "'parameters' is not permitted")]
#[case("/tools/-", json!({"name": "look", "input_schema": {"type": "object"}}), "must be unique")]
#[case("/max_tokens", Value::Null, "max_tokens: field required")]
#[case("/temperature", json!(1.5), "temperature")]
#[case("/seed", json!(1), "'seed' is not permitted")]
#[case("/tool_choice", json!("auto"), "tool_choice")]
#[case("/tool_choice", json!({"type": "tool", "name": "other"}), "does not name a tool")]
#[case("/system", json!({"text": "x"}), "system")]
#[case("/messages/0/role", json!("system"), "unknown")]
#[case("/messages/0/role", json!("assistant"), "alternate")]
#[case("/messages/0/content", json!(""), "non-empty content")]
#[case("/messages/0/content", json!([{"type": "text", "text": " "}]), "non-whitespace")]
#[case("/messages/-", json!({"role": "user", "content": "x"}), "alternate")]
#[case("/messages/1/content", json!([]), "non-empty content")]
#[case("/messages/1/content/0/input", json!("{no"), "input: not an object")]
#[case("/messages/1/content/0/id", Value::Null, "id: missing")]
#[case("/messages/1/content/0/name", json!("a b"), "does not match")]
#[case("/messages/1/content/-", json!({"type": "text", "text": ""}), "non-whitespace")]
#[case("/messages/1/content/-", json!({"type": "tool_result", "tool_use_id": "a"}), "unknown for an assistant")]
#[case("/messages/1/content", json!("x"), "matches no tool_use of the previous message")]
#[case("/messages/2/content", json!("x"), "without tool_result blocks immediately after: a")]
#[case("/messages/2/content/0", json!({"type": "text", "text": "x"}), "without tool_result blocks")]
#[case("/messages/2/content/0/tool_use_id", json!("b"), "tool_use_id 'b' matches no tool_use")]
#[case("/messages/2/content/0/content", json!({"t": 1}), "neither a string nor text blocks")]
#[case("/messages/2/content/0/is_error", json!("true"), "is_error")]
#[case("/messages/2/content/0/tool_call_id", json!("a"), "'tool_call_id' is not permitted")]
fn anthropic_refuses(#[case] pointer: &str, #[case] value: Value, #[case] reason: &str) {
    let actual_reason = refused(Anthropic, &with(Anthropic.request("m", &Anthropic.round()), pointer, value));
    assert!(actual_reason.as_ref().is_some_and(|actual| actual.contains(reason)), "{actual_reason:?}");
}

#[test]
fn every_call_needs_one_result_in_any_order() {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}});
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "1"});
    let called = json!({"role": "assistant", "tool_calls": [call("a"), call("b")]});
    let openai = |results: &[Value]| {
        let messages: Vec<Value> = std::iter::once(&called).chain(results).cloned().collect();
        refused(OpenAi, &OpenAi.request("m", &messages))
    };
    assert_eq!(openai(&[result("a"), result("b")]), None);
    assert_eq!(openai(&[result("b"), result("a")]), None);
    assert!(openai(&[result("a")]).unwrap().ends_with("did not have response messages: b"));
    assert!(openai(&[result("a"), result("a")]).unwrap().contains("'a' matches no open call"));
    assert!(openai(&[]).unwrap().ends_with("a, b"));

    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "look", "input": {}});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "1"});
    let called = json!({"role": "assistant", "content": [call("a"), call("b")]});
    let anthropic = |results: &[Value]| {
        let messages = [called.clone(), json!({"role": "user", "content": results})];
        refused(Anthropic, &Anthropic.request("m", &messages))
    };
    assert_eq!(anthropic(&[result("a"), result("b")]), None);
    assert_eq!(anthropic(&[result("b"), result("a"), json!({"type": "text", "text": "x"})]), None);
    assert!(anthropic(&[result("a")]).unwrap().ends_with("immediately after: b"));
    assert!(anthropic(&[result("a"), result("a")]).unwrap().contains("'a' matches no tool_use"));
    let twice = json!({"role": "assistant", "content": [call("a"), call("a")]});
    assert!(refused(Anthropic, &Anthropic.request("m", &[twice])).unwrap().contains("not unique"));
}

#[test]
fn tool_choice_requires_tools() {
    let bare = with(OpenAi.request("m", &[]), "/tools", Value::Null);
    assert_eq!(refused(OpenAi, &bare), None);
    for (key, value) in [("/tool_choice", json!("auto")), ("/parallel_tool_calls", json!(true))] {
        assert!(refused(OpenAi, &with(bare.clone(), key, value)).unwrap().contains("when tools are specified"));
    }
    let both = with(bare, "/max_tokens", json!(1));
    assert!(refused(OpenAi, &with(both, "/max_completion_tokens", json!(1))).unwrap().contains("cannot both"));
    assert_eq!(refused(Anthropic, &with(Anthropic.request("m", &[]), "/tools", json!([]))), None);
}

#[rstest]
#[case(OpenAi, &[], 401)]
#[case(OpenAi, &[("authorization", "Bearer ")], 401)]
#[case(OpenAi, &[("authorization", "test-key")], 401)]
#[case(OpenAi, &[("x-api-key", "test-key")], 401)]
#[case(OpenAi, &[("authorization", "Bearer k")], 200)]
#[case(Anthropic, &[("anthropic-version", "2023-06-01")], 401)]
#[case(Anthropic, &[("anthropic-version", "2023-06-01"), ("authorization", "Bearer k")], 401)]
#[case(Anthropic, &[("x-api-key", "k")], 400)]
#[case(Anthropic, &[("anthropic-version", "2023-06-01"), ("x-api-key", "k")], 200)]
fn requires_an_api_key(#[case] api: Api, #[case] headers: &[(&str, &str)], #[case] expected: u16) {
    let server = ScriptedServer::start(json!({"*": {"text": "fine"}}));
    let request = post(api.path(), headers, &api.request("m", &[]));
    let (status, _, body) = split(exchange(&server, &request, usize::MAX).0);
    assert_eq!(status, expected, "{body}");
    if let [reason] = &server.refusals()[..] {
        assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), api.error(expected, reason));
    }
    assert_eq!(server.requests()[0].path, api.path(), "refused requests are recorded too");
    let server = ScriptedServer::start(json!({"*": {"text": "fine"}})).without_keys();
    let status = split(exchange(&server, &request, usize::MAX).0).0;
    assert_eq!(status, if expected == 401 { 200 } else { expected });
}

#[rstest]
fn a_refused_request_does_not_advance_the_script(#[values(OpenAi, Anthropic)] api: Api) {
    let server = ScriptedServer::start(json!({
        "*": {"storm": {"every": 2, "status": 429}},
        "m": {"sequence": [{"text": "first"}, {"text": "second"}]},
    }));
    let broken = with(api.request("m", &[]), "/model", Value::Null);
    let answers: Vec<_> = [&broken, &api.request("m", &[]), &broken, &api.request("m", &[]), &api.request("m", &[])]
        .into_iter()
        .map(|request| api.ask(&server, request))
        .collect();
    assert_eq!(answers.iter().map(|(status, _)| *status).collect::<Vec<_>>(), [400, 200, 400, 429, 200]);
    assert_eq!((api.text(&answers[1].1), api.text(&answers[4].1)), (json!("first"), json!("second")));
    assert_eq!((server.request_count(), server.refusals().len()), (5, 2));
}

#[rstest]
fn a_periodic_entry_applies_to_every_nth_request(#[values(OpenAi, Anthropic)] api: Api) {
    let server = ScriptedServer::start(json!({
        "*": {"storm": {"every": 3, "status": 429, "text": "wait", "headers": {"retry-after": "1"}}, "text": "any"},
        "m": {"text": "mine"},
    }));
    let ask = |message: &str| api.ask_raw(&server, &api.request(message, &[]));
    let statuses = ["a", "m", "a", "m", "b", "m", "m"].map(|message| ask(message).0);
    assert_eq!(statuses, [200, 200, 429, 200, 200, 429, 200]);
    assert_eq!(ask("a").0, 200);
    let (status, head, body) = ask("m");
    assert_eq!((status, serde_json::from_str::<Value>(&body).unwrap()), (429, api.error(429, "wait")));
    assert!(head.contains("retry-after: 1"));
    assert_eq!(api.text(&api.ask(&server, &api.request("z", &[])).1), "any");
    server.reset(json!({"*": {"storm": {"every": 2, "hangup": true}}, "m": {"text": "mine"}}));
    assert_eq!(ask("m").0, 200);
    let gone = exchange(&server, &post(api.path(), api.headers(), &api.request("m", &[])), usize::MAX);
    assert_eq!(gone, (Vec::new(), true));
    assert_eq!(ask("z").0, 400, "a periodic entry does not answer other messages");
}

#[test]
#[should_panic(expected = "'every' must be at least 1")]
fn rejects_a_periodic_entry_without_an_interval() {
    ScriptedServer::start(json!({"*": {"storm": {"status": 429}}}));
}

#[test]
#[should_panic(expected = "the turns of 'm' are not a list of objects")]
fn rejects_empty_turns() {
    ScriptedServer::start(json!({"m": {"sequence": [{"turns": []}]}}));
}

#[test]
fn structured_answers_follow_the_request() {
    let server = ScriptedServer::start(json!({"*": {"structured": {"score": 4}}}));
    let schema = json!({"type": "json_schema", "json_schema": {"name": "score", "schema": {"type": "object"}}});
    let (_, answer) = OpenAi.ask(&server, &with(OpenAi.request("m", &[]), "/response_format", schema));
    assert_eq!(OpenAi.text(&answer), r#"{"score":4}"#);
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    let forced = json!({"type": "function", "function": {"name": "look"}});
    let (_, answer) = OpenAi.ask(&server, &with(OpenAi.request("m", &[]), "/tool_choice", forced));
    let call = &answer["choices"][0]["message"]["tool_calls"][0]["function"];
    assert_eq!(*call, json!({"name": "look", "arguments": "{\"score\":4}"}));
    let forced = json!({"type": "tool", "name": "look"});
    let (_, answer) = Anthropic.ask(&server, &with(Anthropic.request("m", &[]), "/tool_choice", forced));
    let expected = json!([{"type": "tool_use", "id": "toolu_0_look", "name": "look", "input": {"score": 4}}]);
    assert_eq!((&answer["content"], &answer["stop_reason"]), (&expected, &json!("tool_use")));
    for api in [OpenAi, Anthropic] {
        let (status, answer) = api.ask(&server, &api.request("m", &[]));
        assert_eq!((status, answer), (400, api.error(400, "a structured answer is scripted but was not requested")));
    }
    assert_eq!(server.refusals().len(), 2);
}

#[test]
fn records_arrival_times() {
    let server = ScriptedServer::start(json!({"*": {"text": "x"}}));
    let ask = || OpenAi.ask(&server, &OpenAi.request("m", &[])).0;
    let before = Instant::now();
    ask();
    ask();
    std::thread::sleep(Duration::from_millis(120));
    ask();
    let requests = server.requests();
    assert!(requests.is_sorted_by_key(|request| request.at));
    assert!(before <= requests[0].at && requests[2].at <= Instant::now());
    assert_eq!(requests[0].headers["authorization"], "Bearer test-key");
    assert_eq!(server.max_requests_within(Duration::from_mins(1)), 3);
    assert_eq!(server.max_requests_within(requests[2].at - requests[0].at), 2);
    assert_eq!(server.max_requests_within(Duration::from_nanos(1)), 1);
    server.reset(json!({}));
    assert_eq!(server.max_requests_within(Duration::from_mins(1)), 0);
}

#[test]
fn one_server_supports_all_protocols() {
    let server = ScriptedServer::start(json!({"m": {"text": "x", "response": "y"}}));
    assert_eq!(OpenAi.text(&OpenAi.ask(&server, &OpenAi.request("m", &[])).1), "x");
    assert_eq!(Anthropic.text(&Anthropic.ask(&server, &Anthropic.request("m", &[])).1), "x");
    let agent = split(exchange(&server, &post("/chat", &[], &json!({"message": "m"})), usize::MAX).0).2;
    assert_eq!(serde_json::from_str::<Value>(&agent).unwrap()["response"], "y");
    let paths: Vec<_> = server.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/v1/chat/completions", "/v1/messages", "/chat"]);
}

#[rstest]
#[case(json!([]))]
#[case(json!("text"))]
#[case(json!(null))]
#[case(json!({"model": 1, "max_tokens": "many", "messages": 5, "tools": 7}))]
#[case(json!({"model": "m", "max_tokens": 9, "messages": [1, null, "x", []]}))]
#[case(json!({"model": "m", "max_tokens": 9, "messages": [{"role": ["user"], "content": {}}]}))]
#[case(json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [1, {"type": 2}]}]}))]
#[case(json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}, {"role": "assistant",
    "content": [{"type": "tool_use"}], "tool_calls": [5]}]}))]
#[case(json!({"model": "m", "max_tokens": 9, "messages": [{"role": "tool", "tool_call_id": 1, "content": [[]]}]}))]
fn survives_malformed_requests(#[values(OpenAi, Anthropic)] api: Api, #[case] body: Value) {
    let server = ScriptedServer::start(json!({"*": {"text": "fine"}}));
    let (status, answer) = api.ask(&server, &body);
    assert_eq!((status, &answer), (400, &api.error(400, &server.refusals()[0])));
    assert_eq!(api.ask(&server, &api.request("m", &[])).0, 200);
}

#[test]
fn a_strict_schema_requires_every_key_and_no_others() {
    let server = ScriptedServer::start(json!({"*": {"structured": {}}}));
    let inner = |required: Value, more: Value| {
        let object = json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}}, "required": required,
            "additionalProperties": more});
        json!({"type": "object", "properties": {"list": {"type": "array", "items": object}}, "required": ["list"],
            "additionalProperties": false})
    };
    for (schema, status) in [
        (inner(json!(["a"]), json!(false)), 200),
        (inner(json!([]), json!(false)), 400),
        (inner(json!(["a"]), json!(true)), 400),
        (json!({"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": false}), 400),
    ] {
        let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": true}});
        let (answered, _) = OpenAi.ask(&server, &with(OpenAi.request("m", &[]), "/response_format", format));
        assert_eq!(answered, status, "{schema}");
    }
}

#[rstest]
#[case(OpenAi)]
#[case(Anthropic)]
fn a_queue_is_used_in_order_for_any_message(#[case] api: Api) {
    let queue = json!([{"text": "one"}, {"status": 429, "text": "slow down", "headers": {"retry-after": "0"}}, {"text": "two"}]);
    let server = ScriptedServer::start(json!({"*": {"queue": queue}, "own": {"text": "mine"}}));
    let text = |message: &str| api.text(&api.ask(&server, &api.request(message, &[])).1);
    assert_eq!(text("a"), "one");
    assert_eq!(text("own"), "mine", "an entry for the message takes precedence over the queue");
    let (status, head, _) = api.ask_raw(&server, &api.request("b", &[]));
    assert_eq!(status, 429);
    assert!(head.contains("retry-after: 0"), "{head}");
    assert_eq!((text("c"), text("a")), (json!("two"), json!("two")));
}

#[test]
fn refusals_and_truncated_answers_have_the_shape_of_the_api() {
    let ask = |api: Api, entry: Value| {
        let server = ScriptedServer::start(json!({"*": entry}));
        api.ask(&server, &api.request("m", &[])).1
    };
    let refused = ask(OpenAi, json!({"refusal": "No."}));
    let choice = &refused["choices"][0];
    assert_eq!((&choice["message"]["refusal"], &choice["message"]["content"]), (&json!("No."), &Value::Null));
    assert_eq!(choice["finish_reason"], "stop");
    let refused = ask(Anthropic, json!({"refusal": "No."}));
    assert_eq!((&refused["stop_reason"], Anthropic.text(&refused)), (&json!("refusal"), json!("No.")));
    let cut = json!({"text": "{\"a\":", "cutOff": true});
    assert_eq!(ask(OpenAi, cut.clone())["choices"][0]["finish_reason"], "length");
    assert_eq!(ask(Anthropic, cut)["stop_reason"], "max_tokens");
}

#[test]
fn a_structured_answer_may_be_invalid_json() {
    let server = ScriptedServer::start(json!({"*": {"rawStructured": "{\"cases\": ["}}));
    let schema = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}});
    let (_, answer) = OpenAi.ask(&server, &with(OpenAi.request("m", &[]), "/response_format", schema));
    assert_eq!(OpenAi.text(&answer), "{\"cases\": [");
    let forced = json!({"type": "tool", "name": "look"});
    let (_, answer) = Anthropic.ask(&server, &with(Anthropic.request("m", &[]), "/tool_choice", forced));
    assert_eq!(answer["content"][0]["input"], "{\"cases\": [");
}
