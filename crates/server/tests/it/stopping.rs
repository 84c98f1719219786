//! What is under way when the receiver is asked to stop.

use std::time::{Duration, Instant};

use karat_server::{Ending, Limits};
use prost::Message as _;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::support::{Answer, Memory, PROTOBUF, Receiver, span, spans, trace_name};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_under_way_is_stored_and_answered() {
    let memory = Memory { delay: Duration::from_millis(500), ..Memory::default() };
    let receiver = Receiver::with(memory, Limits::default()).await;
    let (sink, client, address) = (receiver.sink.clone(), receiver.client.clone(), receiver.address);
    let url = receiver.url("/v1/traces");
    // A connection that is open and idle holds nobody up.
    let _idle = TcpStream::connect(address).await.unwrap();
    let body = spans(vec![span(1, 1)]).encode_to_vec();
    let sending = tokio::spawn(async move {
        let request = client.post(url).header("content-type", PROTOBUF).body(body);
        Answer::of(request.send().await.unwrap()).await
    });
    while sink.writes.load(std::sync::atomic::Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let ended = receiver.stop();
    assert_eq!(sending.await.unwrap().status, 200);
    assert_eq!(ended.await.unwrap().unwrap(), Ending::Answered);
    assert!(sink.traces().contains_key(&trace_name(1)));
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_come_to_an_end_is_cut_off() {
    let receiver = Receiver::start().await;
    let mut slow = TcpStream::connect(receiver.address).await.unwrap();
    let head = b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    slow.write_all(head).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let started = Instant::now();
    assert_eq!(receiver.stop().await.unwrap().unwrap(), Ending::CutOff);
    assert!(started.elapsed() < Duration::from_secs(4));
}
