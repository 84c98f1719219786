//! A server whose replies are computed from the request, and may arrive in pieces.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A received request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReceivedRequest {
    pub(crate) line: String,
    pub(crate) headers: String,
    pub(crate) body: Value,
}

impl ReceivedRequest {
    /// Returns the value of a header, by its lower-case name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// A reply: its head after the status line, and pieces of the body with the delay before each.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) status: u16,
    pub(crate) headers: String,
    pub(crate) pieces: Vec<(u64, Vec<u8>)>,
    pub(crate) end: End,
}

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum End {
    Normal,
    /// The connection stays open without data.
    Never,
    /// The connection is closed before the last chunk.
    CutOff,
}

impl Sent {
    pub(crate) fn json(value: &Value) -> Self {
        Self::text("application/json", &value.to_string())
    }

    pub(crate) fn sse(text: &str) -> Self {
        Self::text("text/event-stream", text)
    }

    pub(crate) fn text(content_type: &str, text: &str) -> Self {
        let headers = format!("content-type: {content_type}\r\n");
        Self { status: 200, headers, pieces: vec![(0, text.as_bytes().to_vec())], end: End::Normal }
    }
}

pub(crate) struct ProductServer {
    pub(crate) url: String,
    received: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl ProductServer {
    pub(crate) async fn start(answer: impl Fn(&ReceivedRequest) -> Sent + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let received = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (Arc::clone(&received), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                tokio::spawn(async move { serve(socket, &log, answer.as_ref()).await });
            }
        });
        Self { url, received }
    }

    pub(crate) fn received(&self) -> Vec<ReceivedRequest> {
        self.received.lock().unwrap().clone()
    }

    /// Returns the first line of each request.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.received().into_iter().map(|received| received.line).collect()
    }
}

async fn serve(
    mut socket: TcpStream,
    log: &Mutex<Vec<ReceivedRequest>>,
    answer: &(impl Fn(&ReceivedRequest) -> Sent + ?Sized),
) {
    while let Some(received) = read_request(&mut socket).await {
        log.lock().unwrap().push(received.clone());
        let sent = answer(&received);
        let head = format!("HTTP/1.1 {} X\r\n{}transfer-encoding: chunked\r\n\r\n", sent.status, sent.headers);
        if socket.write_all(head.as_bytes()).await.is_err() {
            return;
        }
        for (delay, piece) in &sent.pieces {
            tokio::time::sleep(Duration::from_millis(*delay)).await;
            let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
            if !piece.is_empty() && socket.write_all(&chunk).await.is_err() {
                return;
            }
            let _ = socket.flush().await;
        }
        match sent.end {
            End::Normal => {
                let _ = socket.write_all(b"0\r\n\r\n").await;
            }
            End::Never => std::future::pending().await,
            End::CutOff => return,
        }
    }
}

async fn read_request(socket: &mut TcpStream) -> Option<ReceivedRequest> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let (line, headers) = head.split_once("\r\n").unwrap_or((&head, ""));
            let mut received = ReceivedRequest {
                line: line.trim_end_matches(" HTTP/1.1").to_owned(),
                headers: headers.to_owned(),
                body: Value::Null,
            };
            let length: usize = received.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
            if bytes.len() >= end + 4 + length {
                received.body = serde_json::from_slice(&bytes[end + 4..end + 4 + length]).unwrap_or_default();
                return Some(received);
            }
        }
        match socket.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}
