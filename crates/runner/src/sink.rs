//! Where a run's events go.

use std::convert::Infallible;
use std::future::{Future, pending};

use karat_core::event::RunEvent;

use crate::reporters::Reporters;

/// Takes the events of a run, in order and on the dispatcher's task.
pub trait RunSink: Send {
    fn emit(&mut self, event: RunEvent);

    /// No further event is at hand: show what was held back.
    fn flush(&mut self);

    /// Does the sink's own work, such as writing to a store, while the run waits for cases. Can be dropped at any time.
    fn work(&mut self) -> impl Future<Output = Infallible> + Send {
        pending()
    }
}

/// Reports at once.
impl RunSink for Reporters {
    fn emit(&mut self, event: RunEvent) {
        self.report(&event);
    }

    fn flush(&mut self) {
        Reporters::flush(self);
    }
}

/// Waits for something while the sink does its work.
pub(crate) async fn while_working<T>(sink: &mut impl RunSink, waiting: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        done = waiting => done,
        never = sink.work() => match never {},
    }
}
