//! Requests and replies by hand, byte for byte.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use karat_testkit::server::ScriptedServer;
use serde_json::Value;

/// Sends a request by hand and reads up to `limit` bytes, until the end or a pause of a second.
pub(crate) fn exchange(server: &ScriptedServer, request: &str, limit: usize) -> (Vec<u8>, bool) {
    let mut socket = TcpStream::connect(server.base().trim_start_matches("http://")).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    socket.write_all(request.as_bytes()).unwrap();
    let mut seen = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => return (seen, true),
            Ok(count) => seen.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return (seen, true),
            Err(_) => return (seen, false),
        }
        if seen.len() >= limit {
            return (seen, false);
        }
    }
}

/// Writes a POST with these headers beside the usual ones.
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
