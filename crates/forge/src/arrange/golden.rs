//! The golden cases of a tool: five to ten, one tool each.

use std::collections::BTreeSet;

use karat_core::case::{Case, Tier};
use karat_core::coverage::{LEAST_GOLDEN, MOST_GOLDEN};

use super::{neighbours, numbered};
use crate::{Brief, Purpose, Slot};

/// The fewest trigger phrases that a tool should have: they are the last to go.
const LEAST_TRIGGERS: usize = 3;
/// The rephrasings, disambiguations and cases that must ask first, where there is room for all.
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
    let mut purposes: Vec<Purpose> = missing.triggers.into_iter().map(Purpose::Trigger).collect();
    purposes.extend(rephrased.cloned().map(Purpose::Rephrasing));
    purposes.extend((0..missing.leaks).map(|_| Purpose::NoLeak));
    purposes.extend(missing.neighbours.into_iter().map(Purpose::Disambiguation));
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
        if self.leaks == 0 && expect.response_not_contains.iter().flatten().any(|text| looks_raw(text)) {
            self.leaks += 1;
            return;
        }
        let message = case.input.message.trim().to_lowercase();
        let begins = phrases.iter().map(|phrase| phrase.to_lowercase()).find(|phrase| {
            message.strip_prefix(phrase.as_str()).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        });
        if let Some(phrase) = begins
            && self.triggers.insert(phrase)
        {
            return;
        }
        let names = |name: &&&str| forbidden.iter().any(|tool| tool == **name) || case.description.contains(**name);
        match neighbours(brief).iter().find(names) {
            Some(&name) => drop(self.neighbours.insert(name.to_owned())),
            None => self.rephrasings += 1,
        }
    }
}

/// Tells whether a text is one that only stands in raw data: `"tool":`, `fetchedAt`, `undefined`.
fn looks_raw(text: &str) -> bool {
    let has_hump =
        || text.chars().zip(text.chars().skip(1)).any(|(left, right)| left.is_lowercase() && right.is_uppercase());
    text == "undefined" || text.contains(['"', '{', '_']) || !text.contains(' ') && has_hump()
}

/// What is to be drafted.
struct Missing {
    triggers: Vec<String>,
    rephrasings: usize,
    leaks: usize,
    neighbours: Vec<String>,
    questions: usize,
}

impl Missing {
    fn of(brief: &Brief, phrases: &[String], found: &Found) -> Self {
        let is_new = |phrase: &&String| !found.triggers.contains(&phrase.to_lowercase());
        let missing_neighbours = neighbours(brief).into_iter().filter(|name| !found.neighbours.contains(*name));
        let more = DISAMBIGUATIONS.saturating_sub(found.neighbours.len());
        Self {
            triggers: phrases.iter().filter(is_new).cloned().collect(),
            rephrasings: if phrases.is_empty() { 0 } else { REPHRASINGS.saturating_sub(found.rephrasings) },
            leaks: usize::from(found.leaks == 0),
            neighbours: missing_neighbours.take(more).map(str::to_owned).collect(),
            questions: usize::from(brief.asks_first() && found.questions == 0),
        }
    }

    fn count(&self) -> usize {
        self.triggers.len() + self.rephrasings + self.leaks + self.neighbours.len() + self.questions
    }

    /// Gives up what matters least, if anything is left.
    fn shrink(&mut self) -> bool {
        if self.rephrasings > 0 {
            self.rephrasings -= 1;
        } else if self.neighbours.len() > 1 {
            self.neighbours.pop();
        } else if self.triggers.len() > LEAST_TRIGGERS {
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
