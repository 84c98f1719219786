//! Cases that a person sees at once, and what was decided about each.

use karat_core::case::{Difficulty, Tier};
use serde::{Deserialize, Serialize};

use super::Refusal;
use crate::{Draft, Origin, Slot};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Batch {
    pub tier: Tier,
    pub entries: Vec<Entry>,
}

/// A place for a case, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    pub slot: Slot,
    pub draft: Option<Draft>,
    pub decision: Decision,
    /// How often it was drafted.
    pub attempts: u32,
    /// What drafted it.
    pub drafter: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The case is approved and in the tool's file.
    pub is_written: bool,
}

/// What a person says of a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Decision {
    Undecided,
    Approved { by: String, at: String },
    Dropped,
}

/// Which cases of a batch are meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Which {
    /// All that are not decided.
    All,
    /// By their numbers, from 1.
    Some(Vec<usize>),
}

impl Entry {
    fn new(slot: Slot) -> Self {
        Self {
            slot,
            draft: None,
            decision: Decision::Undecided,
            attempts: 0,
            drafter: String::new(),
            model: None,
            is_written: false,
        }
    }

    pub fn is_approved(&self) -> bool {
        matches!(self.decision, Decision::Approved { .. })
    }

    pub fn is_undecided(&self) -> bool {
        self.decision == Decision::Undecided
    }
}

impl Batch {
    pub(super) fn new(tier: Tier, slots: Vec<Slot>) -> Self {
        Self { tier, entries: slots.into_iter().map(Entry::new).collect() }
    }

    /// Puts drafts into their slots, but not into those that a person approved.
    pub(super) fn fill(&mut self, drafts: &[Draft], drafter: &str, model: Option<&str>) {
        for draft in drafts {
            let entry = self.entries.iter_mut().find(|entry| entry.slot.id == draft.slot.id);
            if let Some(entry) = entry.filter(|entry| !entry.is_approved()) {
                entry.attempts += 1;
                entry.decision = Decision::Undecided;
                // One drafter can hand a place on to another.
                let (drafter, model) = match &draft.origin {
                    Origin::Template => ("template", None),
                    Origin::Model(model) => ("model", Some(model.as_str())),
                    Origin::Trace(_) => ("traces", None),
                    Origin::File(_) => ("file", None),
                    Origin::Person => (drafter, model),
                };
                drafter.clone_into(&mut entry.drafter);
                entry.model = model.map(str::to_owned);
                entry.draft = Some(draft.clone());
            }
        }
    }

    /// Returns how hard its cases are; golden ones have no difficulty.
    pub fn difficulty(&self) -> Option<Difficulty> {
        self.entries.iter().find_map(|entry| entry.slot.purpose.difficulty())
    }

    /// Returns the slots that nobody has drafted a case for.
    pub fn slots_without_draft(&self) -> Vec<Slot> {
        let open = self.entries.iter().filter(|entry| entry.is_undecided() && entry.draft.is_none());
        open.map(|entry| entry.slot.clone()).collect()
    }

    /// Returns the numbers, from 1, of what is not decided.
    pub fn open_numbers(&self) -> Vec<usize> {
        let open = self.entries.iter().enumerate().filter(|(_, entry)| entry.is_undecided());
        open.map(|(place, _)| place + 1).collect()
    }

    /// Refuses to change cases that are in their file.
    pub(super) fn refuse_written(&self, numbers: &[usize]) -> Result<(), Refusal> {
        match numbers.iter().find(|number| self.entries[**number - 1].is_written) {
            Some(number) => Err(Refusal(format!("case {number} is written: edit the file itself"))),
            None => Ok(()),
        }
    }

    /// Returns the numbers that are meant, or says which of them is none.
    pub(super) fn numbers(&self, which: &Which) -> Result<Vec<usize>, Refusal> {
        let count = self.entries.len();
        match which {
            Which::All => Ok((1..=count).collect()),
            Which::Some(numbers) => match numbers.iter().find(|number| !(1..=count).contains(*number)) {
                Some(number) => Err(Refusal(format!("there is no case {number}: they are 1 to {count}"))),
                None => Ok(numbers.clone()),
            },
        }
    }
}
