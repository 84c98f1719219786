//! An agent that plays a script: over HTTP, or as a model behind `OpenAI`'s or Anthropic's API.
//!
//! The script is a JSON object. A POST is answered by the entry whose key is the request's message, else by `*`; a
//! GET by the entry `GET /path`. The message is the body's `message`; for a path that ends in `/chat/completions`
//! (`OpenAI`) or `/messages` (Anthropic) it is the first user message's text. An entry is one of:
//!
//! | entry | reply |
//! |---|---|
//! | `{response, toolCalls, …, delayMs}` | an agent's: these fields as JSON, after a while |
//! | `{text, calls: [{name, args \| rawArgs}], usage: [in, out], structured, delayMs}` | a model's, in the shape of its API |
//! | `{refusal}` | a model's that will not, as its API says so |
//! | `{cutOff: true}` beside a model's | its answer ends where it may not be longer |
//! | `{turns: [entry, …]}` | a model's, by the number of turns that the request holds already; the last one stays |
//! | `{status, text, headers}` with a status other than 200 | a model API's error |
//! | `{json}`, `{raw}`, `{rawBytes: [255, …]}` with `status`, `headers`, `delayMs` | this body |
//! | `{sequence: [entry, …]}` | one after another for each request of the message; the last one stays |
//! | `{queue: [entry, …]}` for `*` | one after another, whatever the message; the last one stays |
//! | `{hangup: true}` | none: the connection is closed |
//! | `{huge: N}` | a valid reply of N bytes |
//! | `{endless: true}` | a body that never ends |
//! | `{slowHeaders: MS}` | the status line, then a byte of a header every so many milliseconds, for ever |
//! | `{truncated: true}` beside a body | a `content-length` that the body does not reach |
//!
//! `rawArgs` are arguments as a text that need not be JSON; Anthropic's API, which passes JSON, passes that text.
//! `structured` is the answer to a request for JSON of a given shape: by `response_format` (`OpenAI`) or by a forced
//! tool; `rawStructured` is such an answer as a text that need not be JSON. `{"*": {"storm": {every: N, …entry}, …}}` gives every N-th POST over all messages that entry, and the others
//! what they would have got.
//!
//! What is not scripted gets a 404, from a model a 400. The model APIs are as strict as the real ones: a request that
//! breaks their protocol is refused with their errors, and [`ScriptedServer::refusals`] tells why.

mod anthropic;
mod connection;
mod openai;
mod protocol;
mod reply;
mod script;
mod secure;
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

pub use secure::SecureServer;

use protocol::{Protocol, Refusal};
use reply::Reply;
use script::Script;

/// A request as it came in.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub path: String,
    /// By lower-case name; values that are no text are left out.
    pub headers: BTreeMap<String, String>,
    /// What the body's JSON says; null where there is no body.
    pub body: Value,
    /// When it began to come in.
    pub at: Instant,
}

/// A server on loopback with a runtime of its own, so that tests need not be async. It ends when it is dropped.
#[derive(Debug)]
pub struct ScriptedServer {
    address: SocketAddr,
    stage: Arc<Stage>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ScriptedServer {
    /// Starts on a free port. Panics where the script is none.
    pub fn start(script: Value) -> Self {
        let stage = Arc::new(Stage {
            round: Mutex::new(Round::of(script)),
            connections: AtomicUsize::new(0),
            needs_key: AtomicBool::new(true),
        });
        let (runtime, listener, address) = listen();
        let (stop, stopped) = oneshot::channel();
        let staged = Arc::clone(&stage);
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = connection::accept(listener, staged) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { address, stage, stop: Some(stop), thread: Some(thread) }
    }

    /// Returns `http://127.0.0.1:PORT`.
    pub fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns where an agent is asked.
    pub fn endpoint(&self) -> String {
        format!("{}/chat", self.base())
    }

    /// Answers as a model also who brings no key, as a server on one's own machine does.
    #[must_use]
    pub fn without_keys(self) -> Self {
        self.stage.needs_key.store(false, Ordering::Relaxed);
        self
    }

    /// Plays another script from now on and forgets what was seen.
    pub fn reset(&self, script: Value) {
        *self.stage.lock() = Round::of(script);
    }

    /// Returns the POST requests with a JSON body, in the order in which they came.
    pub fn requests(&self) -> Vec<Request> {
        self.round().tally().posts.clone()
    }

    /// Returns the bodies of [`Self::requests`].
    pub fn bodies(&self) -> Vec<Value> {
        self.round().tally().posts.iter().map(|request| request.body.clone()).collect()
    }

    pub fn request_count(&self) -> usize {
        self.round().tally().posts.len()
    }

    /// Returns the GET requests, in the order in which they came.
    pub fn gets(&self) -> Vec<Request> {
        self.round().tally().gets.clone()
    }

    /// Returns how many requests were worked on at once at most.
    pub fn peak(&self) -> usize {
        self.round().tally().peak
    }

    /// Returns how many POST requests with a JSON body began within any time of this length at most.
    pub fn busiest(&self, window: Duration) -> usize {
        busiest(self.round().tally().posts.iter().map(|request| request.at).collect(), window)
    }

    /// Returns why requests were refused that broke a model API's protocol, in the order in which they came.
    pub fn refusals(&self) -> Vec<String> {
        self.round().tally().refusals.clone()
    }

    /// Returns how many connections were made since the start.
    pub fn connections(&self) -> usize {
        self.stage.connections.load(Ordering::Relaxed)
    }

    /// Returns how many requests are being worked on.
    pub fn in_flight(&self) -> usize {
        self.round().tally().in_flight
    }

    fn round(&self) -> Arc<Round> {
        Arc::clone(&self.stage.lock())
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The thread may have ended by a panic, which joining shows.
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

/// Binds a free port on loopback, on a runtime for a thread of its own.
fn listen() -> (Runtime, TcpListener, SocketAddr) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a test machine can start a runtime");
    let listener = runtime
        .block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .expect("a test machine has a free port on loopback");
    let address = listener.local_addr().expect("a bound listener has an address");
    (runtime, listener, address)
}

/// What is played at the moment.
#[derive(Debug)]
struct Stage {
    round: Mutex<Arc<Round>>,
    /// How many connections were taken since the start.
    connections: AtomicUsize,
    /// Whether a model is only asked with a key.
    needs_key: AtomicBool,
}

impl Stage {
    fn lock(&self) -> MutexGuard<'_, Arc<Round>> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One script and what was seen while it was played. A request that outlives a reset ends in the round it began in.
#[derive(Debug)]
struct Round {
    script: Script,
    tally: Mutex<Tally>,
}

#[derive(Debug, Default)]
struct Tally {
    posts: Vec<Request>,
    gets: Vec<Request>,
    refusals: Vec<String>,
    /// How many questions came that could be answered.
    questions: u64,
    /// How often each message came.
    asked: BTreeMap<String, usize>,
    /// How many answers were taken from the queue.
    queued: usize,
    in_flight: usize,
    peak: usize,
}

impl Round {
    fn of(script: Value) -> Arc<Self> {
        Arc::new(Self { script: Script::read(script), tally: Mutex::default() })
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the answer to a POST.
    fn answer(&self, request: &Request, needs_key: bool) -> Reply {
        let protocol = Protocol::of(&request.path);
        self.find(protocol, request, needs_key).unwrap_or_else(|refusal| {
            self.tally().refusals.push(refusal.reason.clone());
            protocol.refuse(&refusal)
        })
    }

    fn find(&self, protocol: Protocol, request: &Request, needs_key: bool) -> Result<Reply, Refusal> {
        let question = protocol.read(request, needs_key)?;
        let mut tally = self.tally();
        tally.questions += 1;
        let entry = self.script.storm(tally.questions).or_else(|| {
            if let Some(entry) = self.script.queued(&question.message, tally.queued) {
                tally.queued += 1;
                return Some(entry);
            }
            let asked = tally.asked.entry(question.message.clone()).or_default();
            let before = *asked;
            *asked += 1;
            self.script.entry(&question.message, before)
        });
        entry.map_or_else(|| Ok(protocol.not_scripted()), |entry| protocol.answer(entry, request, &question))
    }
}

/// Counts the moments in the fullest half-open window.
fn busiest(mut moments: Vec<Instant>, window: Duration) -> usize {
    moments.sort_unstable();
    let within = |start: usize| moments[start..].partition_point(|moment| *moment - moments[start] < window);
    (0..moments.len()).map(within).max().unwrap_or(0)
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
    fn the_fullest_window_is_found(#[case] moments: &[u64], #[case] window: u64, #[case] most: usize) {
        let start = Instant::now();
        let moments = moments.iter().map(|after| start + Duration::from_millis(*after)).collect();
        assert_eq!(busiest(moments, Duration::from_millis(window)), most);
    }
}
