//! The other tools in the order in which they are taken as companions, over and over.

use std::collections::{BTreeMap, BTreeSet};

use super::neighbours;
use crate::Brief;

/// Hands out companions: neighbours first, then the members of clusters, then the rest of the registry, and so on from
/// where it stopped. A set that was handed out comes again only when all others did.
pub(super) struct Ring<'b> {
    tools: Vec<&'b str>,
    next: usize,
    used: BTreeMap<BTreeSet<String>, usize>,
}

impl<'b> Ring<'b> {
    pub(super) fn of(brief: &'b Brief) -> Self {
        let mut tools: Vec<&str> = Vec::new();
        let members = brief.clusters.iter().flatten().map(String::as_str);
        let is_known = |name: &&str| *name != brief.tool.name && brief.registry.tool(name).is_some();
        let mut seen = BTreeSet::new();
        for tool in neighbours(brief).into_iter().chain(members.filter(is_known)).chain(brief.others()) {
            if seen.insert(tool) {
                tools.push(tool);
            }
        }
        Self { tools, next: 0, used: BTreeMap::new() }
    }

    /// Returns how many other tools there are.
    pub(super) fn len(&self) -> usize {
        self.tools.len()
    }

    /// Remembers companions that a case has already.
    pub(super) fn remember(&mut self, companions: impl IntoIterator<Item = String>) {
        *self.used.entry(companions.into_iter().collect()).or_default() += 1;
    }

    /// Returns so many companions, at most all, that go with those that are given.
    pub(super) fn take(&mut self, given: &[String], count: usize) -> Vec<String> {
        let free: Vec<&str> = self.tools.iter().copied().filter(|tool| !given.iter().any(|own| own == tool)).collect();
        let count = count.min(free.len());
        if count == 0 {
            self.remember(given.to_vec());
            return Vec::new();
        }
        let mut best: Option<(usize, Vec<String>)> = None;
        // One companion after the other; where all such sets were used, every second one, and so on.
        'search: for stride in 1..=free.len() {
            for offset in 0..free.len() {
                let from = self.next + offset;
                let picked = (0..count).map(|step| free[(from + step * stride) % free.len()].to_owned());
                let picked: Vec<String> = picked.collect();
                let set: BTreeSet<String> = picked.iter().chain(given).cloned().collect();
                if set.len() < count + given.len() {
                    continue;
                }
                let uses = self.used.get(&set).copied().unwrap_or_default();
                if best.as_ref().is_none_or(|(least, _)| uses < *least) {
                    best = Some((uses, picked));
                }
                if uses == 0 {
                    break 'search;
                }
            }
            if count == 1 {
                break;
            }
        }
        let picked = best.map(|(_, picked)| picked).unwrap_or_default();
        let last = picked.last().and_then(|last| free.iter().position(|tool| tool == last));
        self.next = last.map_or(0, |last| (last + 1) % free.len());
        self.remember(picked.iter().chain(given).cloned());
        picked
    }
}
