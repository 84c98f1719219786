//! The shared state of the workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use karat_cases::Case;
use karat_core::port::Agent;
use tracing::{Span, debug_span};

use crate::exclusion::Exclusion;
use crate::plan::Plan;
use crate::reachability::Reachability;

/// The state that all workers share.
pub(crate) struct SharedState {
    pub(crate) plan: Plan,
    pub(crate) agents: Vec<Arc<dyn Agent>>,
    /// All trials of the run, in order.
    pub(crate) units: Vec<Unit>,
    /// For each agent.
    pub(crate) reachability: Vec<Reachability>,
    /// Lets cases run alone whose state sources others could change.
    pub(crate) exclusion: Exclusion,
    pub(crate) next: AtomicUsize,
    /// Set to prevent further cases from starting.
    pub(crate) stop: AtomicBool,
}

/// One trial of a case.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit {
    pub(crate) suite: u32,
    pub(crate) index: u32,
    pub(crate) trial: u32,
    /// The number of equal requests before this one in the run.
    pub(crate) sample: u32,
}

impl SharedState {
    pub(crate) fn span(&self, unit: Unit) -> Span {
        let case = self.case(unit.suite as usize, unit.index as usize);
        debug_span!("case", id = %case.id, trial = unit.trial + 1)
    }

    pub(crate) fn case(&self, suite: usize, index: usize) -> &Case {
        &self.plan.suites[suite].file.cases[index]
    }

    pub(crate) fn agent(&self, suite: usize) -> &dyn Agent {
        self.agents[self.plan.suites[suite].agent].as_ref()
    }
}
