//! The fastest possible HTTP agent for benchmarks: always sends the same prebuilt reply.
//!
//! The first line on standard output is the port.

use std::io;

use clap::Parser;
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Bytes, Incoming};
use karat_testkit::bench_server::{ListenArgs, serve};

const REPLY: &[u8] = br#"{"response":"It is 18 degrees in Paris.","toolCalls":[{"name":"get_weather","success":true,"durationMs":1,"params":{"city":"Paris"}}]}"#;

/// Answer every request immediately with the same reply.
#[derive(Debug, Parser)]
#[command(name = "karat-test-agent")]
struct Arguments {
    #[command(flatten)]
    listen: ListenArgs,
}

fn main() -> io::Result<()> {
    match serve(Arguments::parse().listen, answer)? {}
}

async fn answer(request: hyper::Request<Incoming>) -> (StatusCode, Bytes) {
    // Read the whole body: a connection with unread bytes is not reused.
    let mut body = request.into_body();
    while let Some(Ok(_)) = body.frame().await {}
    (StatusCode::OK, Bytes::from_static(REPLY))
}
