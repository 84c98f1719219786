//! Those who send too much, too slowly, or nonsense.

use std::time::{Duration, Instant};

use karat_server::Limits;
use prost::Message as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{JSON, Memory, PROTOBUF, Receiver, gzip, log, logs, span, spans, trace_name};

#[tokio::test]
async fn a_hundred_megabytes_are_too_much() {
    let receiver = Receiver::start().await;
    let answer = receiver.send("/v1/traces", PROTOBUF, vec![0; 100_000_000]).await;
    assert_eq!((answer.status, answer.media_type.as_str()), (413, PROTOBUF));
    assert!(answer.text().contains("64 MiB"), "{}", answer.text());
    assert_eq!(receiver.send("/v1/traces", JSON, "{}").await.status, 200);
}

/// Nobody says how much it will be.
#[tokio::test]
async fn a_body_of_unknown_length_is_bounded() {
    let limits = Limits { request_bytes: 100_000, ..Limits::default() };
    let receiver = Receiver::with(Memory::default(), limits).await;
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

/// Who asks before sending is told at once.
#[tokio::test]
async fn who_waits_for_a_word_gets_one() {
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
async fn a_bomb_is_not_unpacked() {
    let receiver = Receiver::start().await;
    // A file of many parts is one file, as everybody reads it.
    let bomb = gzip(&vec![0; 1 << 20]).repeat(1024);
    assert!(bomb.len() < 16 << 20, "a gigabyte in {} bytes", bomb.len());
    for media_type in [PROTOBUF, JSON] {
        let answer = receiver.send_packed(media_type, "gzip", bomb.clone()).await;
        assert_eq!((answer.status, answer.media_type.as_str()), (413, media_type));
    }
    assert_eq!(receiver.send("/v1/traces", JSON, "{}").await.status, 200);
}

async fn first_line(stream: &mut TcpStream) -> String {
    let mut said = Vec::new();
    let mut buffer = [0; 1024];
    while !said.contains(&b'\n') {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(read) => said.extend_from_slice(&buffer[..read]),
        }
    }
    String::from_utf8_lossy(&said).lines().next().unwrap_or_default().to_owned()
}

/// Those who begin and do not go on hold nobody up, and are told when their time is over.
#[tokio::test(flavor = "multi_thread")]
async fn slow_senders_hold_nobody_up() {
    let limits = Limits { pause: Duration::from_millis(700), arrival: Duration::from_secs(2), ..Limits::default() };
    let receiver = Receiver::with(Memory::default(), limits).await;
    let mut silent = Vec::new();
    let head = b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    for _ in 0..100 {
        let mut stream = TcpStream::connect(receiver.address).await.unwrap();
        stream.write_all(head).await.unwrap();
        silent.push(stream);
    }
    let started = Instant::now();
    let answer = receiver.send("/v1/traces", PROTOBUF, spans(vec![span(1, 1)]).encode_to_vec()).await;
    assert_eq!(answer.status, 200);
    assert!(started.elapsed() < Duration::from_millis(700));
    for stream in &mut silent {
        assert!(first_line(stream).await.starts_with("HTTP/1.1 408 "));
    }
    // A byte now and then is too slow as well.
    let mut dripping = TcpStream::connect(receiver.address).await.unwrap();
    dripping.write_all(head).await.unwrap();
    let (mut reader, mut writer) = dripping.into_split();
    let drip = tokio::spawn(async move {
        while writer.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    });
    let mut said = vec![0; 12];
    reader.read_exact(&mut said).await.unwrap();
    assert_eq!(said, b"HTTP/1.1 408");
    drop(reader);
    drip.abort();
}

/// Who hangs up leaves nothing behind.
#[tokio::test]
async fn half_a_request_is_none() {
    let limits = Limits { total_bytes: 64 << 10, ..Limits::default() };
    let receiver = Receiver::with(Memory::default(), limits).await;
    let body = spans(vec![span(1, 1)]).encode_to_vec();
    for _ in 0..20 {
        let mut stream = TcpStream::connect(receiver.address).await.unwrap();
        let head = "POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\ncontent-length: 60000\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&body).await.unwrap();
        stream.write_all(&vec![0; 40_000]).await.unwrap();
        stream.shutdown().await.unwrap();
        // What is left of it is the room that it took, until its end is seen.
        let _ = first_line(&mut stream).await;
    }
    assert!(receiver.sink.traces().is_empty());
    let answer = receiver.send("/v1/traces", PROTOBUF, body).await;
    assert_eq!(answer.status, 200);
}

/// Numbers that look random and are the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % bound
    }

    /// Changes, removes, repeats or inserts some bytes.
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

/// Whatever is sent is taken or refused as the sender's fault.
#[tokio::test(flavor = "multi_thread")]
async fn nonsense_is_the_senders_fault() {
    let receiver = Receiver::start().await;
    let traces = spans((0..5).map(|id| span(1, id)).collect());
    let logs = logs((0..5).map(|id| log(1, id, "{\"role\": \"user\"}")).collect());
    let seeds: [(&str, &str, Vec<u8>); 4] = [
        ("/v1/traces", PROTOBUF, traces.encode_to_vec()),
        ("/v1/traces", JSON, serde_json::to_vec(&traces).unwrap()),
        ("/v1/logs", PROTOBUF, logs.encode_to_vec()),
        ("/v1/logs", JSON, serde_json::to_vec(&logs).unwrap()),
    ];
    let mut numbers = Numbers(7);
    let mut statuses = std::collections::BTreeMap::new();
    for round in 0..1000 {
        let (path, media_type, seed) = &seeds[round % seeds.len()];
        let mut body = seed.clone();
        numbers.mutate(&mut body);
        let packed = round % 8 >= 4;
        if packed {
            body = gzip(&body);
            if numbers.below(4) == 0 {
                numbers.mutate(&mut body);
            }
        }
        let mut request = receiver.client.post(receiver.url(path)).header("content-type", *media_type);
        if packed {
            request = request.header("content-encoding", "gzip");
        }
        let status = request.body(body.clone()).send().await.unwrap().status().as_u16();
        *statuses.entry(status).or_insert(0) += 1;
        assert!(matches!(status, 200 | 400 | 413), "{status} for {path} {media_type}: {body:?}");
    }
    assert!(statuses[&200] > 100 && statuses[&400] > 100, "{statuses:?}");
    let answer = receiver.send("/v1/traces", PROTOBUF, spans(vec![span(9, 1)]).encode_to_vec()).await;
    assert_eq!(answer.status, 200);
    assert!(receiver.sink.traces().contains_key(&trace_name(9)));
}
