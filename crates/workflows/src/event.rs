//! Events that a workflow emits while it runs.

use std::ops::ControlFlow;

/// Receives the events of a workflow in order, on the workflow's task.
pub trait EventSink<E>: Send {
    /// Handles an event. `Break` ends the workflow as if it were cancelled.
    fn emit(&mut self, event: E) -> ControlFlow<()>;
}

impl<E, F: FnMut(E) -> ControlFlow<()> + Send> EventSink<E> for F {
    fn emit(&mut self, event: E) -> ControlFlow<()> {
        self(event)
    }
}
