//! Stubs that real tools make useless.

use karat_core::assertion::Mode;
use karat_core::case::Case;
use karat_core::port::Agent;

/// Warns of cases whose stubs do not apply, since the agent has tools of its own.
pub(crate) fn unused_stubs<'c>(cases: impl Iterator<Item = &'c Case>, agent: &dyn Agent) -> Option<String> {
    let stubbed = cases.filter(|case| case.stubs.is_some());
    let unused = stubbed.filter(|case| agent.mode(case) == Mode::Endpoint).count();
    let count = counted(unused, "case has", "cases have");
    (unused > 0).then(|| format!("{count} stubs, which do not apply: real tools answer"))
}

pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}
