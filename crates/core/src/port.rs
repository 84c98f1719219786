//! What the pure core asks of the world.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::assertion::Mode;
use crate::case::Case;
use crate::event::RunEvent;
use crate::trace::Trace;

/// A future that can move between threads.
pub type Pending<'f, T> = Pin<Box<dyn Future<Output = T> + Send + 'f>>;

/// Who answers a case.
pub trait Agent: Send + Sync {
    /// Returns what results call this agent; it may hold secrets, which the writer takes out.
    fn identity(&self) -> String;

    /// Returns how the answer to this case comes about.
    fn mode(&self, case: &Case) -> Mode;

    /// Answers the case's message.
    fn answer<'a>(&'a self, case: &'a Case) -> Pending<'a, Result<Trace, AgentError>>;
}

/// Why there is no answer to judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentError {
    /// A lower-case fragment, not yet shortened: a secret that is cut in two could not be found any more.
    pub message: String,
    /// How long the try took.
    pub elapsed: Duration,
}

impl fmt::Display for AgentError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for AgentError {}

/// Tells the time.
pub trait Clock: Send + Sync {
    fn now(&self) -> jiff::Timestamp;
}

/// Makes identifiers that no other run has.
pub trait Ids: Send + Sync {
    fn run_id(&self) -> String;
}

/// Turns events into bytes somewhere.
pub trait Reporter {
    fn on_event(&mut self, event: &RunEvent) -> Result<(), ReportError>;

    /// Shows what was held back; called when no further event is at hand.
    fn flush(&mut self) -> Result<(), ReportError> {
        Ok(())
    }
}

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
#[error("could not write {what}: {source}")]
pub struct ReportError {
    /// What was to be written.
    pub what: String,
    pub source: std::io::Error,
}
