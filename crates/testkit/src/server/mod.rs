//! An HTTP agent that plays a script.
//!
//! The script is a JSON object. A POST is answered by the entry whose key is the request's `message`, else by `*`; a
//! GET by the entry `GET /path`. An entry is one of:
//!
//! | entry | reply |
//! |---|---|
//! | `{response, toolCalls, …, delayMs}` | these fields as JSON, after a while |
//! | `{json}`, `{raw}`, `{rawBytes: [255, …]}` with `status`, `headers`, `delayMs` | this body |
//! | `{sequence: [entry, …]}` | one after another for each request of the message; the last one stays |
//! | `{hangup: true}` | none: the connection is closed |
//! | `{huge: N}` | a valid reply of N bytes |
//! | `{endless: true}` | a body that never ends |
//! | `{slowHeaders: MS}` | the status line, then a byte of a header every so many milliseconds, for ever |
//! | `{truncated: true}` beside a body | a `content-length` that the body does not reach |
//!
//! What is not scripted gets a 404.

mod connection;
mod reply;
mod script;
mod secure;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

pub use secure::SecureServer;

use script::Script;

/// A request as it came in.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub path: String,
    /// By lower-case name; values that are no text are left out.
    pub headers: BTreeMap<String, String>,
    /// What the body's JSON says; null where there is no body.
    pub body: Value,
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
        let stage = Arc::new(Stage { round: Mutex::new(Round::of(script)), connections: AtomicUsize::new(0) });
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
    /// How often each message came.
    asked: BTreeMap<String, usize>,
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
}
