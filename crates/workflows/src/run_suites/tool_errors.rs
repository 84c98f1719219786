//! Reports cases to which `noToolErrors` does not apply.

use std::sync::Arc;

use karat_cases::Case;
use karat_core::assertion::Mode;
use karat_core::port::Agent;
use karat_json::text::counted;
use karat_runner::SuitePlan;

use crate::notice::Notices;

/// Notes the number of cases whose `noToolErrors` cannot fail: a model that only selects tools runs none of them.
pub(super) fn note_unchecked_tool_errors(suites: &[SuitePlan], agents: &[Arc<dyn Agent>], notices: &dyn Notices) {
    let count = |(index, agent): (usize, &Arc<dyn Agent>)| {
        let is_unchecked =
            |case: &&Case| case.expect.no_tool_errors == Some(true) && agent.mode(case) == Mode::RoutingOnly;
        let of_agent = suites.iter().filter(|suite| suite.agent == index);
        of_agent.flat_map(|suite| &suite.file.cases).filter(is_unchecked).count()
    };
    let cases = agents.iter().enumerate().map(count).max().unwrap_or_default();
    if cases > 0 {
        notices.note(&format!(
            "'noToolErrors' does not apply to {}: without 'stubs', the model only selects tools",
            counted(cases, "case")
        ));
    }
}
