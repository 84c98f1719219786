//! Calls with a time limit. A panic is an error of the call.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use futures::FutureExt;
use karat_core::port::{AgentError, BoxFuture};

use crate::stopwatch::Stopwatch;

/// A call that timed out or panicked, with the error that replaces its result.
pub(crate) struct AbandonedCall(AgentError);

impl AbandonedCall {
    /// Subtracts the time before the call from the elapsed time.
    pub(crate) fn after(self, before: Duration) -> Self {
        Self(AgentError { elapsed: self.0.elapsed.saturating_sub(before), ..self.0 })
    }

    /// Notifies the callee and returns the error.
    pub(crate) fn notify<A>(self, on_abandoned: impl FnOnce(&AgentError)) -> Result<A, AgentError> {
        // The callback may panic too; the error is already known.
        let _ = catch_unwind(AssertUnwindSafe(|| on_abandoned(&self.0)));
        Err(self.0)
    }
}

/// Awaits a call until the timeout.
pub(crate) async fn with_timeout<'a, A>(
    timeout: Duration,
    watch: &Stopwatch,
    call: impl FnOnce() -> BoxFuture<'a, Result<A, AgentError>>,
) -> Result<Result<A, AgentError>, AbandonedCall> {
    // `call` itself may panic, not only its future.
    let answer = AssertUnwindSafe(async { call().await }).catch_unwind();
    tokio::select! {
        biased;
        result = answer => {
            result.map_err(|panic| AbandonedCall(AgentError::new(panic_message(panic.as_ref()), watch.elapsed())))
        }
        () = watch.sleep_until(timeout) => Err(AbandonedCall(AgentError::timeout(watch.elapsed()))),
    }
}

pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let message = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("unknown");
    format!("internal error, please report it: {message}")
}
