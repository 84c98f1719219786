//! Concurrent requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use karat_server::Limits;
use prost::Message as _;
use tokio::task::JoinSet;

use crate::support::{MemorySink, PROTOBUF, Receiver, gzip, hex_trace_id, span, spans};

/// Each of fifty clients sends one span of every trace, in a different order.
#[tokio::test(flavor = "multi_thread")]
async fn merges_spans_from_many_clients_in_any_order() {
    let receiver = Arc::new(
        Receiver::with(MemorySink { delay: Duration::from_millis(5), ..MemorySink::default() }, Limits::default())
            .await,
    );
    let (clients, traces) = (50u8, 10u32);
    let mut tasks = JoinSet::new();
    for client in 1..=clients {
        let receiver = Arc::clone(&receiver);
        tasks.spawn(async move {
            for step in 0..traces {
                let trace = (step * 7 + u32::from(client)) % traces;
                let body = spans(vec![span(trace, client)]).encode_to_vec();
                let response = if client % 2 == 0 {
                    receiver.send_compressed(PROTOBUF, "gzip", gzip(&body)).await
                } else {
                    receiver.send("/v1/traces", PROTOBUF, body).await
                };
                assert_eq!(response.status, 200, "{response:?}");
                // An acknowledged trace is already stored.
                let stored = receiver.sink.traces();
                assert!(stored[&hex_trace_id(trace)].spans.contains_key(&format!("{client:02x}").repeat(8)));
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let stored = receiver.sink.traces();
    assert_eq!(stored.len(), traces as usize);
    assert!(stored.values().all(|trace| trace.spans.len() == usize::from(clients)));
}

/// A trace that cannot be stored fails only its own request.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_request_does_not_affect_others() {
    let refused_traces = BTreeMap::from([(hex_trace_id(3), "full of nonsense")]);
    let sink = MemorySink { refused_traces, delay: Duration::from_millis(20), ..MemorySink::default() };
    let receiver = Arc::new(Receiver::with(sink, Limits::default()).await);
    let mut tasks = JoinSet::new();
    for trace in 0..20u32 {
        let receiver = Arc::clone(&receiver);
        tasks.spawn(async move {
            let response = receiver.send("/v1/traces", PROTOBUF, spans(vec![span(trace, 1)]).encode_to_vec()).await;
            (trace, response.status)
        });
    }
    while let Some(done) = tasks.join_next().await {
        let (trace, status) = done.unwrap();
        assert_eq!(status, if trace == 3 { 503 } else { 200 }, "trace {trace}");
    }
    assert_eq!(receiver.sink.traces().len(), 19);
}

#[tokio::test(flavor = "multi_thread")]
async fn tells_clients_to_retry_over_the_memory_limit() {
    let limits = Limits { max_total_bytes: 1 << 20, max_request_bytes: 1 << 20, ..Limits::default() };
    let sink = MemorySink { delay: Duration::from_millis(300), ..MemorySink::default() };
    let receiver = Arc::new(Receiver::with(sink, limits).await);
    let mut tasks = JoinSet::new();
    for trace in 0..8u32 {
        let receiver = Arc::clone(&receiver);
        tasks.spawn(async move {
            let mut large = span(trace, 1);
            large.name = "x".repeat(300 << 10);
            let body = spans(vec![large]).encode_to_vec();
            let mut refused = 0;
            loop {
                let response = receiver.send("/v1/traces", PROTOBUF, body.clone()).await;
                match response.status {
                    200 => return refused,
                    503 => assert_eq!(response.retry_after.as_deref(), Some("2")),
                    status => panic!("{status}: {response:?}"),
                }
                refused += 1;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
    }
    let mut refused = 0;
    while let Some(done) = tasks.join_next().await {
        refused += done.unwrap();
    }
    assert!(refused > 0, "eight requests of 300 KiB do not fit into 1 MiB");
    assert_eq!(receiver.sink.traces().len(), 8);
}
