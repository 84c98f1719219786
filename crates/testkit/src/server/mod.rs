//! A scripted server: an HTTP agent, or a model behind the `OpenAI` or Anthropic API.
//!
//! The script is a JSON object. A POST request gets the entry whose key is its message, else the entry `*`; a GET
//! request gets the entry `GET /path`. The message is `message` in the body, or the text of the first user message if
//! the path ends in `/chat/completions` (`OpenAI`) or `/messages` (Anthropic). An entry is one of:
//!
//! | entry | reply |
//! |---|---|
//! | `{response, toolCalls, …, delayMs}` | an agent's reply: these fields as JSON, after a delay |
//! | `{text, calls: [{name, args \| rawArgs}], usage: [in, out], structured, delayMs}` | a model's reply in the shape of its API |
//! | `{refusal}` | a model's refusal |
//! | `{cutOff: true}` with a model's reply | the answer reaches the token limit |
//! | `{turns: [entry, …]}` | a model's reply by the number of turns in the request; the last one repeats |
//! | `{status, text, headers}` with a status other than 200 | an error of the model API |
//! | `{json}`, `{raw}`, `{rawBytes: [255, …]}` with `status`, `headers`, `delayMs` | this body |
//! | `{sequence: [entry, …]}` | one entry per request with this message; the last one repeats |
//! | `{queue: [entry, …]}` for `*` | one entry per request, for any message; the last one repeats |
//! | `{hangup: true}` | no reply: the connection is closed |
//! | `{huge: N}` | a valid reply of N bytes |
//! | `{endless: true}` | a body that never ends |
//! | `{slowHeaders: MS}` | the status line, then one header byte every MS milliseconds, without end |
//! | `{truncated: true}` with a body | a `content-length` larger than the body |
//!
//! `rawArgs` are arguments as a string that may be invalid JSON; the Anthropic API returns it as a JSON string.
//! `structured` is the answer to a request for structured output, by `response_format` (`OpenAI`) or by a forced tool;
//! `rawStructured` is such an answer as a string that may be invalid JSON. `{"*": {"storm": {every: N, …entry}, …}}` uses
//! that entry for every N-th POST with any message.
//!
//! A message without an entry gets status 404 from an agent, 400 from a model. The model APIs are as strict as the real
//! ones: invalid requests get their error responses, and [`ScriptedServer::refusals`] returns the reasons.

mod anthropic;
mod connection;
mod https;
mod openai;
mod protocol;
mod reply;
mod script;
mod turn;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

pub use https::HttpsServer;

use protocol::{Protocol, Refusal};
use reply::Reply;
use script::Script;

/// A received request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub path: String,
    /// By lower-case name, without values that are not text.
    pub headers: BTreeMap<String, String>,
    /// The JSON body, or null if there is none.
    pub body: Value,
    /// The time of arrival.
    pub at: Instant,
}

/// A server on loopback with its own runtime, so that tests need not be async. It stops when dropped.
#[derive(Debug)]
pub struct ScriptedServer {
    address: SocketAddr,
    state: Arc<ServerState>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ScriptedServer {
    /// Starts on a free port. Panics if the script is invalid.
    pub fn start(script: Value) -> Self {
        let state = Arc::new(ServerState {
            session: Mutex::new(Session::new(script)),
            connections: AtomicUsize::new(0),
            needs_key: AtomicBool::new(true),
        });
        let (runtime, listener, address) = listen();
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::clone(&state);
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = connection::accept(listener, shared) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { address, state, stop: Some(stop), thread: Some(thread) }
    }

    /// Returns `http://127.0.0.1:PORT`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the URL of the agent.
    pub fn endpoint(&self) -> String {
        format!("{}/chat", self.base_url())
    }

    /// Accepts model requests without an API key, like a local server.
    #[must_use]
    pub fn without_keys(self) -> Self {
        self.state.needs_key.store(false, Ordering::Relaxed);
        self
    }

    /// Replaces the script and clears the recorded requests.
    pub fn reset(&self, script: Value) {
        *self.state.lock() = Session::new(script);
    }

    /// Returns the POST requests with a JSON body in order of arrival.
    pub fn requests(&self) -> Vec<Request> {
        self.session().log().posts.clone()
    }

    /// Returns the bodies of [`Self::requests`].
    pub fn bodies(&self) -> Vec<Value> {
        self.session().log().posts.iter().map(|request| request.body.clone()).collect()
    }

    pub fn request_count(&self) -> usize {
        self.session().log().posts.len()
    }

    /// Returns the GET requests in order of arrival.
    pub fn gets(&self) -> Vec<Request> {
        self.session().log().gets.clone()
    }

    /// Returns the maximum number of concurrent requests.
    pub fn peak(&self) -> usize {
        self.session().log().peak
    }

    /// Returns the maximum number of POST requests with a JSON body in any window of this length.
    pub fn max_requests_within(&self, window: Duration) -> usize {
        max_within(self.session().log().posts.iter().map(|request| request.at).collect(), window)
    }

    /// Returns why model requests were refused, in order of arrival.
    pub fn refusals(&self) -> Vec<String> {
        self.session().log().refusals.clone()
    }

    /// Returns the number of connections since the start.
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }

    /// Returns the number of requests in progress.
    pub fn in_flight(&self) -> usize {
        self.session().log().in_flight
    }

    fn session(&self) -> Arc<Session> {
        Arc::clone(&self.state.lock())
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The thread may have panicked; joining it reports that.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !std::thread::panicking()
        {
            panic!("the scripted server panicked");
        }
    }
}

/// Creates a runtime and binds a free port on loopback.
fn listen() -> (Runtime, TcpListener, SocketAddr) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("start a runtime");
    let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).expect("bind a free port");
    let address = listener.local_addr().expect("local address");
    (runtime, listener, address)
}

/// The shared state of the server.
#[derive(Debug)]
struct ServerState {
    session: Mutex<Arc<Session>>,
    /// The number of accepted connections.
    connections: AtomicUsize,
    /// Whether model requests need an API key.
    needs_key: AtomicBool,
}

impl ServerState {
    fn lock(&self) -> MutexGuard<'_, Arc<Session>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A script and the requests received for it. A request that outlives a reset stays in its session.
#[derive(Debug)]
struct Session {
    script: Script,
    log: Mutex<RequestLog>,
}

#[derive(Debug, Default)]
struct RequestLog {
    posts: Vec<Request>,
    gets: Vec<Request>,
    refusals: Vec<String>,
    /// The number of valid requests.
    questions: u64,
    /// The number of requests per message.
    message_counts: BTreeMap<String, usize>,
    /// The number of entries taken from the queue.
    queued: usize,
    in_flight: usize,
    peak: usize,
}

impl Session {
    fn new(script: Value) -> Arc<Self> {
        Arc::new(Self { script: Script::read(script), log: Mutex::default() })
    }

    fn log(&self) -> MutexGuard<'_, RequestLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the reply to a POST request.
    fn answer(&self, request: &Request, needs_key: bool) -> Reply {
        let protocol = Protocol::of(&request.path);
        self.find(protocol, request, needs_key).unwrap_or_else(|refusal| {
            self.log().refusals.push(refusal.reason.clone());
            protocol.refuse(&refusal)
        })
    }

    fn find(&self, protocol: Protocol, request: &Request, needs_key: bool) -> Result<Reply, Refusal> {
        let question = protocol.read(request, needs_key)?;
        let mut log = self.log();
        log.questions += 1;
        let entry = self.script.periodic_entry(log.questions).or_else(|| {
            if let Some(entry) = self.script.queued(&question.message, log.queued) {
                log.queued += 1;
                return Some(entry);
            }
            let count = log.message_counts.entry(question.message.clone()).or_default();
            let previous = *count;
            *count += 1;
            self.script.entry(&question.message, previous)
        });
        entry.map_or_else(|| Ok(protocol.not_scripted()), |entry| protocol.answer(entry, request, &question))
    }
}

/// Returns the maximum number of moments in a half-open window.
fn max_within(mut times: Vec<Instant>, window: Duration) -> usize {
    times.sort_unstable();
    let within = |start: usize| times[start..].partition_point(|time| *time - times[start] < window);
    (0..times.len()).map(within).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&[], 10, 0)]
    #[case(&[5], 10, 1)]
    #[case(&[0, 10, 20], 10, 1)]
    #[case(&[0, 9, 10, 18, 19], 10, 3)]
    #[case(&[30, 0, 31, 1, 32], 3, 3)]
    #[case(&[4, 4, 4], 1, 3)]
    #[case(&[4, 4, 4], 0, 0)]
    fn finds_the_fullest_window(#[case] times: &[u64], #[case] window: u64, #[case] expected: usize) {
        let start = Instant::now();
        let times = times.iter().map(|after| start + Duration::from_millis(*after)).collect();
        assert_eq!(max_within(times, Duration::from_millis(window)), expected);
    }
}
