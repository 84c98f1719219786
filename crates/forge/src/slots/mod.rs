//! Derives the slots of a tool from its brief.
//!
//! The result is deterministic and leaves out what the project's cases already test.

mod golden;
mod labeled;
mod related;

use karat_cases::{Tier, next_ids};

pub use self::golden::golden_slots;
pub use self::labeled::labeled_slots;

use crate::{Brief, Purpose, Slot};

/// Creates slots with the tool's next free ids.
pub(crate) fn assign_ids(brief: &Brief, tier: Tier, purposes: Vec<Purpose>) -> Vec<Slot> {
    let prefix = tier.id_prefix().unwrap_or_default();
    let ids = next_ids(prefix, &brief.tool.name, brief.existing().map(|case| case.id.as_str()));
    ids.zip(purposes).map(|(id, purpose)| Slot { id, purpose }).collect()
}
