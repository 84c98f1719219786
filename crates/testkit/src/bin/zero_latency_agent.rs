//! An HTTP agent for benchmarks, as fast as can be: whatever is asked, one reply that was built beforehand.
//!
//! The first line on standard output is the port.

#![expect(clippy::print_stdout, reason = "whoever starts this reads the port from standard output")]

use std::convert::Infallible;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::time::Duration;

use clap::Parser;
use http_body_util::{BodyExt, Full};
use hyper::Response;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

const REPLY: &[u8] = br#"{"response":"It is 18 degrees in Paris.","toolCalls":[{"name":"get_weather","success":true,"durationMs":1,"params":{"city":"Paris"}}]}"#;

/// Answer every request at once with the same reply.
#[derive(Debug, Parser)]
#[command(name = "karat-test-agent")]
struct Arguments {
    /// Listen on this port of loopback; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Wait so long before each answer
    #[arg(long, default_value_t = 0)]
    delay_ms: u64,
}

fn main() -> io::Result<()> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port)).await?;
        println!("{}", listener.local_addr()?.port());
        io::stdout().flush()?;
        let delay = Duration::from_millis(arguments.delay_ms);
        loop {
            let (socket, _) = listener.accept().await?;
            tokio::spawn(serve(socket, delay));
        }
    })
}

async fn serve(socket: TcpStream, delay: Duration) {
    // Without it an answer could wait for an acknowledgement; where it cannot be had, the agent is only slower.
    let _ = socket.set_nodelay(true);
    let service = service_fn(|request| answer(request, delay));
    // The client ends a connection as it likes.
    let _ = http1::Builder::new().pipeline_flush(true).serve_connection(TokioIo::new(socket), service).await;
}

async fn answer(request: hyper::Request<Incoming>, delay: Duration) -> Result<Response<Full<Bytes>>, Infallible> {
    // Reads the body to its end, since a connection with unread bytes is not used again.
    let mut body = request.into_body();
    while let Some(Ok(_)) = body.frame().await {}
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let mut response = Response::new(Full::new(Bytes::from_static(REPLY)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}
