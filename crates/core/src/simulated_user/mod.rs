//! Simulated users: what they did in a run, and the rules that find their faults.
//!
//! A simulated user decides nothing about the verdict of a case. A fault of it makes the case errored.

mod faults;
mod known;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::statistics::rate;
use crate::trace::Usage;

pub use faults::{Fault, FaultRule, find_fault};

/// What the simulated user of a case did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SimulatedUserDetails {
    /// The model that played the user.
    pub model: String,
    /// Number of messages that were sent to the agent.
    pub messages: usize,
    pub end: SimulationEnd,
    /// The rule that a message broke; the message was not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// Tokens and cost of the simulated user, apart from those of the agent; null if unknown.
    pub usage: Option<Usage>,
}

/// Why a simulated conversation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SimulationEnd {
    /// The user said that it is done.
    Done,
    /// The user sent as many messages as allowed.
    MaxTurns,
    /// A message of the user broke a rule.
    Fault,
    /// The model that plays the user gave no message.
    NoMessage,
    /// The agent did not answer.
    NoAnswer,
}

/// The faults and the cost of the simulated users of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SimulatedUserSummary {
    /// Trials with a simulated user.
    pub trials: usize,
    /// Trials that a fault of the simulated user ended; they are errored.
    pub faults: usize,
    /// The share of trials with a fault.
    pub fault_rate: Option<f64>,
    /// Present only if the cost of every message is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl SimulatedUserSummary {
    /// Summarises trials; `None` if there are none.
    pub fn from_details<'d>(details: impl Iterator<Item = &'d SimulatedUserDetails>) -> Option<Self> {
        let mut summary = None;
        for trial in details {
            let cost_usd = trial.usage.as_ref().and_then(|usage| usage.cost_usd);
            let faults = usize::from(trial.fault.is_some());
            let own = Self { trials: 1, faults, fault_rate: rate(faults, 1), cost_usd };
            match &mut summary {
                None => summary = Some(own),
                Some(summary) => summary.add(&own),
            }
        }
        summary
    }

    pub fn add(&mut self, other: &Self) {
        let is_first = self.trials == 0;
        self.trials += other.trials;
        self.faults += other.faults;
        self.fault_rate = rate(self.faults, self.trials);
        self.cost_usd =
            if is_first { other.cost_usd } else { self.cost_usd.zip(other.cost_usd).map(|(left, right)| left + right) };
    }
}
