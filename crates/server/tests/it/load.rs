//! Many at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use karat_server::Limits;
use prost::Message as _;
use tokio::task::JoinSet;

use crate::support::{Memory, PROTOBUF, Receiver, gzip, span, spans, trace_name};

/// Fifty clients send the spans of the same traces, each a span of every trace, in other orders.
#[tokio::test(flavor = "multi_thread")]
async fn spans_of_a_trace_come_from_everywhere_in_any_order() {
    let receiver = Arc::new(
        Receiver::with(Memory { delay: Duration::from_millis(5), ..Memory::default() }, Limits::default()).await,
    );
    let (clients, traces) = (50u8, 10u32);
    let mut sending = JoinSet::new();
    for client in 1..=clients {
        let receiver = Arc::clone(&receiver);
        sending.spawn(async move {
            for step in 0..traces {
                let trace = (step * 7 + u32::from(client)) % traces;
                let body = spans(vec![span(trace, client)]).encode_to_vec();
                let answer = if client % 2 == 0 {
                    receiver.send_packed(PROTOBUF, "gzip", gzip(&body)).await
                } else {
                    receiver.send("/v1/traces", PROTOBUF, body).await
                };
                assert_eq!(answer.status, 200, "{answer:?}");
                // Acknowledged is stored, at once.
                let stored = receiver.sink.traces();
                assert!(stored[&trace_name(trace)].spans.contains_key(&format!("{client:02x}").repeat(8)));
            }
        });
    }
    while let Some(done) = sending.join_next().await {
        done.unwrap();
    }
    let stored = receiver.sink.traces();
    assert_eq!(stored.len(), traces as usize);
    assert!(stored.values().all(|trace| trace.spans.len() == usize::from(clients)));
}

/// What cannot be stored fails its own request, however many are stored together.
#[tokio::test(flavor = "multi_thread")]
async fn one_request_does_not_fail_another() {
    let refuses = BTreeMap::from([(trace_name(3), "full of nonsense")]);
    let memory = Memory { refuses, delay: Duration::from_millis(20), ..Memory::default() };
    let receiver = Arc::new(Receiver::with(memory, Limits::default()).await);
    let mut sending = JoinSet::new();
    for trace in 0..20u32 {
        let receiver = Arc::clone(&receiver);
        sending.spawn(async move {
            let answer = receiver.send("/v1/traces", PROTOBUF, spans(vec![span(trace, 1)]).encode_to_vec()).await;
            (trace, answer.status)
        });
    }
    while let Some(done) = sending.join_next().await {
        let (trace, status) = done.unwrap();
        assert_eq!(status, if trace == 3 { 503 } else { 200 }, "trace {trace}");
    }
    assert_eq!(receiver.sink.traces().len(), 19);
}

/// What is in memory at once is bounded: who comes too much is asked to come again.
#[tokio::test(flavor = "multi_thread")]
async fn who_finds_no_room_comes_again() {
    let limits = Limits { total_bytes: 1 << 20, request_bytes: 1 << 20, ..Limits::default() };
    let memory = Memory { delay: Duration::from_millis(300), ..Memory::default() };
    let receiver = Arc::new(Receiver::with(memory, limits).await);
    let mut sending = JoinSet::new();
    for trace in 0..8u32 {
        let receiver = Arc::clone(&receiver);
        sending.spawn(async move {
            let mut large = span(trace, 1);
            large.name = "x".repeat(300 << 10);
            let body = spans(vec![large]).encode_to_vec();
            let mut refused = 0;
            loop {
                let answer = receiver.send("/v1/traces", PROTOBUF, body.clone()).await;
                match answer.status {
                    200 => return refused,
                    503 => assert_eq!(answer.retry_after.as_deref(), Some("2")),
                    status => panic!("{status}: {answer:?}"),
                }
                refused += 1;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
    }
    let mut refused = 0;
    while let Some(done) = sending.join_next().await {
        refused += done.unwrap();
    }
    assert!(refused > 0, "eight of 300 KiB do not fit into 1 MiB");
    assert_eq!(receiver.sink.traces().len(), 8);
}
