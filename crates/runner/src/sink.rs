//! The receiver of run events.

use std::convert::Infallible;
use std::future::{Future, pending};

use karat_core::event::RunEvent;

use crate::reporters::Reporters;

/// Receives the events of a run in order, on the dispatcher's task.
pub trait RunSink: Send {
    fn emit(&mut self, event: RunEvent);

    /// Called when no more events are pending, to write buffered output.
    fn flush(&mut self);

    /// Does background work, such as writing to a store, while the run waits for cases. Must be cancel-safe.
    fn work(&mut self) -> impl Future<Output = Infallible> + Send {
        pending()
    }
}

/// Reports each event immediately.
impl RunSink for Reporters {
    fn emit(&mut self, event: RunEvent) {
        self.report(&event);
    }

    fn flush(&mut self) {
        Reporters::flush(self);
    }
}

/// Awaits a future while the sink does its background work.
pub(crate) async fn with_sink_work<T>(sink: &mut impl RunSink, future: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        output = future => output,
        never = sink.work() => match never {},
    }
}
