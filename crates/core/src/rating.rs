//! A person's rating of a trace.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A person's judgement of what the agent did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Rating {
    Positive,
    Negative,
    Neutral,
}

impl Rating {
    pub const ALL: [Rating; 3] = [Rating::Positive, Rating::Negative, Rating::Neutral];

    pub fn name(self) -> &'static str {
        match self {
            Rating::Positive => "positive",
            Rating::Negative => "negative",
            Rating::Neutral => "neutral",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rating| rating.name() == name)
    }
}

impl fmt::Display for Rating {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}
