//! Counts how often the same was asked, so that every answer of a run can be told apart.

use std::collections::HashMap;
use std::sync::Arc;

use karat_core::case::Case;
use karat_core::port::Agent;
use karat_core::redact::Redactor;

use crate::plan::Plan;

/// How often each question was asked of each agent.
pub(crate) struct Samples {
    agents: Vec<Arc<dyn Agent>>,
    /// For each agent, the first one that cannot be told from it.
    first_alike: Vec<usize>,
    redactor: Redactor,
    asked: HashMap<(usize, String), u32>,
}

impl Samples {
    pub(crate) fn new(plan: &Plan, agents: &[Arc<dyn Agent>]) -> Self {
        Self {
            agents: agents.to_vec(),
            first_alike: first_alike(plan, agents),
            redactor: plan.redactor.clone(),
            asked: HashMap::new(),
        }
    }

    /// Returns how often the same was asked before, and counts it so many times more.
    pub(crate) fn take(&mut self, agent: usize, case: &Case, times: u32) -> u32 {
        let mut question = self.agents[agent].question(case);
        // What differs in a secret only is the same once it is masked.
        self.redactor.string(&mut question);
        let count = self.asked.entry((self.first_alike[agent], question)).or_default();
        let before = *count;
        *count = count.saturating_add(times);
        before
    }
}

/// Compares the agents by what determines their answers to one case, which is the same for all of them.
fn first_alike(plan: &Plan, agents: &[Arc<dyn Agent>]) -> Vec<usize> {
    let judged = plan.suites.iter().flat_map(|suite| &suite.file.cases);
    let scored = plan.rubrics.suites.iter().flat_map(|suite| suite.file.cases.iter().map(|case| &case.case));
    let Some(case) = judged.chain(scored).next().filter(|_| agents.len() > 1) else {
        return (0..agents.len()).collect();
    };
    let masked = |agent: &Arc<dyn Agent>| {
        let mut parts = agent.determinants(case);
        plan.redactor.map(&mut parts);
        parts
    };
    let parts: Vec<_> = agents.iter().map(masked).collect();
    let first = |own| parts.iter().position(|other| other == own).unwrap_or_default();
    parts.iter().map(first).collect()
}
