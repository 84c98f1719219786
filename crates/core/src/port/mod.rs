//! What the pure core asks of the world.

mod store;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::assertion::Mode;
use crate::case::Case;
use crate::judgement::Judgement;
use crate::outcome::Cause;
use crate::trace::{Trace, Usage};

pub use self::store::{RunStore, StoreError, Stored, TraceStore};

/// A future that can move between threads.
pub type Pending<'f, T> = Pin<Box<dyn Future<Output = T> + Send + 'f>>;

/// Who answers a case.
pub trait Agent: Send + Sync {
    /// Returns what results call this agent; it may hold secrets, which the writer takes out.
    fn identity(&self) -> String;

    /// Returns the parameters that are recorded with the run, by name: of a model, its temperature and the like.
    fn parameters(&self) -> Map<String, Value> {
        Map::new()
    }

    /// Returns everything that determines the answer to this case, by name; where all of it is equal, a recorded
    /// answer stands for a new one. What is only asserted of the answer is not in it.
    fn determinants(&self, case: &Case) -> Map<String, Value>;

    /// Returns a text that is equal for cases for which this agent's determinants are equal, and for no others. It is
    /// asked of every case before a run begins.
    fn question(&self, case: &Case) -> String {
        case.input.message.clone()
    }

    /// Returns how the answer to this case comes about.
    fn mode(&self, case: &Case) -> Mode;

    /// Answers the case's message.
    fn answer<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Result<Trace, AgentError>>;

    /// Is told what counts instead of an answer that was given up: it took too long, or the agent panicked. Not told
    /// when the run was interrupted, since then nothing counts.
    fn given_up(&self, _ask: Ask<'_>, _error: &AgentError) {}
}

/// What is asked of an agent.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    pub case: &'a Case,
    /// How often the same was asked before in this run: trials, and cases with equal messages.
    pub sample: u32,
    pub waiting: &'a dyn Waiting,
}

/// Is told when an agent waits for its turn: for a rate limit, or between two tries. That time is nobody's latency.
pub trait Waiting: Send + Sync {
    fn begin(&self);
    fn end(&self);
}

/// Nobody counts the time.
pub struct Unwatched;

impl Waiting for Unwatched {
    fn begin(&self) {}
    fn end(&self) {}
}

/// A wait that ends when it is dropped.
pub struct Wait<'a>(&'a dyn Waiting);

impl<'a> Wait<'a> {
    pub fn begin(waiting: &'a dyn Waiting) -> Self {
        waiting.begin();
        Self(waiting)
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Why there is no answer to judge.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentError {
    /// A lower-case fragment, not yet shortened: a secret that is cut in two could not be found any more.
    pub message: String,
    /// How long the try took.
    pub elapsed: Duration,
    pub cause: AgentErrorCause,
}

/// What an error means for the case, for the run, and for whoever might ask again.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentErrorCause {
    /// The agent was not reached, failed, panicked, or gave an answer that cannot be read.
    NoAnswer,
    /// Nobody waited any longer: that is a verdict, unlike the other causes.
    Timeout,
    /// A model was reached and said something that cannot be used: asking it again may help.
    Unusable(Box<UnusableReply>),
    /// The budget cannot be kept: no other case would fare better, so none is to begin.
    Budget,
}

/// What a model said in place of an answer of the asked shape.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UnusableReply {
    /// A refusal, a text that is no JSON, half a JSON; empty where it said nothing.
    pub text: String,
    pub usage: Option<Usage>,
}

impl AgentError {
    pub fn new(message: impl Into<String>, elapsed: Duration) -> Self {
        Self { message: message.into(), elapsed, cause: AgentErrorCause::NoAnswer }
    }

    /// Tells of a model that spoke, but gave no answer of the asked shape.
    pub fn unusable(message: impl Into<String>, elapsed: Duration, reply: UnusableReply) -> Self {
        Self { cause: AgentErrorCause::Unusable(Box::new(reply)), ..Self::new(message, elapsed) }
    }

    pub fn timeout(elapsed: Duration) -> Self {
        Self { cause: AgentErrorCause::Timeout, ..Self::new(Cause::TIMEOUT_TEXT, elapsed) }
    }

    /// Tells of a budget that is used up or cannot be kept.
    pub fn budget(message: impl Into<String>) -> Self {
        Self { cause: AgentErrorCause::Budget, ..Self::new(message, Duration::ZERO) }
    }

    /// Returns what a model said that cannot be used, if that is the cause.
    pub fn unusable_reply(&self) -> Option<&UnusableReply> {
        match &self.cause {
            AgentErrorCause::Unusable(reply) => Some(reply),
            _ => None,
        }
    }

    /// Returns whether no further case is to begin.
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

/// Runs an agent's tools for real.
pub trait ToolRunner: Send + Sync {
    /// Calls a tool; one that fails has an outcome too.
    fn call<'a>(&'a self, tool: &'a str, arguments: &'a Map<String, Value>) -> Pending<'a, ToolOutcome>;
}

/// What came of a tool's call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutcome {
    /// What the model is told.
    pub result: Value,
    /// Why the call failed, if it did.
    pub error: Option<String>,
}

/// Judges traces by Python functions.
pub trait EvalFunctions: Send + Sync {
    /// Runs the function of this name over a trace in the documented shape. Blocks until there is an outcome, which is
    /// an error where there is no such function.
    fn judge(&self, name: &str, trace: &Value) -> Judgement;
}

/// Tells the time.
pub trait Clock: Send + Sync {
    fn now(&self) -> jiff::Timestamp;
}

/// Makes identifiers that no other run has.
pub trait Ids: Send + Sync {
    fn run_id(&self) -> String;
}
