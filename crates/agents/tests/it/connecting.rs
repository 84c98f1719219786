//! Connections: used again, many at once, and let go.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Value, json};

use crate::support::{agent, ask, serve, wait_until};

#[tokio::test]
async fn a_connection_is_used_again() {
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
async fn each_of_many_at_once_gets_its_own_answer() {
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
    assert!(server.peak() > 32, "only {} at once", server.peak());
}

#[tokio::test]
async fn an_answer_that_nobody_waits_for_is_not_worked_on() {
    let server = serve(json!({"*": {"delayMs": 60_000}, "quick": {"response": "ok"}}));
    let agent = Arc::new(agent(&server));
    let asking: Vec<_> = (0..3)
        .map(|_| {
            let agent = Arc::clone(&agent);
            tokio::spawn(async move { ask(agent.as_ref(), "slow").await })
        })
        .collect();
    wait_until("all three arrive", || server.in_flight() == 3).await;
    asking[0].abort();
    wait_until("one is let go", || server.in_flight() == 2).await;
    asking.iter().for_each(tokio::task::JoinHandle::abort);
    wait_until("all are let go", || server.in_flight() == 0).await;
    assert_eq!(server.request_count(), 3, "and not asked again");
    assert_eq!(ask(agent.as_ref(), "quick").await.unwrap().response, "ok");
}
