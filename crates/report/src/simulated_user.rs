//! Simulated users, as text.

use std::fmt::Write as _;

use karat_core::simulated_user::{SimulatedUserDetails, SimulatedUserSummary, SimulationEnd};
use karat_json::text::counted;

use crate::trials::percent;

/// Returns the faults and the cost of the simulated users.
pub(crate) fn simulated_users_line(summary: &SimulatedUserSummary) -> String {
    let SimulatedUserSummary { trials, faults, fault_rate, cost_usd } = summary;
    let mut line = format!("simulated users: {faults} of {} with a fault", counted(*trials, "conversation"));
    if let Some(rate) = fault_rate.filter(|_| *faults > 0) {
        let _ = write!(line, " ({}%)", percent(rate));
    }
    if let Some(cost) = cost_usd {
        let _ = write!(line, ", ${cost:.4}");
    }
    line
}

/// Says how a simulated conversation ended.
pub(crate) fn simulation_text(details: &SimulatedUserDetails) -> String {
    let SimulatedUserDetails { model, messages, end, fault, usage } = details;
    let end = match end {
        SimulationEnd::Done => "done",
        SimulationEnd::MaxTurns => "no more messages allowed: see 'maxTurns'",
        SimulationEnd::Fault => "fault",
        SimulationEnd::NoMessage => "its model gave no message",
        SimulationEnd::NoAnswer => "the agent did not answer",
    };
    let mut text = format!("{model}, {}, {end}", counted(*messages, "message"));
    if let Some(cost) = usage.as_ref().and_then(|usage| usage.cost_usd) {
        let _ = write!(text, ", ${cost:.4}");
    }
    if let Some(fault) = fault {
        let _ = write!(text, "; not sent: {}", fault.message);
    }
    text
}
