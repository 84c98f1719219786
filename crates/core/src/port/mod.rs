//! Traits through which the core accesses agents, tools, stores and the clock.

mod state;
mod store;
mod telemetry;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::assertion::Mode;
use crate::judgement::{EvalContext, Judgement};
use crate::outcome::Cause;
use crate::state::CapturedStates;
use crate::trace::{Trace, Usage};
use karat_cases::Case;
use karat_json::hash::long_hash;

pub use self::state::{Hook, HookError, Hooks, StateSources};
pub use self::store::{DISK_FULL, RunStore, StoreError, StoreFuture, TraceStore};
pub use self::telemetry::{Observation, ObservationError, Telemetry, TraceContext};

/// A future that can move between threads.
pub type BoxFuture<'f, T> = Pin<Box<dyn Future<Output = T> + Send + 'f>>;

/// An agent that answers cases.
pub trait Agent: Send + Sync {
    /// Returns the agent's name in results. It may contain secrets, which are redacted when written.
    fn identity(&self) -> String;

    /// Returns the parameters that are recorded with the run, such as the temperature of a model.
    fn parameters(&self) -> Map<String, Value> {
        Map::new()
    }

    /// Returns everything that determines the answer to a message of a case, by name; turns count from 0. If all of it
    /// is equal, and the conversation before it, a recorded answer can replace a new one. Expectations are not included.
    fn determinants(&self, case: &Case, turn: usize) -> Map<String, Value>;

    /// Returns a string that is equal for two cases if and only if the determinants of all their turns are equal. Called
    /// for every case before a run starts.
    fn equality_key(&self, case: &Case) -> String {
        match &case.input {
            Some(input) => input.message.clone(),
            // Starts with a character that distinguishes it from a single message.
            None => format!("\0{}", case.script()),
        }
    }

    /// Loads what the agent needs to answer, before a run that is certain to call it. Sends no message.
    fn prepare(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }

    /// Returns how the answer to a case is produced.
    fn mode(&self, case: &Case) -> Mode;

    /// Starts a conversation. Nothing is sent before its first message.
    fn start<'a>(&'a self, trial: TrialContext<'a>) -> Box<dyn Conversation + 'a>;
}

/// An agent that changes the conversations of another one, and nothing else of it.
pub trait AgentLayer: Send + Sync {
    fn inner(&self) -> &dyn Agent;

    /// Starts a conversation with the inner agent.
    fn start_conversation<'a>(&'a self, trial: TrialContext<'a>) -> Box<dyn Conversation + 'a>;
}

impl<L: AgentLayer> Agent for L {
    fn identity(&self) -> String {
        self.inner().identity()
    }

    fn parameters(&self) -> Map<String, Value> {
        self.inner().parameters()
    }

    fn determinants(&self, case: &Case, turn: usize) -> Map<String, Value> {
        self.inner().determinants(case, turn)
    }

    fn equality_key(&self, case: &Case) -> String {
        self.inner().equality_key(case)
    }

    fn prepare(&self) -> BoxFuture<'_, Result<(), String>> {
        self.inner().prepare()
    }

    fn mode(&self, case: &Case) -> Mode {
        self.inner().mode(case)
    }

    fn start<'a>(&'a self, trial: TrialContext<'a>) -> Box<dyn Conversation + 'a> {
        self.start_conversation(trial)
    }
}

/// A conversation with an agent: one trial of a case.
pub trait Conversation: Send {
    /// Sends the user's next message and returns the agent's answer to it.
    fn send<'s>(&'s mut self, message: &'s str) -> BoxFuture<'s, Result<Trace, AgentError>>;

    /// Called before the first message with the definitions of the case's state sources, if there are any or hooks.
    /// Returns whether recorded answers and states are replayed, so that nothing happens outside of karat.
    fn replays(&mut self, _sources: &Map<String, Value>) -> bool {
        false
    }

    /// Called after the last message. Returns the recorded states if the conversation is replayed, else those that are
    /// captured.
    fn states<'s>(
        &'s mut self,
        _sources: &'s Map<String, Value>,
        capture: BoxFuture<'s, Result<CapturedStates, AgentError>>,
    ) -> BoxFuture<'s, Result<CapturedStates, AgentError>> {
        capture
    }

    /// Called when the runner stops waiting for the answer to a message, after a timeout or panic, with the error that
    /// replaces it. Not called when the run is interrupted.
    fn on_abandoned(&mut self, _message: &str, _error: &AgentError) {}
}

/// The trial that a conversation belongs to.
#[derive(Clone, Copy)]
pub struct TrialContext<'a> {
    pub run_id: &'a str,
    /// The number of the trial in its run, from 0.
    pub number: usize,
    pub case: &'a Case,
    /// Number of equal conversations before this one in the run: trials, and cases with equal messages.
    pub sample: u32,
    /// Whether the case has several turns, so that the agent needs an id and the history.
    pub has_turns: bool,
    pub wait_observer: &'a dyn WaitObserver,
}

impl TrialContext<'_> {
    /// Returns the id of the conversation, a UUID. It differs between trials and between runs, so that an agent with a
    /// memory never mixes them.
    pub fn conversation_id(&self) -> String {
        let mut hex = long_hash(format!("{}:{}", self.run_id, self.number).as_bytes());
        // Version 8 and variant 1: a UUID whose content is defined by the application.
        hex.replace_range(12..13, "8");
        hex.replace_range(16..17, "8");
        [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..32]].join("-")
    }

    /// Returns the trace context of a turn of the conversation, which differs between trials and between runs.
    pub fn trace_context(&self, turn: usize) -> TraceContext {
        let id = |kind: &str| long_hash(format!("{kind}:{}:{}:{turn}", self.run_id, self.number).as_bytes());
        let mut span_id = id("span");
        span_id.truncate(16);
        TraceContext { trace_id: id("trace"), span_id }
    }
}

/// Notified while an agent waits for a rate limit or before a retry; that time does not count as latency.
pub trait WaitObserver: Send + Sync {
    fn begin(&self);
    fn end(&self);
}

/// Ignores waits.
pub struct IgnoreWaits;

impl WaitObserver for IgnoreWaits {
    fn begin(&self) {}
    fn end(&self) {}
}

/// Reports a wait from its creation until it is dropped.
pub struct WaitGuard<'a>(&'a dyn WaitObserver);

impl<'a> WaitGuard<'a> {
    pub fn begin(wait_observer: &'a dyn WaitObserver) -> Self {
        wait_observer.begin();
        Self(wait_observer)
    }
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The reason why there is no answer to judge.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentError {
    /// A lower-case fragment, not truncated: redaction would miss a secret that is cut off.
    pub message: String,
    pub elapsed: Duration,
    pub cause: AgentErrorCause,
}

/// The cause of an error, which determines whether to retry and whether the run continues.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentErrorCause {
    /// The agent failed, panicked, or returned an unreadable answer.
    NoAnswer,
    /// No connection to the agent: refused, not resolved, no TLS, or a connect timeout.
    Unreachable {
        /// Number of failed attempts, retries included.
        attempts: u32,
    },
    /// The time limit expired. This is a verdict, unlike the other causes.
    Timeout,
    /// A model replied with something unusable; a retry may help.
    Unusable(Box<UnusableReply>),
    /// The budget does not allow the call. No further case is started.
    Budget,
}

/// A model's reply that does not have the requested form.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UnusableReply {
    /// A refusal, invalid JSON or truncated JSON; may be empty.
    pub text: String,
    pub usage: Option<Usage>,
}

impl AgentError {
    pub fn new(message: impl Into<String>, elapsed: Duration) -> Self {
        Self { message: message.into(), elapsed, cause: AgentErrorCause::NoAnswer }
    }

    pub fn unreachable(message: impl Into<String>, elapsed: Duration, attempts: u32) -> Self {
        Self { cause: AgentErrorCause::Unreachable { attempts }, ..Self::new(message, elapsed) }
    }

    pub fn unusable(message: impl Into<String>, elapsed: Duration, reply: UnusableReply) -> Self {
        Self { cause: AgentErrorCause::Unusable(Box::new(reply)), ..Self::new(message, elapsed) }
    }

    pub fn timeout(elapsed: Duration) -> Self {
        Self { cause: AgentErrorCause::Timeout, ..Self::new(Cause::TIMEOUT_TEXT, elapsed) }
    }

    pub fn budget(message: impl Into<String>) -> Self {
        Self { cause: AgentErrorCause::Budget, ..Self::new(message, Duration::ZERO) }
    }

    /// Returns the unusable reply, if that is the cause.
    pub fn unusable_reply(&self) -> Option<&UnusableReply> {
        match &self.cause {
            AgentErrorCause::Unusable(reply) => Some(reply),
            _ => None,
        }
    }

    /// Whether the error ends the run, so that no further case is started.
    pub fn ends_run(&self) -> bool {
        self.cause == AgentErrorCause::Budget
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for AgentError {}

/// Runs an agent's real tools.
pub trait ToolRunner: Send + Sync {
    /// Calls a tool. An error that the tool reports is part of the outcome.
    fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: &'a Map<String, Value>,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolUnavailable>>;
}

/// The reason why a tool gave no result, such as a crash of its server. It says nothing about the agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolUnavailable(pub String);

/// The outcome of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutcome {
    /// The result for the model.
    pub result: Value,
    /// Why the call failed, if it did.
    pub error: Option<String>,
}

/// Judges traces with Python eval functions.
pub trait EvalFunctions: Send + Sync {
    /// Runs an eval function on a trace document and blocks until it returns. The judgement is an error if the function
    /// does not exist. The context is passed to functions that take one.
    fn judge(&self, name: &str, trace: &Value, context: &EvalContext) -> Judgement;
}

/// A source of the current time.
pub trait Clock: Send + Sync {
    fn now(&self) -> jiff::Timestamp;
}

/// A source of unique identifiers.
pub trait Ids: Send + Sync {
    fn run_id(&self) -> String;
}
