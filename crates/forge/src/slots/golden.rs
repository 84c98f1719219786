//! The golden cases of a tool: five to ten, one tool each.

use std::collections::BTreeSet;

use karat_cases::registry::Registry;
use karat_cases::{Case, Tier};
use karat_tools::coverage::{MAX_GOLDEN_CASES, MIN_GOLDEN_CASES};
use karat_tools::similarity::words;

use super::assign_ids;
use crate::identifier::is_raw;
use crate::{Brief, Overlap, Purpose, Slot};

/// Trigger phrases to test as such before any is used for a disambiguation.
const MIN_TRIGGERS: usize = 3;
/// Wanted numbers of rephrasings, disambiguations and confirmation cases, if there is room.
const REPHRASINGS: usize = 2;
const DISAMBIGUATIONS: usize = 2;
const CONFIRMATIONS: usize = 2;

/// Returns slots for missing golden cases, up to a total of five to ten with those of the project.
pub fn golden_slots(brief: &Brief) -> Vec<Slot> {
    let phrases = phrases(&brief.triggers);
    let existing = ExistingCases::new(brief, &phrases);
    let mut missing = MissingCases::new(brief, &phrases, &existing);
    let available = MAX_GOLDEN_CASES.saturating_sub(brief.golden.len());
    while missing.count() > available && missing.drop_least_important() {}
    if brief.needs_confirmation()
        && missing.count() < available
        && existing.confirmations + missing.confirmations < CONFIRMATIONS
    {
        missing.confirmations += 1;
    }
    if !phrases.is_empty() {
        missing.rephrasings += MIN_GOLDEN_CASES.saturating_sub(brief.golden.len() + missing.count());
    }
    let rephrased = phrases.iter().cycle().skip(existing.rephrasings).take(missing.rephrasings);
    let disambiguations = missing.disambiguations(&brief.registry);
    let mut purposes: Vec<Purpose> = missing.triggers.into_iter().map(Purpose::Trigger).collect();
    purposes.extend(rephrased.cloned().map(Purpose::Rephrasing));
    purposes.extend((0..missing.leaks).map(|_| Purpose::NoLeak));
    purposes.extend(disambiguations);
    purposes.extend((0..missing.confirmations).map(|_| Purpose::Confirmation));
    assign_ids(brief, Tier::Golden, purposes)
}

/// Returns the distinct non-empty phrases.
fn phrases(triggers: &[String]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let trimmed = triggers.iter().map(|phrase| phrase.trim()).filter(|phrase| !phrase.is_empty());
    trimmed.filter(|phrase| seen.insert(phrase.to_lowercase())).map(str::to_owned).collect()
}

/// The aspects that the project's golden cases already test, as far as detectable.
#[derive(Default)]
struct ExistingCases {
    /// Lower-cased.
    triggers: BTreeSet<String>,
    rephrasings: usize,
    leaks: usize,
    neighbours: BTreeSet<String>,
    confirmations: usize,
}

impl ExistingCases {
    fn new(brief: &Brief, phrases: &[String]) -> Self {
        let mut existing = Self::default();
        for case in &brief.golden {
            existing.count_case(brief, case, phrases);
        }
        existing
    }

    /// Counts a case for one purpose; a case without a detectable purpose counts as a rephrasing.
    fn count_case(&mut self, brief: &Brief, case: &Case, phrases: &[String]) {
        let expect = &*case.total_expectation();
        let forbidden = expect.tools_not_called.as_deref().unwrap_or_default();
        if forbidden.contains(&brief.tool.name) {
            self.confirmations += 1;
            return;
        }
        if self.leaks == 0 && expect.response_not_contains.iter().flatten().any(|text| is_raw(text)) {
            self.leaks += 1;
            return;
        }
        let message = case.message(0).trim().to_lowercase();
        let prefix = phrases.iter().map(|phrase| phrase.to_lowercase()).find(|phrase| {
            message.strip_prefix(phrase.as_str()).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        });
        let is_new = prefix.is_some_and(|phrase| self.triggers.insert(phrase));
        // A description may quote the message, which may contain a word that is also the name of a tool.
        let is_described = |name: &str| case.description.contains(name) && !case.message_text().contains(name);
        let is_named = |name: &str| forbidden.iter().any(|tool| tool == name) || is_described(name);
        if let Some(near) = brief.neighbours().find(|overlap| is_named(&overlap.tool)) {
            self.neighbours.insert(near.tool.clone());
        } else if !is_new {
            self.rephrasings += 1;
        }
    }
}

/// The cases to draft.
struct MissingCases {
    triggers: Vec<String>,
    rephrasings: usize,
    leaks: usize,
    neighbours: Vec<Overlap>,
    confirmations: usize,
}

impl MissingCases {
    fn new(brief: &Brief, phrases: &[String], existing: &ExistingCases) -> Self {
        let is_new = |phrase: &&String| !existing.triggers.contains(&phrase.to_lowercase());
        let missing_neighbours = brief.neighbours().filter(|overlap| !existing.neighbours.contains(&overlap.tool));
        let more = DISAMBIGUATIONS.saturating_sub(existing.neighbours.len());
        Self {
            triggers: phrases.iter().filter(is_new).cloned().collect(),
            rephrasings: if phrases.is_empty() { 0 } else { REPHRASINGS.saturating_sub(existing.rephrasings) },
            leaks: usize::from(existing.leaks == 0),
            neighbours: missing_neighbours.take(more).cloned().collect(),
            confirmations: usize::from(brief.needs_confirmation() && existing.confirmations == 0),
        }
    }

    fn count(&self) -> usize {
        self.triggers.len() + self.rephrasings + self.leaks + self.neighbours.len() + self.confirmations
    }

    /// Builds the disambiguation cases. Surplus trigger phrases become their messages: those that share the most words
    /// with the other tool.
    fn disambiguations(&mut self, registry: &Registry) -> Vec<Purpose> {
        let mut purposes = Vec::new();
        for Overlap { tool: other, reasons } in std::mem::take(&mut self.neighbours) {
            let description = registry.tool(&other).and_then(|tool| tool.description.as_deref()).unwrap_or_default();
            let other_words = words(&format!("{other} {description} {}", reasons.join(" ")));
            let shared = |phrase: &String| words(phrase).intersection(&other_words).count();
            let spare = self.triggers.len() > MIN_TRIGGERS;
            let nearest = (0..self.triggers.len()).rev().max_by_key(|&at| shared(&self.triggers[at]));
            let phrase = nearest.filter(|_| spare).map(|at| self.triggers.remove(at));
            purposes.push(Purpose::Disambiguation { other, reasons, phrase });
        }
        purposes
    }

    /// Drops the least important case. Returns false if none is left.
    fn drop_least_important(&mut self) -> bool {
        if self.rephrasings > 0 {
            self.rephrasings -= 1;
        } else if self.neighbours.len() > 1 {
            self.neighbours.pop();
        } else if self.triggers.len() > MIN_TRIGGERS {
            self.triggers.pop();
        } else if self.neighbours.pop().is_some() {
        } else if self.leaks > 0 {
            self.leaks -= 1;
        } else if self.triggers.len() > 1 {
            self.triggers.pop();
        } else if self.confirmations > 0 {
            self.confirmations -= 1;
        } else {
            return self.triggers.pop().is_some();
        }
        true
    }
}
