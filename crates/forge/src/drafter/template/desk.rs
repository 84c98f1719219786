//! What the template drafter has before it: how people speak of each tool, and what was said already.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use karat_core::case::Case;
use karat_core::registry::Tool;
use karat_core::similarity;

use super::frames::LEADS;
use super::phrasing::Speech;
use crate::{Brief, Slot};

/// Messages that share more of their words than this look alike to a person; the rules refuse more still.
const ALIKE: f64 = 0.65;
/// How often the frames are gone through, first with other words, then with another beginning.
const ROUNDS: usize = 5;
const ROUNDS_WITHOUT_LEADS: usize = 2;
/// How many frames another attempt goes on by; no number of frames is a multiple of it.
const STEP: usize = 6;

pub(super) struct Desk<'b> {
    pub(super) brief: &'b Brief,
    speeches: RefCell<BTreeMap<String, Rc<Speech>>>,
    /// The words of each message so far.
    said: Vec<BTreeSet<String>>,
    /// The words of all tools' names, and of our description.
    domain: BTreeSet<String>,
}

impl<'b> Desk<'b> {
    pub(super) fn of(brief: &'b Brief, so_far: &[Case]) -> Self {
        let said = brief.existing().chain(so_far).map(|case| similarity::words(&case.input.message)).collect();
        let names = brief.registry.tools().iter().map(|tool| tool.name.as_str());
        let domain = names.chain(brief.tool.description.as_deref()).flat_map(similarity::words).collect();
        Self { brief, speeches: RefCell::default(), said, domain }
    }

    /// Returns how people speak of our tool.
    pub(super) fn ours(&self) -> Rc<Speech> {
        self.speech(&self.brief.tool, &self.brief.triggers)
    }

    /// Returns how people speak of another tool; one that the registry lacks has a name at least.
    pub(super) fn other(&self, name: &str) -> Rc<Speech> {
        match self.brief.registry.tool(name) {
            Some(tool) => self.speech(tool, tool.trigger_phrases()),
            None => self.speech(&Tool { name: name.to_owned(), ..Tool::default() }, &[]),
        }
    }

    /// Returns a tool of the registry, or ours.
    pub(super) fn tool(&self, name: &str) -> &'b Tool {
        self.brief.registry.tool(name).unwrap_or(&self.brief.tool)
    }

    fn speech(&self, tool: &Tool, triggers: &[String]) -> Rc<Speech> {
        let mut speeches = self.speeches.borrow_mut();
        let speech = speeches.entry(tool.name.clone()).or_insert_with(|| Rc::new(Speech::of(tool, triggers)));
        Rc::clone(speech)
    }

    pub(super) fn add_said(&mut self, message: &str) {
        self.said.push(similarity::words(message));
    }

    /// Tells whether a text speaks of what one of the tools may be for.
    pub(super) fn is_of_domain(&self, text: &str) -> bool {
        similarity::words(text).iter().any(|word| self.domain.contains(word))
    }

    /// Returns the first message that is unlike all that were said, or else the least alike, and its frame's place.
    /// `make` fills the frame at a place in a turn, by which the words are chosen.
    pub(super) fn choose(
        &self,
        slot: &Slot,
        attempt: u32,
        frames: usize,
        make: impl Fn(usize, usize) -> String,
    ) -> (usize, String) {
        let base = base(slot, attempt);
        let mut best: Option<(f64, usize, String)> = None;
        for step in 0..frames * ROUNDS {
            let (place, round) = ((base + step) % frames, step / frames);
            let turn = base + step + round;
            let mut message = make(place, turn);
            if round >= ROUNDS_WITHOUT_LEADS {
                message = format!("{} {message}", LEADS[turn % LEADS.len()].replace("{topic}", &self.ours().topic));
            }
            let alike = self.alike(&message);
            if best.as_ref().is_none_or(|(least, ..)| alike < *least) {
                best = Some((alike, place, message));
            }
            if alike < ALIKE {
                break;
            }
        }
        best.map(|(_, place, message)| (place, message)).unwrap_or_default()
    }

    /// Returns the greatest share of words that a message has in common with one that was said.
    fn alike(&self, message: &str) -> f64 {
        let words = similarity::words(message);
        self.said.iter().map(|said| shared(said, &words)).fold(0.0, f64::max)
    }
}

/// Returns where to begin among frames: elsewhere for each slot and each attempt.
pub(super) fn base(slot: &Slot, attempt: u32) -> usize {
    let number = slot.id.rsplit('-').next().and_then(|digits| digits.parse::<usize>().ok()).unwrap_or_default();
    let attempt = usize::try_from(attempt).unwrap_or_default();
    (number % 1_000_000) + STEP * (attempt % 1_000_000)
}

#[expect(clippy::cast_precision_loss, reason = "no message has so many words")]
fn shared(left: &BTreeSet<String>, right: &BTreeSet<String>) -> f64 {
    let common = left.intersection(right).count();
    let all = left.len() + right.len() - common;
    if all == 0 { 1.0 } else { common as f64 / all as f64 }
}
