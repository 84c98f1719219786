//! Serves a connection: hyper reads every request and writes every proper reply; the other replies are written by hand
//! on the socket that hyper gives back.

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

use super::reply::{Manners, Reply};
use super::{Request, Round, Stage};

/// What fills large bodies.
static FILLING: [u8; 64 * 1024] = [b'a'; 64 * 1024];

type Answer = Pin<Box<dyn Future<Output = Result<Response<Full<Bytes>>, Rude>> + Send>>;

/// Takes connections until it is dropped, and drops them with it.
pub(super) async fn accept(listener: TcpListener, stage: Arc<Stage>) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((socket, _)) = accepted else { continue };
                stage.connections.fetch_add(1, Ordering::Relaxed);
                connections.spawn(serve(socket, Arc::clone(&stage)));
            }
            Some(ended) = connections.join_next(), if !connections.is_empty() => {
                ended.expect("a connection's task does not panic");
            }
        }
    }
}

async fn serve(socket: TcpStream, stage: Arc<Stage>) {
    // A small reply must not wait for the client's acknowledgement of the one before.
    let _ = socket.set_nodelay(true);
    let owed = Arc::new(Mutex::new(None));
    let debt = Arc::clone(&owed);
    let service = service_fn(move |request: hyper::Request<Incoming>| -> Answer {
        let (stage, debt) = (Arc::clone(&stage), Arc::clone(&debt));
        Box::pin(async move {
            let reply = answer(&stage, request).await.map_err(|_| Rude)?;
            if reply.manners == Manners::Proper {
                return Ok(proper(reply));
            }
            *debt.lock().unwrap_or_else(PoisonError::into_inner) = Some(reply);
            Err(Rude)
        })
    });
    let mut connection = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
    if poll_fn(|context| connection.poll_without_shutdown(context)).await.is_ok() {
        return;
    }
    let socket = connection.into_parts().io.into_inner();
    let owed = owed.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(reply) = owed {
        // The client may leave at any time.
        let _ = behave_rudely(socket, reply).await;
    }
}

/// Ends hyper's part, so that the reply is written by hand or not at all.
#[derive(Debug)]
struct Rude;

impl fmt::Display for Rude {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("this reply is not given by the rules")
    }
}

impl std::error::Error for Rude {}

async fn answer(stage: &Stage, request: hyper::Request<Incoming>) -> Result<Reply, hyper::Error> {
    let at = Instant::now();
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let round = Arc::clone(&stage.lock());
    let headers = head
        .headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())))
        .collect();
    let path = head.uri.path_and_query().map_or_else(|| head.uri.path().to_owned(), ToString::to_string);
    let mut request = Request { path, headers, body: Value::Null, at };
    if head.method == Method::GET {
        let reply = round.script.get(&request.path);
        round.tally().gets.push(request);
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
    let reply = round.answer(&request, stage.needs_key.load(Ordering::Relaxed));
    let presence = Presence::of(&round, request);
    tokio::time::sleep(reply.delay).await;
    // Before the answer leaves: a quick client's next request is not counted beside this one.
    drop(presence);
    Ok(reply)
}

/// Counts a request as in flight until it is dropped, be it because the client left.
struct Presence(Arc<Round>);

impl Presence {
    fn of(round: &Arc<Round>, request: Request) -> Self {
        let mut tally = round.tally();
        tally.posts.push(request);
        tally.in_flight += 1;
        tally.peak = tally.peak.max(tally.in_flight);
        Self(Arc::clone(round))
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.tally().in_flight -= 1;
    }
}

fn proper(reply: Reply) -> Response<Full<Bytes>> {
    let mut response = Response::builder().status(reply.status);
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    response
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(reply.body)))
        .expect("a script's status and headers are valid")
}

async fn behave_rudely(mut socket: TcpStream, reply: Reply) -> io::Result<()> {
    match reply.manners {
        Manners::Proper | Manners::HangUp => Ok(()),
        Manners::Huge { size, at } => huge(&mut socket, size, reply.body.split_at(at)).await,
        Manners::Endless { at } => match endless(&mut socket, &reply.body[..at]).await? {},
        Manners::SlowHeaders(pause) => {
            socket.write_all(format!("HTTP/1.1 {}\r\nx-slow: ", reply.status).as_bytes()).await?;
            loop {
                socket.write_all(b"z").await?;
                tokio::time::sleep(pause).await;
            }
        }
        Manners::Truncated => {
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

async fn huge(socket: &mut TcpStream, size: usize, (start, end): (&[u8], &[u8])) -> io::Result<()> {
    socket.write_all(head(200, Some(size)).as_bytes()).await?;
    let Some(mut left) = size.checked_sub(start.len() + end.len()) else {
        return socket.write_all(&FILLING[..size]).await;
    };
    socket.write_all(start).await?;
    while left > 0 {
        let part = left.min(FILLING.len());
        socket.write_all(&FILLING[..part]).await?;
        left -= part;
    }
    socket.write_all(end).await?;
    socket.shutdown().await
}

async fn endless(socket: &mut TcpStream, start: &[u8]) -> io::Result<Infallible> {
    socket.write_all(head(200, None).as_bytes()).await?;
    socket.write_all(start).await?;
    loop {
        socket.write_all(&FILLING).await?;
        // Lets the other connections of this thread have their turn.
        tokio::task::yield_now().await;
    }
}
