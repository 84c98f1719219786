//! Serves connections. hyper reads requests and writes normal replies; misbehaving replies are written directly to the
//! socket.

use std::convert::Infallible;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use super::reply::{Delivery, Reply};
use super::{Request, ServerState, Session};

/// Fills large bodies.
static FILLER: [u8; 64 * 1024] = [b'a'; 64 * 1024];

type Answer = Pin<Box<dyn Future<Output = Result<Response<Full<Bytes>>, ReleaseConnection>> + Send>>;

/// Accepts connections until it is dropped, which also drops the connections.
pub(super) async fn accept(listener: TcpListener, state: Arc<ServerState>) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((socket, _)) = accepted else { continue };
                state.connections.fetch_add(1, Ordering::Relaxed);
                connections.spawn(serve(socket, Arc::clone(&state)));
            }
            Some(ended) = connections.join_next(), if !connections.is_empty() => {
                ended.expect("connection tasks do not panic");
            }
        }
    }
}

async fn serve(socket: TcpStream, state: Arc<ServerState>) {
    // A small reply must not wait for the acknowledgement of the previous one.
    let _ = socket.set_nodelay(true);
    let unsent_reply = Arc::new(Mutex::new(None));
    let unsent = Arc::clone(&unsent_reply);
    let service = service_fn(move |request: hyper::Request<Incoming>| -> Answer {
        let (state, unsent) = (Arc::clone(&state), Arc::clone(&unsent));
        Box::pin(async move {
            let reply = answer(&state, request).await.map_err(|_| ReleaseConnection)?;
            if reply.delivery == Delivery::Normal {
                return Ok(normal_response(reply));
            }
            *unsent.lock().unwrap_or_else(PoisonError::into_inner) = Some(reply);
            Err(ReleaseConnection)
        })
    });
    let mut connection = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
    if poll_fn(|context| connection.poll_without_shutdown(context)).await.is_ok() {
        return;
    }
    let socket = connection.into_parts().io.into_inner();
    let unsent_reply = unsent_reply.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(reply) = unsent_reply {
        // The client may close the connection at any time.
        let _ = write_misbehaving(socket, reply).await;
    }
}

/// Makes hyper release the connection, so the reply can be written directly to the socket.
#[derive(Debug)]
struct ReleaseConnection;

impl fmt::Display for ReleaseConnection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the reply is not sent by hyper")
    }
}

impl std::error::Error for ReleaseConnection {}

async fn answer(state: &ServerState, request: hyper::Request<Incoming>) -> Result<Reply, hyper::Error> {
    let at = Instant::now();
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let session = Arc::clone(&state.lock());
    let headers = head
        .headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())))
        .collect();
    let path = head.uri.path_and_query().map_or_else(|| head.uri.path().to_owned(), ToString::to_string);
    let mut request = Request { path, headers, body: Value::Null, at };
    if head.method == Method::GET {
        let reply = session.script.get(&request.path);
        session.log().gets.push(request);
        tokio::time::sleep(reply.delay).await;
        return Ok(reply);
    }
    request.body = match &*body {
        [] => Value::Object(Map::new()),
        body => match serde_json::from_slice(body) {
            Ok(json) => json,
            Err(_) => return Ok(Reply::bytes(400, b"not json".to_vec())),
        },
    };
    let reply = session.answer(&request, state.needs_key.load(Ordering::Relaxed));
    let in_flight = InFlightGuard::new(&session, request);
    tokio::time::sleep(reply.delay).await;
    // Before the reply is sent, so that the next request of a fast client does not overlap with this one.
    drop(in_flight);
    Ok(reply)
}

/// Counts a request as in flight until dropped, even if the client disconnects.
struct InFlightGuard(Arc<Session>);

impl InFlightGuard {
    fn new(session: &Arc<Session>, request: Request) -> Self {
        let mut log = session.log();
        log.posts.push(request);
        log.in_flight += 1;
        log.peak = log.peak.max(log.in_flight);
        Self(Arc::clone(session))
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.log().in_flight -= 1;
    }
}

fn normal_response(reply: Reply) -> Response<Full<Bytes>> {
    let mut response = Response::builder().status(reply.status);
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    response
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(reply.body)))
        .expect("the scripted status and headers are valid")
}

async fn write_misbehaving(mut socket: TcpStream, reply: Reply) -> io::Result<()> {
    match reply.delivery {
        Delivery::Normal | Delivery::HangUp => Ok(()),
        Delivery::Huge { size, at } => write_huge(&mut socket, size, reply.body.split_at(at)).await,
        Delivery::Endless { at } => match write_endless(&mut socket, &reply.body[..at]).await? {},
        Delivery::SlowHeaders(pause) => {
            socket.write_all(format!("HTTP/1.1 {}\r\nx-slow: ", reply.status).as_bytes()).await?;
            loop {
                socket.write_all(b"z").await?;
                tokio::time::sleep(pause).await;
            }
        }
        Delivery::Truncated => {
            socket.write_all(head(reply.status, Some(reply.body.len() + 100)).as_bytes()).await?;
            socket.write_all(&reply.body).await?;
            socket.shutdown().await
        }
    }
}

fn head(status: u16, length: Option<usize>) -> String {
    let length = length.map_or_else(String::new, |length| format!("content-length: {length}\r\n"));
    format!("HTTP/1.1 {status} \r\ncontent-type: application/json\r\nconnection: close\r\n{length}\r\n")
}

async fn write_huge(socket: &mut TcpStream, size: usize, (start, end): (&[u8], &[u8])) -> io::Result<()> {
    socket.write_all(head(200, Some(size)).as_bytes()).await?;
    let Some(mut remaining) = size.checked_sub(start.len() + end.len()) else {
        return socket.write_all(&FILLER[..size]).await;
    };
    socket.write_all(start).await?;
    while remaining > 0 {
        let part = remaining.min(FILLER.len());
        socket.write_all(&FILLER[..part]).await?;
        remaining -= part;
    }
    socket.write_all(end).await?;
    socket.shutdown().await
}

async fn write_endless(socket: &mut TcpStream, start: &[u8]) -> io::Result<Infallible> {
    socket.write_all(head(200, None).as_bytes()).await?;
    socket.write_all(start).await?;
    loop {
        socket.write_all(&FILLER).await?;
        // Let other connections of this thread proceed.
        tokio::task::yield_now().await;
    }
}
