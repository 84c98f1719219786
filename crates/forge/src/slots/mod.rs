//! Which cases a tool should get: what each of them tests, before anybody writes it.
//!
//! The same brief gives the same slots. What the project's cases already test is not asked for again.

mod golden;
mod labeled;
mod related;

use karat_core::case::{Tier, next_ids};

pub use self::golden::golden_slots;
pub use self::labeled::labeled_slots;

use crate::{Brief, Purpose, Slot};

/// Gives the tool's next ids to purposes.
pub(crate) fn numbered(brief: &Brief, tier: Tier, purposes: Vec<Purpose>) -> Vec<Slot> {
    let prefix = tier.id_prefix().unwrap_or_default();
    let ids = next_ids(prefix, &brief.tool.name, brief.existing().map(|case| case.id.as_str()));
    ids.zip(purposes).map(|(id, purpose)| Slot { id, purpose }).collect()
}
