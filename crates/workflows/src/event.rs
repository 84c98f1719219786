//! How a workflow reports what happens while it runs.

use std::ops::ControlFlow;

/// Receives the events of a workflow, on the workflow's own task and in order.
pub trait EventSink<E>: Send {
    /// Takes an event. `Break` means that the receiver wants no more: the workflow ends as if it were cancelled.
    fn emit(&mut self, event: E) -> ControlFlow<()>;
}

impl<E, F: FnMut(E) -> ControlFlow<()> + Send> EventSink<E> for F {
    fn emit(&mut self, event: E) -> ControlFlow<()> {
        self(event)
    }
}
