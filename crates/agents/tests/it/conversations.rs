//! Conversations: turns, ids, history, sessions, cookies, polling and approvals.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use karat_agents::HttpAgent;
use karat_core::port::{Agent as _, AgentError, TrialContext};
use karat_core::trace::Trace;
use rstest::rstest;
use serde_json::{Value, json};

use crate::product_server::{ProductServer, ReceivedRequest, Sent};
use crate::support::{agent_at, ask, case, trial};

/// Sends several messages in one conversation.
async fn converse(agent: &HttpAgent, number: usize, messages: &[&str]) -> Vec<Result<Trace, AgentError>> {
    let case = case(messages[0]);
    let trial = TrialContext { has_turns: true, number, ..trial(&case, 0) };
    let mut conversation = agent.start(trial);
    let mut answers = Vec::new();
    for message in messages {
        answers.push(conversation.send(message).await);
    }
    answers
}

fn responses(answers: Vec<Result<Trace, AgentError>>) -> Vec<Result<String, String>> {
    answers.into_iter().map(|answer| answer.map(|trace| trace.response).map_err(|error| error.message)).collect()
}

async fn echo() -> ProductServer {
    ProductServer::start(|received| {
        let message = &received.body["message"];
        Sent::json(&json!({"response": format!("re: {}", message.as_str().unwrap_or_default())}))
    })
    .await
}

fn bodies(server: &ProductServer) -> Vec<Value> {
    server.received().into_iter().map(|received| received.body).collect()
}

#[tokio::test]
async fn a_single_message_is_sent_alone() {
    let server = echo().await;
    ask(&agent_at(&server.url, &json!({})), "hi").await.unwrap();
    assert_eq!(bodies(&server), [json!({"message": "hi"})]);
}

#[tokio::test]
async fn turns_carry_the_conversation() {
    let server = echo().await;
    let agent = agent_at(&server.url, &json!({}));
    let answers = responses(converse(&agent, 0, &["a", "b", "c"]).await);
    assert_eq!(answers, [Ok("re: a".to_owned()), Ok("re: b".to_owned()), Ok("re: c".to_owned())]);
    let bodies = bodies(&server);
    let id = bodies[0]["conversationId"].as_str().unwrap().to_owned();
    let message = |role: &str, content: &str| json!({"role": role, "content": content});
    let first = [message("user", "a"), message("assistant", "re: a")];
    assert_eq!(bodies[0], json!({"message": "a", "conversationId": id, "turn": 0, "messages": []}));
    assert_eq!(bodies[1], json!({"message": "b", "conversationId": id, "turn": 1, "messages": first}));
    assert_eq!(bodies[2]["messages"].as_array().map(Vec::len), Some(4));
    converse(&agent, 1, &["a"]).await;
    assert_ne!(self::bodies(&server)[3]["conversationId"], json!(id), "another trial is another conversation");
}

#[rstest]
#[case(
    json!({"body": {"input": {}}, "message": "/input/text", "conversationId": "/session", "turn": "/input/n"}),
    json!({"input": {"text": "b", "n": 1}, "session": "ID"})
)]
#[case(
    json!({"body": {"model": "m", "messages": [{"role": "system", "content": "Be kind."}]}, "messages": "/messages"}),
    json!({"model": "m", "messages": [
        {"role": "system", "content": "Be kind."}, {"role": "user", "content": "a"},
        {"role": "assistant", "content": "re: "}, {"role": "user", "content": "b"},
    ]})
)]
#[case(
    json!({"body": {"q": "{{message}}", "thread": "t-{{conversationId}}", "n": "{{turn}}", "case": "{{caseId}}"}}),
    json!({"q": "b", "thread": "t-ID", "n": 1, "case": "gs-x-001"})
)]
#[case(
    json!({"body": {"messages": [{"role": "user", "content": ""}]}, "message": "/messages/0/content"}),
    json!({"messages": [{"role": "user", "content": "b"}], "conversationId": "ID", "turn": 1})
)]
#[tokio::test]
async fn maps_the_conversation(#[case] request: Value, #[case] expected: Value) {
    let server = echo().await;
    converse(&agent_at(&server.url, &json!({"request": request})), 0, &["a", "b"]).await;
    let id = TrialContext { has_turns: true, ..trial(&case("a"), 0) }.conversation_id();
    let body: Value = serde_json::from_str(&bodies(&server)[1].to_string().replace(&id, "ID")).unwrap();
    assert_eq!(body, expected);
}

#[tokio::test]
async fn messages_keep_their_ids() {
    let server = echo().await;
    let form = |role: &str| json!({"id": "{{uuid}}", "role": role, "parts": [{"text": "{{content}}"}]});
    let request = json!({
        "messages": "/messages",
        "body": {"run": "{{uuid}}"},
        "messageForm": {"user": form("user"), "assistant": form("agent")},
    });
    converse(&agent_at(&server.url, &json!({"request": request})), 0, &["a", "b"]).await;
    let bodies = bodies(&server);
    let (first, second) = (&bodies[0]["messages"], &bodies[1]["messages"]);
    assert_eq!(first[0], second[0], "the same message has the same id");
    assert_eq!(second[1]["role"], "agent");
    assert_eq!(second[2]["parts"], json!([{"text": "b"}]));
    let mut ids: Vec<&Value> =
        (0..3).map(|index| &second[index]["id"]).chain([&bodies[0]["run"], &bodies[1]["run"]]).collect();
    ids.sort_by_key(std::string::ToString::to_string);
    ids.dedup();
    assert_eq!(ids.len(), 5, "{ids:?}");
}

#[tokio::test]
async fn the_agent_may_give_the_id() {
    let server = ProductServer::start(|_| Sent::json(&json!({"response": "ok", "meta": {"id": 7}}))).await;
    let agent = agent_at(&server.url, &json!({"response": {"conversationId": "/meta/id"}}));
    converse(&agent, 0, &["a", "b"]).await;
    let bodies = bodies(&server);
    assert_eq!((bodies[0].get("conversationId"), &bodies[1]["conversationId"]), (None, &json!("7")));
    let agent = agent_at(&server.url, &json!({"response": {"conversationId": "/none"}}));
    let answers = responses(converse(&agent, 0, &["a"]).await);
    assert_eq!(answers, [Err("the reply has no conversation id at '/none'".to_owned())]);
    assert!(ask(&agent, "a").await.is_ok(), "a single message needs no id");
}

/// Starts sessions with an id and a cookie, and refuses messages without them.
fn sessions(received: &ReceivedRequest, started: &AtomicUsize) -> Sent {
    if received.line == "POST /sessions" {
        let id = started.fetch_add(1, Ordering::Relaxed);
        let mut sent = Sent::json(&json!({"id": format!("s{id}")}));
        sent.headers = format!("{}set-cookie: sid=s{id}; Path=/; HttpOnly\r\n", sent.headers);
        return sent;
    }
    let id = received.line.strip_prefix("POST /sessions/").and_then(|rest| rest.strip_suffix("/messages"));
    let (Some(id), Some(cookie)) = (id, received.header("cookie")) else {
        return Sent { status: 403, ..Sent::json(&json!({"error": "no session"})) };
    };
    Sent::json(&json!({"response": format!("{id} {cookie} {}", received.body["text"].as_str().unwrap_or_default())}))
}

fn session_settings() -> Value {
    json!({
        "session": {"request": {"url": "/sessions", "body": {"user": "{{caseId}}"}}, "id": "/id"},
        "request": {"url": "/sessions/{{conversationId}}/messages", "body": {"text": "{{message}}"}},
    })
}

#[tokio::test]
async fn every_trial_has_its_own_session_and_cookies() {
    let started = AtomicUsize::new(0);
    let server = ProductServer::start(move |received| sessions(received, &started)).await;
    let agent = agent_at(&server.url, &session_settings());
    assert_eq!(ask(&agent, "hi").await.unwrap().response, "s0 sid=s0 hi");
    let answers = responses(converse(&agent, 1, &["a", "b"]).await);
    assert_eq!(answers, [Ok("s1 sid=s1 a".to_owned()), Ok("s1 sid=s1 b".to_owned())]);
    assert_eq!(
        server.lines(),
        [
            "POST /sessions",
            "POST /sessions/s0/messages",
            "POST /sessions",
            "POST /sessions/s1/messages",
            "POST /sessions/s1/messages"
        ]
    );
    assert_eq!(bodies(&server)[0], json!({"user": "gs-x-001"}));
    let mut settings = session_settings();
    settings["headers"] = json!({"cookie": "own=1"});
    assert_eq!(ask(&agent_at(&server.url, &settings), "hi").await.unwrap().response, "s2 own=1; sid=s2 hi");
}

#[tokio::test]
async fn concurrent_sessions_are_not_mixed() {
    let started = AtomicUsize::new(0);
    let server = ProductServer::start(move |received| sessions(received, &started)).await;
    let agent = agent_at(&server.url, &session_settings());
    let trials = (0..50).map(|number| {
        let agent = &agent;
        async move { responses(converse(agent, number, &[&format!("a{number}"), &format!("b{number}")]).await) }
    });
    let mut seen = Vec::new();
    for (number, answers) in join_all(trials).await.into_iter().enumerate() {
        let session = answers[0].as_ref().unwrap().split(' ').next().unwrap().to_owned();
        assert_eq!(answers[0], Ok(format!("{session} sid={session} a{number}")));
        assert_eq!(answers[1], Ok(format!("{session} sid={session} b{number}")));
        seen.push(session);
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 50);
}

#[rstest]
#[case(json!({"session": {"request": {"url": "/none"}, "id": "/id"}}), "cannot start a session: the agent returned HTTP 404 Not Found: {\"error\":\"no such path\"}")]
#[case(json!({"session": {"request": {}, "id": "/id"}}), "cannot start a session: the reply has no id at '/id'")]
#[case(json!({"session": {"request": {"url": "http://other.invalid/x"}, "id": "/id"}}), "'http://other.invalid/x' is not on the server of the endpoint")]
#[case(json!({"request": {"url": "/x/{{reply:/id}}", "body": {"m": "{{message}}"}}}), "the reply has no value at '/id', which the next request needs")]
#[tokio::test]
async fn reports_what_a_session_lacks(#[case] settings: Value, #[case] expected: &str) {
    let server = ProductServer::start(|received| match received.line.as_str() {
        "POST /" => Sent::json(&json!({"response": "ok"})),
        _ => Sent { status: 404, ..Sent::json(&json!({"error": "no such path"})) },
    })
    .await;
    let config = crate::support::config(&settings);
    let error = match HttpAgent::new(&server.url, config, &|_| None) {
        Ok(agent) => ask(&agent, "hi").await.unwrap_err().message,
        Err(error) => error.to_string(),
    };
    assert_eq!(error, expected);
}

#[tokio::test]
async fn a_retry_starts_a_fresh_session() {
    let started = AtomicUsize::new(0);
    let failures = AtomicUsize::new(0);
    let server = ProductServer::start(move |received| {
        if received.line.ends_with("/messages") && failures.fetch_add(1, Ordering::Relaxed) == 0 {
            return Sent { status: 503, headers: "retry-after: 0\r\n".to_owned(), ..Sent::json(&json!({})) };
        }
        sessions(received, &started)
    })
    .await;
    let throttle = std::sync::Arc::new(karat_agents::Throttle::new(1, None));
    let agent = agent_at(&server.url, &session_settings()).with_retries(1, throttle);
    assert_eq!(ask(&agent, "hi").await.unwrap().response, "s1 sid=s1 hi");
}

#[tokio::test]
async fn a_retry_has_another_conversation_id() {
    let count = AtomicUsize::new(0);
    let server = ProductServer::start(move |_| match count.fetch_add(1, Ordering::Relaxed) {
        0 => Sent { status: 503, headers: "retry-after: 0\r\n".to_owned(), ..Sent::json(&json!({})) },
        _ => Sent::json(&json!({"response": "ok"})),
    })
    .await;
    let throttle = std::sync::Arc::new(karat_agents::Throttle::new(1, None));
    let settings = json!({"request": {"conversationId": "/thread"}});
    let agent = agent_at(&server.url, &settings).with_retries(1, throttle);
    ask(&agent, "hi").await.unwrap();
    let bodies = bodies(&server);
    assert_ne!(bodies[0]["thread"], bodies[1]["thread"]);
}

#[tokio::test]
async fn polls_until_the_answer_is_there() {
    let polls = AtomicUsize::new(0);
    let server = ProductServer::start(move |received| {
        if received.line.starts_with("POST") {
            return Sent { status: 202, ..Sent::json(&json!({"run": "r 1"})) };
        }
        Sent::json(&match polls.fetch_add(1, Ordering::Relaxed) {
            0 => json!({"status": "queued"}),
            1 => json!({"status": "running"}),
            _ => json!({"status": "done", "response": "ok", "toolCalls": [{"name": "a"}]}),
        })
    })
    .await;
    let settings = json!({"poll": {
        "request": {"url": "/runs/{{reply:/run}}"},
        "until": {"path": "/status", "oneOf": ["done", "failed"]},
        "intervalMs": 20,
    }});
    let trace = ask(&agent_at(&server.url, &settings), "hi").await.unwrap();
    assert_eq!((trace.response.as_str(), trace.tool_names()), ("ok", vec!["a"]));
    assert!(trace.latency_ms >= 60.0, "{}", trace.latency_ms);
    assert_eq!(server.lines(), ["POST /", "GET /runs/r%201", "GET /runs/r%201", "GET /runs/r%201"]);
}

#[tokio::test]
async fn an_error_ends_polling() {
    let server = ProductServer::start(|received| match received.line.as_str() {
        "POST /" => Sent::json(&json!({"run": 1})),
        _ => Sent::json(&json!({"status": "failed", "error": "no model"})),
    })
    .await;
    let settings = json!({"poll": {
        "request": {"url": "/runs/{{reply:/run}}"}, "until": {"path": "/status", "equals": "done"}, "intervalMs": 1,
    }});
    let error = ask(&agent_at(&server.url, &settings), "hi").await.unwrap_err().message;
    assert_eq!(error, "the agent replied with an error: no model");
}

async fn asking_agent() -> ProductServer {
    ProductServer::start(|received| {
        Sent::json(&match received.body.get("decision") {
            None => json!({"state": "waiting", "ask": "Delete account 7?", "key": 5, "toolCalls": [{"name": "find"}]}),
            Some(decision) if decision["ok"] == true => {
                json!({"response": "Account 7 is deleted.", "toolCalls": [{"name": "delete"}]})
            }
            Some(_) => json!({"response": "I did not delete account 7.", "toolCalls": []}),
        })
    })
    .await
}

fn approval_settings(approvals: &Value) -> Value {
    json!({
        "response": {"approval": {"when": {"path": "/state", "equals": "waiting"}, "question": "/ask"}},
        "approvals": approvals,
        "resume": {
            "url": "/resume",
            "body": {"decision": "{{decision}}", "key": "{{reply:/key}}", "about": "{{approval:/question}}"},
            "approve": {"ok": true},
            "deny": {"ok": false},
        },
    })
}

#[tokio::test]
async fn a_question_is_shown_by_default() {
    let server = asking_agent().await;
    let trace = ask(&agent_at(&server.url, &approval_settings(&Value::Null)), "hi").await.unwrap();
    assert_eq!((trace.response.as_str(), trace.stop_reason.as_deref()), ("Delete account 7?", Some("approval")));
    assert_eq!(trace.tool_names(), ["find"]);
}

#[rstest]
#[case("approve", "Account 7 is deleted.", &["find", "delete"], true)]
#[case("deny", "I did not delete account 7.", &["find"], false)]
#[tokio::test]
async fn decisions_go_on(#[case] decision: &str, #[case] text: &str, #[case] calls: &[&str], #[case] ok: bool) {
    let server = asking_agent().await;
    let trace = ask(&agent_at(&server.url, &approval_settings(&json!(decision))), "hi").await.unwrap();
    assert_eq!((trace.response.as_str(), trace.tool_names()), (text, calls.to_vec()));
    assert_eq!(trace.stop_reason, None);
    assert_eq!(server.lines(), ["POST /", "POST /resume"]);
    assert_eq!(bodies(&server)[1], json!({"decision": {"ok": ok}, "key": 5, "about": "Delete account 7?"}));
}

#[tokio::test]
async fn an_agent_that_asks_for_ever_is_an_error() {
    let server = ProductServer::start(|_| Sent::json(&json!({"state": "waiting", "ask": "?", "key": 1}))).await;
    let error = ask(&agent_at(&server.url, &approval_settings(&json!("approve"))), "hi").await.unwrap_err().message;
    assert_eq!(error, "the agent asked for approval more than 20 times");
}

/// Presets have these keys, so that reading the configuration does not require them.
#[rstest]
#[case(json!({"approvals": "approve"}), "'agent.approvals' needs 'agent.resume'")]
#[case(json!({"session": {"id": "/id"}}), "'agent.session' needs 'request'")]
#[case(json!({"poll": {"until": {"path": "/done", "equals": true}}}), "'agent.poll' needs 'request'")]
#[case(json!({"poll": {"request": {"url": "/runs"}, "intervalMs": 50}}), "'agent.poll' needs 'until'")]
fn sections_must_be_complete(#[case] settings: Value, #[case] expected: &str) {
    let config = crate::support::config(&settings);
    let error = HttpAgent::new("http://host", config, &|_| None).unwrap_err().to_string();
    assert_eq!(error, expected);
}

#[tokio::test]
async fn variables_and_placeholders_work_everywhere() {
    let server = ProductServer::start(|_| Sent::json(&json!({"response": "ok"}))).await;
    let settings = json!({
        "headers": {"x-key": "k ${KEY}", "x-case": "{{caseId}}", "x-none": "{{reply:/none}}"},
        "request": {"url": "/a/{{message}}?k=${KEY}", "body": {"key": "${KEY}", "m": "<{{message}}>"}},
    });
    let lookup = |name: &str| (name == "KEY").then(|| "s3cr3t".to_owned());
    let agent = HttpAgent::new(&server.url, crate::support::config(&settings), &lookup).unwrap();
    ask(&agent, "a/b?").await.unwrap();
    let received = server.received().remove(0);
    assert_eq!(received.line, "POST /a/a%2Fb%3F?k=s3cr3t");
    assert_eq!(received.body, json!({"key": "s3cr3t", "m": "<a/b?>"}));
    assert_eq!((received.header("x-key"), received.header("x-case")), (Some("k s3cr3t"), Some("gs-x-001")));
    assert_eq!(received.header("x-none"), None);
    assert!(agent.secrets().iter().all(|secret| secret == "s3cr3t") && agent.secrets().len() >= 3);
    let determinants = serde_json::to_string(&agent.determinants(&case("hi"), 0)).unwrap();
    assert!(!determinants.contains("s3cr3t") && !format!("{agent:?}").contains("s3cr3t"), "{determinants}");
    let missing = HttpAgent::new(&server.url, crate::support::config(&settings), &|_| None).unwrap_err();
    assert_eq!(missing.to_string(), "cannot send the header 'x-key': the environment variable KEY is not set");
}

#[tokio::test]
async fn the_endpoint_may_have_variables_and_placeholders() {
    let server = ProductServer::start(|_| Sent::json(&json!({"response": "ok"}))).await;
    let lookup = |_: &str| Some("s3cr3t".to_owned());
    let url = format!("{}/${{KEY}}/{{{{caseId}}}}", server.url);
    let agent = HttpAgent::new(&url, crate::support::config(&json!({})), &lookup).unwrap();
    ask(&agent, "hi").await.unwrap();
    assert_eq!(server.lines(), ["POST /s3cr3t/gs-x-001"]);
    assert_eq!(agent.identity(), url);
}

/// The determinants of a plain agent must not change: they identify recordings.
#[test]
fn plain_determinants_are_stable() {
    let agent = agent_at("http://host/", &json!({}));
    let expected = json!({
        "method": "POST",
        "headers": {},
        "request": {"body": {}, "message": "/message"},
        "response": {
            "response": "/response",
            "toolCalls": "/toolCalls",
            "toolCall": {
                "name": "/name", "params": "/params", "success": "/success", "durationMs": "/durationMs",
                "result": "/result",
            },
            "usage": "/usage",
            "model": "/model",
        },
        "maxResponseBytes": 10_485_760,
    });
    assert_eq!(agent.determinants(&case("hi"), 0)["request"], expected);
}

#[test]
fn a_trace_context_is_valid_and_differs_between_turns() {
    let case = case("a");
    let context = |turn| trial(&case, 0).trace_context(turn);
    let is_hex = |id: &str| id.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    let (first, second) = (context(0), context(1));
    assert_eq!((first.trace_id.len(), first.span_id.len(), first.traceparent().len()), (32, 16, 55));
    assert!(is_hex(&first.trace_id) && is_hex(&first.span_id), "{first:?}");
    assert_eq!(first, context(0));
    assert_ne!(first.trace_id, second.trace_id);
}
