//! Kinds of cases with the same instructions.

use karat_cases::Difficulty;

use crate::{Purpose, Slot};

/// The golden tier, or a difficulty of the labeled tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Golden,
    Straightforward,
    Ambiguous,
    Edge,
}

impl Kind {
    fn from_slot(slot: &Slot) -> Self {
        match &slot.purpose {
            Purpose::Together { .. } => Self::Straightforward,
            Purpose::Choice { .. } => Self::Ambiguous,
            Purpose::Edge(_) => Self::Edge,
            _ => Self::Golden,
        }
    }

    /// Returns the distinct kinds of a batch, usually one.
    pub(super) fn all_of(slots: &[&Slot]) -> Vec<Self> {
        let mut kinds: Vec<Self> = slots.iter().map(|slot| Self::from_slot(slot)).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    pub(super) fn difficulty(self) -> Option<Difficulty> {
        match self {
            Self::Golden => None,
            Self::Straightforward => Some(Difficulty::Straightforward),
            Self::Ambiguous => Some(Difficulty::Ambiguous),
            Self::Edge => Some(Difficulty::Edge),
        }
    }
}
