//! A batch of drafts and the decisions about them.

use karat_cases::{Difficulty, Tier};
use serde::{Deserialize, Serialize};

use super::InvalidAction;
use crate::{Draft, Origin, Slot};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Batch {
    pub tier: Tier,
    pub entries: Vec<Entry>,
}

/// A slot of a batch with its draft and decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    pub slot: Slot,
    pub draft: Option<Draft>,
    pub decision: Decision,
    /// The number of drafts so far.
    pub attempts: u32,
    /// The name of the drafter.
    pub drafter: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The case is approved and written to the tool's file.
    pub is_written: bool,
}

/// A person's decision about a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Decision {
    Undecided,
    Approved { by: String, at: String },
    Dropped,
}

/// A selection of cases of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CaseSelection {
    /// All undecided cases.
    All,
    /// Case numbers, from 1.
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

    /// Puts drafts into their slots, except those already approved.
    pub(super) fn fill(&mut self, drafts: &[Draft], drafter: &str, model: Option<&str>) {
        for draft in drafts {
            let entry = self.entries.iter_mut().find(|entry| entry.slot.id == draft.slot.id);
            if let Some(entry) = entry.filter(|entry| !entry.is_approved()) {
                entry.attempts += 1;
                entry.decision = Decision::Undecided;
                // A drafter can delegate to another one.
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

    /// Returns the difficulty of the cases; golden cases have none.
    pub fn difficulty(&self) -> Option<Difficulty> {
        self.entries.iter().find_map(|entry| entry.slot.purpose.difficulty())
    }

    /// Returns the undecided slots without a draft.
    pub fn slots_without_draft(&self) -> Vec<Slot> {
        let open = self.entries.iter().filter(|entry| entry.is_undecided() && entry.draft.is_none());
        open.map(|entry| entry.slot.clone()).collect()
    }

    /// Returns the numbers, from 1, of undecided cases.
    pub fn open_numbers(&self) -> Vec<usize> {
        let open = self.entries.iter().enumerate().filter(|(_, entry)| entry.is_undecided());
        open.map(|(index, _)| index + 1).collect()
    }

    /// Fails if one of the cases is already written.
    pub(super) fn ensure_unwritten(&self, numbers: &[usize]) -> Result<(), InvalidAction> {
        match numbers.iter().find(|number| self.entries[**number - 1].is_written) {
            Some(number) => Err(InvalidAction(format!("case {number} is already written: edit the file"))),
            None => Ok(()),
        }
    }

    /// Returns the selected numbers, or an error for an unknown number.
    pub(super) fn numbers(&self, selection: &CaseSelection) -> Result<Vec<usize>, InvalidAction> {
        let count = self.entries.len();
        match selection {
            CaseSelection::All => Ok((1..=count).collect()),
            CaseSelection::Some(numbers) => match numbers.iter().find(|number| !(1..=count).contains(*number)) {
                Some(number) => Err(InvalidAction(format!("no case {number}: expected 1 to {count}"))),
                None => Ok(numbers.clone()),
            },
        }
    }
}
