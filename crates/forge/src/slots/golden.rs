//! The golden cases of a tool: five to ten, one tool each.

use std::collections::BTreeSet;

use karat_core::case::{Case, Tier};
use karat_core::registry::Registry;
use karat_tools::coverage::{LEAST_GOLDEN, MOST_GOLDEN};
use karat_tools::similarity::words;

use super::numbered;
use crate::identifier::is_raw;
use crate::{Brief, Overlap, Purpose, Slot};

/// The trigger phrases that are tested as such before any is used to tell the tool from a neighbour.
const MIN_TRIGGERS: usize = 3;
/// The rephrasings, disambiguations and cases that ask first, where there is room for all.
const REPHRASINGS: usize = 2;
const DISAMBIGUATIONS: usize = 2;
const QUESTIONS: usize = 2;

/// Returns the golden cases that are missing, so that there are five to ten with those of the project.
pub fn golden_slots(brief: &Brief) -> Vec<Slot> {
    let phrases = phrases(&brief.triggers);
    let found = Found::of(brief, &phrases);
    let mut missing = Missing::of(brief, &phrases, &found);
    let room = MOST_GOLDEN.saturating_sub(brief.golden.len());
    while missing.count() > room && missing.shrink() {}
    if brief.asks_first() && missing.count() < room && found.questions + missing.questions < QUESTIONS {
        missing.questions += 1;
    }
    if !phrases.is_empty() {
        missing.rephrasings += LEAST_GOLDEN.saturating_sub(brief.golden.len() + missing.count());
    }
    let rephrased = phrases.iter().cycle().skip(found.rephrasings).take(missing.rephrasings);
    let told_apart = missing.disambiguations(&brief.registry);
    let mut purposes: Vec<Purpose> = missing.triggers.into_iter().map(Purpose::Trigger).collect();
    purposes.extend(rephrased.cloned().map(Purpose::Rephrasing));
    purposes.extend((0..missing.leaks).map(|_| Purpose::NoLeak));
    purposes.extend(told_apart);
    purposes.extend((0..missing.questions).map(|_| Purpose::AsksFirst));
    numbered(brief, Tier::Golden, purposes)
}

/// Returns the phrases that say something, each once.
fn phrases(triggers: &[String]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let trimmed = triggers.iter().map(|phrase| phrase.trim()).filter(|phrase| !phrase.is_empty());
    trimmed.filter(|phrase| seen.insert(phrase.to_lowercase())).map(str::to_owned).collect()
}

/// What the project's golden cases test, as far as it shows.
#[derive(Default)]
struct Found {
    /// In lower case.
    triggers: BTreeSet<String>,
    rephrasings: usize,
    leaks: usize,
    neighbours: BTreeSet<String>,
    questions: usize,
}

impl Found {
    fn of(brief: &Brief, phrases: &[String]) -> Self {
        let mut found = Self::default();
        for case in &brief.golden {
            found.take(brief, case, phrases);
        }
        found
    }

    /// Counts a case as one thing only; what shows no other purpose says the same in other words.
    fn take(&mut self, brief: &Brief, case: &Case, phrases: &[String]) {
        let expect = &case.expect;
        let forbidden = expect.tools_not_called.as_deref().unwrap_or_default();
        if forbidden.contains(&brief.tool.name) {
            self.questions += 1;
            return;
        }
        if self.leaks == 0 && expect.response_not_contains.iter().flatten().any(|text| is_raw(text)) {
            self.leaks += 1;
            return;
        }
        let message = case.input.message.trim().to_lowercase();
        let begins = phrases.iter().map(|phrase| phrase.to_lowercase()).find(|phrase| {
            message.strip_prefix(phrase.as_str()).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        });
        let is_new = begins.is_some_and(|phrase| self.triggers.insert(phrase));
        let is_named = |name: &str| forbidden.iter().any(|tool| tool == name) || case.description.contains(name);
        if let Some(near) = brief.neighbours().find(|overlap| is_named(&overlap.tool)) {
            self.neighbours.insert(near.tool.clone());
        } else if !is_new {
            self.rephrasings += 1;
        }
    }
}

/// What is to be drafted.
struct Missing {
    triggers: Vec<String>,
    rephrasings: usize,
    leaks: usize,
    neighbours: Vec<Overlap>,
    questions: usize,
}

impl Missing {
    fn of(brief: &Brief, phrases: &[String], found: &Found) -> Self {
        let is_new = |phrase: &&String| !found.triggers.contains(&phrase.to_lowercase());
        let missing_neighbours = brief.neighbours().filter(|overlap| !found.neighbours.contains(&overlap.tool));
        let more = DISAMBIGUATIONS.saturating_sub(found.neighbours.len());
        Self {
            triggers: phrases.iter().filter(is_new).cloned().collect(),
            rephrasings: if phrases.is_empty() { 0 } else { REPHRASINGS.saturating_sub(found.rephrasings) },
            leaks: usize::from(found.leaks == 0),
            neighbours: missing_neighbours.take(more).cloned().collect(),
            questions: usize::from(brief.asks_first() && found.questions == 0),
        }
    }

    fn count(&self) -> usize {
        self.triggers.len() + self.rephrasings + self.leaks + self.neighbours.len() + self.questions
    }

    /// Makes the cases that tell the tool from its neighbours. Of more than enough trigger phrases, those that have the
    /// most words in common with a neighbour become the messages of these cases.
    fn disambiguations(&mut self, registry: &Registry) -> Vec<Purpose> {
        let mut purposes = Vec::new();
        for Overlap { tool: other, reasons } in std::mem::take(&mut self.neighbours) {
            let description = registry.tool(&other).and_then(|tool| tool.description.as_deref()).unwrap_or_default();
            let theirs = words(&format!("{other} {description} {}", reasons.join(" ")));
            let shared = |phrase: &String| words(phrase).intersection(&theirs).count();
            let spare = self.triggers.len() > MIN_TRIGGERS;
            let nearest = (0..self.triggers.len()).rev().max_by_key(|&at| shared(&self.triggers[at]));
            let phrase = nearest.filter(|_| spare).map(|at| self.triggers.remove(at));
            purposes.push(Purpose::Disambiguation { other, reasons, phrase });
        }
        purposes
    }

    /// Gives up what matters least, if anything is left.
    fn shrink(&mut self) -> bool {
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
        } else if self.questions > 0 {
            self.questions -= 1;
        } else {
            return self.triggers.pop().is_some();
        }
        true
    }
}
