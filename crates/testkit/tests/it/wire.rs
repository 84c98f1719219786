//! Raw requests and replies.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use karat_testkit::server::ScriptedServer;
use serde_json::Value;

/// Sends a raw request and reads up to `limit` bytes, until the end or a pause of one second. Returns whether the
/// connection was closed.
pub(crate) fn exchange(server: &ScriptedServer, request: &str, limit: usize) -> (Vec<u8>, bool) {
    let mut socket = TcpStream::connect(server.base_url().trim_start_matches("http://")).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    socket.write_all(request.as_bytes()).unwrap();
    let mut received = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => return (received, true),
            Ok(count) => received.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return (received, true),
            Err(_) => return (received, false),
        }
        if received.len() >= limit {
            return (received, false);
        }
    }
}

/// Builds a POST request with these additional headers.
pub(crate) fn post(path: &str, headers: &[(&str, &str)], body: &Value) -> String {
    let body = body.to_string();
    let headers = headers.iter().fold(String::new(), |head, (name, value)| head + name + ": " + value + "\r\n");
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}")
}

/// Returns a reply's status, its head in lower case, and its body.
pub(crate) fn split(reply: Vec<u8>) -> (u16, String, String) {
    let text = String::from_utf8(reply).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_lowercase(), body.to_owned())
}
