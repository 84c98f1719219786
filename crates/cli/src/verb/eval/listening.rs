//! Listens to what was judged, and knows when there is no use in going on.

use std::ops::ControlFlow;

use karat_sandbox::{Judged, Listener};

use crate::interrupt::Interrupts;

/// Makes rows of what was judged.
pub(super) trait Hearer {
    /// Why rows could not be handed on.
    type Error;

    fn hear(&mut self, judged: Judged) -> Result<(), Self::Error>;

    /// Hands on what is held back, when nothing further is at hand.
    fn flush(&mut self) -> Result<(), Self::Error>;

    /// Is told that all is well and it goes on.
    fn goes_on(&mut self) {}
}

/// A hearer, and how its hearing ended.
pub(super) struct Listening<H: Hearer> {
    pub(super) hearer: H,
    interrupts: Interrupts,
    /// Why rows could not be handed on.
    pub(super) unwritten: Option<H::Error>,
    pub(super) interrupted: bool,
}

impl<H: Hearer> Listening<H> {
    pub(super) fn new(hearer: H, interrupts: Interrupts) -> Self {
        Self { hearer, interrupts, unwritten: None, interrupted: false }
    }

    /// Lends itself to whoever tells.
    pub(super) fn ear(&mut self) -> impl Listener {
        Ear(self)
    }

    /// Goes on unless nobody takes the rows any more, or somebody asked to stop.
    fn go_on(&mut self, written: Result<(), H::Error>) -> ControlFlow<()> {
        if let Err(error) = written {
            // Only the first says why; what was judged meanwhile is told after it.
            self.unwritten.get_or_insert(error);
            return ControlFlow::Break(());
        }
        if self.interrupts.were_asked() {
            self.interrupted = true;
            return ControlFlow::Break(());
        }
        self.hearer.goes_on();
        ControlFlow::Continue(())
    }
}

struct Ear<'e, H: Hearer>(&'e mut Listening<H>);

impl<H: Hearer> Listener for Ear<'_, H> {
    fn judged(&mut self, judged: Judged) -> ControlFlow<()> {
        let written = self.0.hearer.hear(judged);
        self.0.go_on(written)
    }

    fn idle(&mut self) -> ControlFlow<()> {
        let flushed = self.0.hearer.flush();
        self.0.go_on(flushed)
    }
}
