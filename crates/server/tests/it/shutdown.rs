//! Shutdown with requests in progress.

use std::time::{Duration, Instant};

use karat_server::{Limits, Shutdown};
use prost::Message as _;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::support::{MemorySink, PROTOBUF, Receiver, Response, hex_trace_id, span, spans};

#[tokio::test(flavor = "multi_thread")]
async fn requests_in_progress_are_stored_and_acknowledged() {
    let sink = MemorySink { delay: Duration::from_millis(500), ..MemorySink::default() };
    let receiver = Receiver::with(sink, Limits::default()).await;
    let (sink, client, address) = (receiver.sink.clone(), receiver.client.clone(), receiver.address);
    let url = receiver.url("/v1/traces");
    // An idle connection does not delay the shutdown.
    let _idle = TcpStream::connect(address).await.unwrap();
    let body = spans(vec![span(1, 1)]).encode_to_vec();
    let response = tokio::spawn(async move {
        let request = client.post(url).header("content-type", PROTOBUF).body(body);
        Response::read(request.send().await.unwrap()).await
    });
    while sink.writes.load(std::sync::atomic::Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let server = receiver.stop();
    assert_eq!(response.await.unwrap().status, 200);
    assert_eq!(server.await.unwrap().unwrap(), Shutdown::Graceful);
    assert!(sink.traces().contains_key(&hex_trace_id(1)));
    assert!(TcpStream::connect(address).await.is_err(), "the port is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_requests_are_aborted_after_the_grace_period() {
    let receiver = Receiver::start().await;
    let mut slow = TcpStream::connect(receiver.address).await.unwrap();
    let head = b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    slow.write_all(head).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let started = Instant::now();
    assert_eq!(receiver.stop().await.unwrap().unwrap(), Shutdown::TimedOut);
    assert!(started.elapsed() < Duration::from_secs(4));
}
