//! Numbers equal requests in a run, so that each has its own recording.

use std::collections::HashMap;
use std::sync::Arc;

use karat_cases::Case;
use karat_core::port::Agent;
use karat_core::redact::Redactor;

use crate::plan::Plan;

/// The number of equal requests so far, by agent and equality key.
pub(crate) struct Samples {
    agents: Vec<Arc<dyn Agent>>,
    /// For each agent, the first agent with the same determinants.
    first_equal: Vec<usize>,
    redactor: Redactor,
    counts: HashMap<(usize, String), u32>,
}

impl Samples {
    pub(crate) fn new(plan: &Plan, agents: &[Arc<dyn Agent>]) -> Self {
        Self {
            agents: agents.to_vec(),
            first_equal: first_equal_agents(plan, agents),
            redactor: plan.redactor.clone(),
            counts: HashMap::new(),
        }
    }

    /// Frees the numbers when no more requests follow.
    pub(crate) fn clear(&mut self) {
        self.counts = HashMap::new();
    }

    /// Returns the number of equal requests so far and reserves the next `times` numbers.
    pub(crate) fn reserve(&mut self, agent: usize, case: &Case, times: u32) -> u32 {
        let mut key = self.agents[agent].equality_key(case);
        // Recordings are redacted, so requests that differ only in a secret are equal.
        self.redactor.string(&mut key);
        let count = self.counts.entry((self.first_equal[agent], key)).or_default();
        let first = *count;
        *count = count.saturating_add(times);
        first
    }
}

/// Compares agents by their determinants for the same case.
fn first_equal_agents(plan: &Plan, agents: &[Arc<dyn Agent>]) -> Vec<usize> {
    let suite_cases = plan.suites.iter().flat_map(|suite| &suite.file.cases);
    let rubric_cases = plan.rubrics.suites.iter().flat_map(|suite| suite.file.cases.iter().map(|case| &case.case));
    let Some(case) = suite_cases.chain(rubric_cases).next().filter(|_| agents.len() > 1) else {
        return (0..agents.len()).collect();
    };
    let redacted = |agent: &Arc<dyn Agent>| {
        let mut parts = agent.determinants(case, 0);
        plan.redactor.map(&mut parts);
        parts
    };
    let parts: Vec<_> = agents.iter().map(redacted).collect();
    let first = |own| parts.iter().position(|other| other == own).unwrap_or_default();
    parts.iter().map(first).collect()
}
