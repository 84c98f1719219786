//! Requests that are too large, too slow or invalid.

use std::time::{Duration, Instant};

use karat_server::Limits;
use prost::Message as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{JSON, MemorySink, PROTOBUF, Receiver, gzip, hex_trace_id, log, logs, span, spans};

#[tokio::test]
async fn rejects_a_request_of_100_megabytes() {
    let receiver = Receiver::start().await;
    let response = receiver.send("/v1/traces", PROTOBUF, vec![0; 100_000_000]).await;
    assert_eq!((response.status, response.media_type.as_str()), (413, PROTOBUF));
    assert!(response.text().contains("64 MiB"), "{}", response.text());
    assert_eq!(receiver.send("/v1/traces", JSON, "{}").await.status, 200);
}

#[tokio::test]
async fn limits_bodies_of_unknown_length() {
    let limits = Limits { max_request_bytes: 100_000, ..Limits::default() };
    let receiver = Receiver::with(MemorySink::default(), limits).await;
    let mut stream = TcpStream::connect(receiver.address).await.unwrap();
    stream
        .write_all(b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
        .await
        .unwrap();
    for _ in 0..20 {
        stream.write_all(b"2710\r\n").await.unwrap();
        stream.write_all(&[b' '; 10_000]).await.unwrap();
        stream.write_all(b"\r\n").await.unwrap();
    }
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    assert!(first_line(&mut stream).await.starts_with("HTTP/1.1 413 "));
}

#[tokio::test]
async fn rejects_a_large_request_before_100_continue() {
    let receiver = Receiver::start().await;
    let mut stream = TcpStream::connect(receiver.address).await.unwrap();
    let head = "POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
                content-length: 200000000\r\nexpect: 100-continue\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let started = Instant::now();
    assert!(first_line(&mut stream).await.starts_with("HTTP/1.1 413 "));
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn rejects_decompression_bombs() {
    let receiver = Receiver::start().await;
    // Concatenated gzip members are one stream.
    let bomb = gzip(&vec![0; 1 << 20]).repeat(1024);
    assert!(bomb.len() < 16 << 20, "a gigabyte in {} bytes", bomb.len());
    for media_type in [PROTOBUF, JSON] {
        let response = receiver.send_compressed(media_type, "gzip", bomb.clone()).await;
        assert_eq!((response.status, response.media_type.as_str()), (413, media_type));
    }
    assert_eq!(receiver.send("/v1/traces", JSON, "{}").await.status, 200);
}

async fn first_line(stream: &mut TcpStream) -> String {
    let mut received = Vec::new();
    let mut buffer = [0; 1024];
    while !received.contains(&b'\n') {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(read) => received.extend_from_slice(&buffer[..read]),
        }
    }
    String::from_utf8_lossy(&received).lines().next().unwrap_or_default().to_owned()
}

/// Stalled requests do not block others and get a timeout response.
#[tokio::test(flavor = "multi_thread")]
async fn slow_clients_do_not_block_others() {
    let limits = Limits {
        idle_timeout: Duration::from_millis(700),
        request_timeout: Duration::from_secs(2),
        ..Limits::default()
    };
    let receiver = Receiver::with(MemorySink::default(), limits).await;
    let mut stalled = Vec::new();
    let head = b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    for _ in 0..100 {
        let mut stream = TcpStream::connect(receiver.address).await.unwrap();
        stream.write_all(head).await.unwrap();
        stalled.push(stream);
    }
    let started = Instant::now();
    let response = receiver.send("/v1/traces", PROTOBUF, spans(vec![span(1, 1)]).encode_to_vec()).await;
    assert_eq!(response.status, 200);
    assert!(started.elapsed() < Duration::from_millis(700));
    for stream in &mut stalled {
        assert!(first_line(stream).await.starts_with("HTTP/1.1 408 "));
    }
    // A byte now and then exceeds the request timeout.
    let mut dripping = TcpStream::connect(receiver.address).await.unwrap();
    dripping.write_all(head).await.unwrap();
    let (mut reader, mut writer) = dripping.into_split();
    let drip = tokio::spawn(async move {
        while writer.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    });
    let mut status = vec![0; 12];
    reader.read_exact(&mut status).await.unwrap();
    assert_eq!(status, b"HTTP/1.1 408");
    drop(reader);
    drip.abort();
}

#[tokio::test]
async fn an_incomplete_request_stores_nothing_and_releases_its_memory() {
    let limits = Limits { max_total_bytes: 64 << 10, ..Limits::default() };
    let receiver = Receiver::with(MemorySink::default(), limits).await;
    let body = spans(vec![span(1, 1)]).encode_to_vec();
    for _ in 0..20 {
        let mut stream = TcpStream::connect(receiver.address).await.unwrap();
        let head = "POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\ncontent-length: 60000\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&body).await.unwrap();
        stream.write_all(&vec![0; 40_000]).await.unwrap();
        stream.shutdown().await.unwrap();
        // Its memory is released when the server sees the end.
        let _ = first_line(&mut stream).await;
    }
    assert!(receiver.sink.traces().is_empty());
    let response = receiver.send("/v1/traces", PROTOBUF, body).await;
    assert_eq!(response.status, 200);
}

/// A deterministic random number generator.
struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % bound
    }

    /// Changes, removes or repeats some bytes.
    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len().max(1)).min(bytes.len().saturating_sub(1));
            match self.below(5) {
                _ if bytes.is_empty() => bytes.push(0xff),
                0 => bytes[at] = u8::try_from(self.below(256)).unwrap_or_default(),
                1 => bytes[at] ^= 1 << self.below(8),
                2 => bytes.truncate(at),
                3 => {
                    let end = (at + self.below(9)).min(bytes.len());
                    let copied = bytes[at..end].to_vec();
                    let to = self.below(bytes.len());
                    bytes.splice(to..to, copied);
                }
                _ => {
                    bytes.remove(at);
                }
            }
        }
    }
}

/// Mutated requests are accepted or rejected as client errors.
#[tokio::test(flavor = "multi_thread")]
async fn invalid_requests_are_client_errors() {
    let receiver = Receiver::start().await;
    let traces = spans((0..5).map(|id| span(1, id)).collect());
    let logs = logs((0..5).map(|id| log(1, id, "{\"role\": \"user\"}")).collect());
    let seeds: [(&str, &str, Vec<u8>); 4] = [
        ("/v1/traces", PROTOBUF, traces.encode_to_vec()),
        ("/v1/traces", JSON, serde_json::to_vec(&traces).unwrap()),
        ("/v1/logs", PROTOBUF, logs.encode_to_vec()),
        ("/v1/logs", JSON, serde_json::to_vec(&logs).unwrap()),
    ];
    let mut rng = Rng(7);
    let mut statuses = std::collections::BTreeMap::new();
    for round in 0..1000 {
        let (path, media_type, seed) = &seeds[round % seeds.len()];
        let mut body = seed.clone();
        rng.mutate(&mut body);
        let is_compressed = round % 8 >= 4;
        if is_compressed {
            body = gzip(&body);
            if rng.below(4) == 0 {
                rng.mutate(&mut body);
            }
        }
        let mut request = receiver.client.post(receiver.url(path)).header("content-type", *media_type);
        if is_compressed {
            request = request.header("content-encoding", "gzip");
        }
        let status = request.body(body.clone()).send().await.unwrap().status().as_u16();
        *statuses.entry(status).or_insert(0) += 1;
        assert!(matches!(status, 200 | 400 | 413), "{status} for {path} {media_type}: {body:?}");
    }
    assert!(statuses[&200] > 100 && statuses[&400] > 100, "{statuses:?}");
    let response = receiver.send("/v1/traces", PROTOBUF, spans(vec![span(9, 1)]).encode_to_vec()).await;
    assert_eq!(response.status, 200);
    assert!(receiver.sink.traces().contains_key(&hex_trace_id(9)));
}
