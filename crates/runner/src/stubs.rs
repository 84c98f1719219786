//! Warns about unused stubs.

use karat_core::assertion::Mode;
use karat_core::case::Case;
use karat_core::port::Agent;

/// Returns a warning if cases have stubs that are unused because the agent runs real tools.
pub(crate) fn unused_stubs_warning<'c>(cases: impl Iterator<Item = &'c Case>, agent: &dyn Agent) -> Option<String> {
    let stubbed = cases.filter(|case| case.stubs.is_some());
    let unused = stubbed.filter(|case| agent.mode(case) == Mode::Endpoint).count();
    let count = format_count(unused, "case has", "cases have");
    (unused > 0).then(|| format!("{count} unused stubs: the agent runs real tools"))
}

pub(crate) fn format_count(count: usize, singular: &str, plural: &str) -> String {
    if count == 1 { format!("1 {singular}") } else { format!("{count} {plural}") }
}
