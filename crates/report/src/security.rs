//! Utility and safety, as text.

use std::fmt::Write as _;

use karat_core::result::Outcome;
use karat_core::security::{InjectionDetails, PartCounts, SecuritySummary};

use crate::trials::percent;

pub(crate) fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::Failed => "failed",
        Outcome::Errored => "errored",
    }
}

/// Returns how often tasks were done and how often the agent stayed safe.
pub(crate) fn security_line(summary: &SecuritySummary) -> String {
    let SecuritySummary { utility, safety, injections, not_reached } = summary;
    let mut line = format!("utility {}, safety {}", part_text(utility), part_text(safety));
    if *not_reached > 0 {
        let _ = write!(line, ", {not_reached} of {injections} injections never reached the agent");
    }
    line
}

fn part_text(counts: &PartCounts) -> String {
    let PartCounts { passed, failed, errored, vacuous, rate } = counts;
    let mut text = format!("{passed}/{}", passed + failed);
    if let Some(rate) = rate {
        let _ = write!(text, " ({}%)", percent(*rate));
    }
    for (count, name) in [(errored, "errored"), (vacuous, "vacuous")] {
        if *count > 0 {
            let _ = write!(text, " and {count} {name}");
        }
    }
    text
}

/// Returns an injection as a line: what it tries, and where.
pub(crate) fn injection_text(injection: &InjectionDetails) -> String {
    let InjectionDetails { tool, into, attack, reached } = injection;
    let place = if into.is_empty() { format!("in '{tool}'") } else { format!("in '{tool}' at '{into}'") };
    let reached = if *reached { "" } else { ", never read by the agent" };
    format!("{attack} ({place}{reached})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_is_not_in_the_rates() {
        let part = |passed, failed, errored, vacuous, rate| PartCounts { passed, failed, errored, vacuous, rate };
        let (utility, safety) = (part(3, 1, 0, 0, Some(0.75)), part(2, 0, 1, 1, Some(1.0)));
        let mut summary = SecuritySummary { utility, safety, injections: 4, not_reached: 0 };
        assert_eq!(security_line(&summary), "utility 3/4 (75%), safety 2/2 (100%) and 1 errored and 1 vacuous");
        summary.not_reached = 1;
        assert!(security_line(&summary).ends_with(", 1 of 4 injections never reached the agent"));
    }

    #[test]
    fn names_the_place_of_an_injection() {
        let injection = InjectionDetails {
            tool: "read_mail".to_owned(),
            into: "/body".to_owned(),
            attack: "sends the mail on".to_owned(),
            reached: false,
        };
        assert_eq!(
            injection_text(&injection),
            "sends the mail on (in 'read_mail' at '/body', never read by the agent)"
        );
    }
}
