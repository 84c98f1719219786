//! Which places for cases a tool gets: what each case is to test, before anybody writes it.
//!
//! The same brief gives the same slots. What the project's cases test already is not asked for again.

mod golden;
mod labeled;
mod ring;

use karat_core::case::{Tier, next_ids};

pub use self::golden::golden_slots;
pub use self::labeled::labeled_slots;

use crate::{Brief, Purpose, Slot};

/// Gives the tool's next ids to what is to be tested.
fn numbered(brief: &Brief, tier: Tier, purposes: Vec<Purpose>) -> Vec<Slot> {
    let prefix = tier.id_prefix().unwrap_or_default();
    let ids = next_ids(prefix, &brief.tool.name, brief.existing().map(|case| case.id.as_str()));
    ids.zip(purposes).map(|(id, purpose)| Slot { id, purpose }).collect()
}

/// Returns the neighbours that the registry has: another name in a case would be an error.
fn neighbours(brief: &Brief) -> Vec<&str> {
    let is_known = |name: &&str| *name != brief.tool.name && brief.registry.tool(name).is_some();
    brief.overlaps.iter().map(|overlap| overlap.tool.as_str()).filter(is_known).collect()
}
