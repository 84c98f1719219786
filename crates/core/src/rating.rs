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

    /// Returns the name in the store and in JSON.
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

    /// Returns the name in the user interface.
    pub fn label(self) -> &'static str {
        match self {
            Rating::Positive => "good",
            Rating::Negative => "bad",
            Rating::Neutral => "neutral",
        }
    }

    /// Parses user input, which may be a label or a name.
    pub fn from_label(label: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rating| rating.label() == label).or_else(|| Self::from_name(label))
    }
}

impl fmt::Display for Rating {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_labels_and_names() {
        for rating in Rating::ALL {
            assert_eq!(
                (Rating::from_label(rating.label()), Rating::from_label(rating.name())),
                (Some(rating), Some(rating))
            );
        }
        assert_eq!((Rating::from_label("Good"), Rating::from_name("good")), (None, None));
        assert_eq!(Rating::Negative.to_string(), "bad");
    }
}
