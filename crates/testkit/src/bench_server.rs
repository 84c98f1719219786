//! A minimal HTTP server for the benchmark binaries.

use std::convert::Infallible;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

/// The address and the reply delay of a benchmark server.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct ListenArgs {
    /// Loopback port to listen on; 0 picks a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Delay before each reply
    #[arg(long, default_value_t = 0)]
    delay_ms: u64,
}

/// Serves requests on all cores until the process ends. Prints the port as the first line on standard output.
pub fn serve<A, F>(args: ListenArgs, answer: A) -> io::Result<Infallible>
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = (StatusCode, Bytes)> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).await?;
        let mut out = io::stdout();
        writeln!(out, "{}", listener.local_addr()?.port())?;
        out.flush()?;
        let delay = Duration::from_millis(args.delay_ms);
        loop {
            let (socket, _) = listener.accept().await?;
            tokio::spawn(serve_connection(socket, answer.clone(), delay));
        }
    })
}

async fn serve_connection<A, F>(socket: TcpStream, answer: A, delay: Duration)
where
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = (StatusCode, Bytes)>,
{
    // Without it a reply could wait for an acknowledgement. On failure, the server is only slower.
    let _ = socket.set_nodelay(true);
    let service = service_fn(|request| {
        let answer = answer(request);
        async move {
            let (status, body) = answer.await;
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            let mut response = Response::new(Full::new(body));
            *response.status_mut() = status;
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            Ok::<_, Infallible>(response)
        }
    });
    // The client may close the connection at any time.
    let _ = http1::Builder::new().pipeline_flush(true).serve_connection(TokioIo::new(socket), service).await;
}
