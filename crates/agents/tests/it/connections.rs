//! Connections: reuse, concurrency and cancellation.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Value, json};

use crate::support::{agent, ask, serve, wait_until};

#[tokio::test]
async fn connections_are_reused() {
    let server = serve(json!({"*": {"response": "ok"}, "bad": {"status": 500, "raw": "no"}}));
    let agent = agent(&server);
    for number in 0..20 {
        let answer = ask(&agent, if number % 3 == 0 { "bad" } else { "good" }).await;
        assert_eq!(answer.is_ok(), number % 3 != 0);
    }
    assert_eq!(server.request_count(), 20);
    assert!(server.connections() <= 3, "{} connections", server.connections());
}

#[tokio::test]
async fn concurrent_requests_get_their_own_answers() {
    let entries = (0..64).map(|number| {
        let entry = json!({"response": format!("answer {number}"), "delayMs": 300 - number});
        (format!("question {number}"), entry)
    });
    let server = serve(Value::Object(entries.collect()));
    let agent = agent(&server);
    let questions: Vec<String> = (0..64).map(|number| format!("question {number}")).collect();
    let answers = join_all(questions.iter().map(|question| ask(&agent, question))).await;
    for (number, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.unwrap().response, format!("answer {number}"));
    }
    assert_eq!((server.request_count(), server.in_flight()), (64, 0));
    assert!(server.peak() > 32, "only {} concurrent requests", server.peak());
}

#[tokio::test]
async fn a_cancelled_call_closes_its_connection() {
    let server = serve(json!({"*": {"delayMs": 60_000}, "quick": {"response": "ok"}}));
    let agent = Arc::new(agent(&server));
    let calls: Vec<_> = (0..3)
        .map(|_| {
            let agent = Arc::clone(&agent);
            tokio::spawn(async move { ask(agent.as_ref(), "slow").await })
        })
        .collect();
    wait_until("all three requests arrive", || server.in_flight() == 3).await;
    calls[0].abort();
    wait_until("one is cancelled", || server.in_flight() == 2).await;
    calls.iter().for_each(tokio::task::JoinHandle::abort);
    wait_until("all are cancelled", || server.in_flight() == 0).await;
    assert_eq!(server.request_count(), 3, "cancelled calls are not retried");
    assert_eq!(ask(agent.as_ref(), "quick").await.unwrap().response, "ok");
}
