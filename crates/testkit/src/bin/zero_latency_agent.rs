//! An HTTP agent for benchmarks, as fast as can be: whatever is asked, one reply that was built beforehand.
//!
//! The first line on standard output is the port.

use std::io;

use clap::Parser;
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Bytes, Incoming};
use karat_testkit::partner::{Listening, serve};

const REPLY: &[u8] = br#"{"response":"It is 18 degrees in Paris.","toolCalls":[{"name":"get_weather","success":true,"durationMs":1,"params":{"city":"Paris"}}]}"#;

/// Answer every request at once with the same reply.
#[derive(Debug, Parser)]
#[command(name = "karat-test-agent")]
struct Arguments {
    #[command(flatten)]
    listening: Listening,
}

fn main() -> io::Result<()> {
    match serve(Arguments::parse().listening, answer)? {}
}

async fn answer(request: hyper::Request<Incoming>) -> (StatusCode, Bytes) {
    // Reads the body to its end, since a connection with unread bytes is not used again.
    let mut body = request.into_body();
    while let Some(Ok(_)) = body.frame().await {}
    (StatusCode::OK, Bytes::from_static(REPLY))
}
