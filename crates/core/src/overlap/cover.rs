//! Which cases test declared overlaps and clusters.

use std::collections::BTreeSet;

use crate::case::{Case, Difficulty};

/// Tells whether a case tests two tools against each other: it is ambiguous, and its acceptable sets name both.
pub fn covers_pair(case: &Case, left: &str, right: &str) -> bool {
    let names = |tool: &str| case.expect.tools_acceptable.iter().flatten().flatten().any(|named| named == tool);
    case.difficulty == Some(Difficulty::Ambiguous) && names(left) && names(right)
}

/// Tells whether one of a case's sets, or the list of its calls, holds all tools of a cluster.
///
/// Only cases of labeled files count, which the caller sees to.
pub fn covers_cluster(case: &Case, cluster: &BTreeSet<String>) -> bool {
    let mut sets = case.expect.tools_acceptable.iter().flatten().chain(&case.expect.tools_called);
    sets.any(|set| set.len() >= cluster.len() && cluster.iter().all(|tool| set.contains(tool)))
}
