//! The state of a drafting session: what was drafted, what was decided, and what comes next.
//!
//! The state is changed by actions and can be saved between them. It does no I/O: the caller shows the current
//! [`Session::stage`], performs the user's actions, and saves the session after every change.

mod basis;
mod batch;

use std::collections::BTreeSet;

use karat_cases::{Approval, Case, Difficulty, Tier};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::basis::Basis;
pub use self::batch::{Batch, CaseSelection, Decision, Entry};
use crate::slots::assign_ids;
use crate::{BATCH_SIZE, Brief, Draft, DraftFinding, Drafter, Origin, Plan, Slot};

/// The version of the session format.
const FORMAT: u32 = 2;

/// A drafting session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Session {
    format: u32,
    pub tool: String,
    /// The inputs of the drafts.
    pub basis: Basis,
    pub triggers: Vec<String>,
    /// Overlaps that a person approved and that may be missing from the overlap map.
    pub declared: Vec<DeclaredOverlap>,
    pub plan: Plan,
    is_plan_approved: bool,
    batches: Vec<Batch>,
    /// The index of the current batch.
    at: usize,
    /// Slots without a draft.
    open: Vec<Slot>,
    /// Whether drafts are run against the agent before they are decided.
    #[serde(default)]
    pub verify: bool,
}

/// An overlapping tool that a person declared, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeclaredOverlap {
    pub tool: String,
    pub reason: Option<String>,
}

/// The next step of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The plan has to be approved.
    ApprovePlan,
    /// The current batch has slots without drafts.
    Draft,
    /// The current batch has to be decided.
    Decide,
    /// A tier is decided, and its approved cases have to be written.
    Write(Tier),
    Done,
}

/// The person who approves, and the time.
#[derive(Debug, Clone, Copy)]
pub struct Approver<'a> {
    pub name: &'a str,
    pub time: &'a str,
}

/// The reason why an action is not possible, as a lower-case fragment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidAction(String);

/// The reason why a saved session cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    #[error("written by another version of karat")]
    Format,
    #[error("invalid session: {0}")]
    Invalid(String),
}

impl Session {
    /// Creates a session for the slots that a drafter can fill; the others stay open.
    pub fn new(brief: &Brief, plan: Plan, slots: Vec<Slot>, drafter: &dyn Drafter) -> Self {
        let (slots, open) = split(brief, slots, drafter);
        Self {
            format: FORMAT,
            tool: brief.tool.name.clone(),
            basis: Basis::new(brief),
            triggers: brief.triggers.clone(),
            declared: Vec::new(),
            plan,
            is_plan_approved: false,
            batches: batches(slots),
            at: 0,
            open,
            verify: false,
        }
    }

    /// Creates a session from finished drafts; the slots in `open` stay open.
    pub fn with_drafts(brief: &Brief, plan: Plan, drafts: &[Draft], open: Vec<Slot>, drafter: &dyn Drafter) -> Self {
        let mut session = Self::new(brief, plan, Vec::new(), drafter);
        session.batches = batches(drafts.iter().map(|draft| draft.slot.clone()).collect());
        session.open = open;
        for batch in &mut session.batches {
            batch.fill(drafts, drafter.name(), drafter.model().as_deref());
        }
        session
    }

    /// Adds batches for the open slots that a drafter can fill.
    pub fn batch_open_slots(&mut self, drafter: &dyn Drafter) {
        let (fillable, open): (Vec<Slot>, Vec<Slot>) =
            std::mem::take(&mut self.open).into_iter().partition(|slot| drafter.can_fill(slot));
        self.open = open;
        self.batches.extend(batches(fillable));
    }

    /// Returns the slots without a draft.
    pub fn open_slots(&self) -> &[Slot] {
        &self.open
    }

    /// Parses a saved session.
    pub fn read(text: &str) -> Result<Self, SessionError> {
        let invalid = |error: serde_json::Error| SessionError::Invalid(error.to_string());
        let value: Value = serde_json::from_str(text).map_err(invalid)?;
        if value.get("format").and_then(Value::as_u64).is_some_and(|format| format != u64::from(FORMAT)) {
            return Err(SessionError::Format);
        }
        let session: Self = serde_json::from_value(value).map_err(invalid)?;
        if session.at > session.batches.len() {
            return Err(SessionError::Invalid("'at' is out of range".to_owned()));
        }
        Ok(session)
    }

    /// Returns the session as JSON, for saving.
    pub fn to_json(&self) -> String {
        // All maps have string keys, so serialization cannot fail.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    pub fn stage(&self) -> Stage {
        let has_unwritten = |tier: Tier| self.unwritten_entries(tier).next().is_some();
        let Some(batch) = self.batches.get(self.at) else {
            let unwritten = [Tier::Golden, Tier::Labeled].into_iter().find(|tier| has_unwritten(*tier));
            return unwritten.map_or(Stage::Done, Stage::Write);
        };
        // Golden cases are written before labeled cases are shown.
        if batch.tier == Tier::Labeled && has_unwritten(Tier::Golden) {
            return Stage::Write(Tier::Golden);
        }
        if batch.tier == Tier::Labeled && !self.is_plan_approved {
            return Stage::ApprovePlan;
        }
        if batch.slots_without_draft().is_empty() { Stage::Decide } else { Stage::Draft }
    }

    /// Returns the current batch.
    pub fn batch(&self) -> Option<&Batch> {
        self.batches.get(self.at)
    }

    pub fn batches(&self) -> &[Batch] {
        &self.batches
    }

    /// Returns the number of the current batch within its tier, from 1, and the tier's number of batches.
    pub fn position(&self) -> (usize, usize) {
        let tier = self.batch().map(|batch| batch.tier);
        let has_tier = |batch: &&Batch| Some(batch.tier) == tier;
        let before = self.batches.iter().take(self.at).filter(has_tier).count();
        (before + 1, self.batches.iter().filter(has_tier).count())
    }

    pub fn approve_plan(&mut self) {
        self.is_plan_approved = true;
    }

    /// Puts drafts into the slots of the current batch. Approved slots keep their case; slots without a draft stay
    /// open.
    pub fn fill(&mut self, drafts: &[Draft], drafter: &str, model: Option<&str>) {
        let Some(batch) = self.batches.get_mut(self.at) else { return };
        batch.fill(drafts, drafter, model);
        let is_open = |entry: &Entry| entry.is_undecided() && entry.draft.is_none();
        self.open.extend(batch.entries.iter().filter(|entry| is_open(entry)).map(|entry| entry.slot.clone()));
        batch.entries.retain(|entry| !is_open(entry));
        if batch.entries.is_empty() {
            self.batches.remove(self.at);
        }
    }

    /// Approves cases of the current batch, and advances once all are decided. Returns the numbers of cases that cannot
    /// be approved.
    pub fn approve(&mut self, selection: &CaseSelection, approver: Approver<'_>) -> Result<Vec<usize>, InvalidAction> {
        let is_all = *selection == CaseSelection::All;
        let was_decided = self.is_decided();
        let batch = self.current()?;
        let mut refused = Vec::new();
        for number in batch.numbers(selection)? {
            let entry = &mut batch.entries[number - 1];
            let is_open = entry.decision == Decision::Undecided || (!is_all && entry.decision == Decision::Dropped);
            if !is_open {
                continue;
            }
            if entry.draft.as_ref().is_some_and(Draft::can_be_approved) {
                entry.decision = Decision::Approved { by: approver.name.to_owned(), at: approver.time.to_owned() };
            } else {
                refused.push(number);
            }
        }
        if is_all || !was_decided {
            self.advance();
        }
        Ok(refused)
    }

    /// Drops cases of the current batch, and advances once all are decided.
    pub fn drop_cases(&mut self, numbers: &[usize]) -> Result<(), InvalidAction> {
        if numbers.is_empty() {
            return Ok(());
        }
        let was_decided = self.is_decided();
        let batch = self.current()?;
        let numbers = batch.numbers(&CaseSelection::Some(numbers.to_vec()))?;
        batch.ensure_unwritten(&numbers)?;
        for number in numbers {
            batch.entries[number - 1].decision = Decision::Dropped;
        }
        if !was_decided {
            self.advance();
        }
        Ok(())
    }

    /// Replaces a draft with an edited case, which is undecided again.
    pub fn replace(&mut self, number: usize, case: Value, findings: Vec<DraftFinding>) -> Result<(), InvalidAction> {
        let batch = self.current()?;
        let numbers = batch.numbers(&CaseSelection::Some(vec![number]))?;
        batch.ensure_unwritten(&numbers)?;
        let entry = &mut batch.entries[number - 1];
        entry.decision = Decision::Undecided;
        entry.draft = Some(Draft { slot: entry.slot.clone(), case: Some(case), origin: Origin::Person, findings });
        Ok(())
    }

    /// Changes an undecided draft; the closure returns its new findings.
    pub fn update_draft(&mut self, id: &str, change: impl FnOnce(&mut Value) -> Vec<DraftFinding>) {
        let mut entries = self.batches.iter_mut().flat_map(|batch| &mut batch.entries);
        let entry = entries.find(|entry| entry.slot.id == id && entry.is_undecided());
        if let Some(draft) = entry.and_then(|entry| entry.draft.as_mut())
            && let Some(case) = &mut draft.case
        {
            draft.findings = change(case);
        }
    }

    /// Returns an entry of the current batch by its number, if it can still be changed.
    pub fn editable(&self, number: usize) -> Result<&Entry, InvalidAction> {
        let batch = self.batch().ok_or_else(|| InvalidAction("no current batch".to_owned()))?;
        let numbers = batch.numbers(&CaseSelection::Some(vec![number]))?;
        batch.ensure_unwritten(&numbers)?;
        Ok(&batch.entries[number - 1])
    }

    /// Returns the entries of the current batch to draft again, never an approved one.
    pub fn redraftable(&self, selection: &CaseSelection) -> Result<Vec<&Entry>, InvalidAction> {
        let batch = self.batch().ok_or_else(|| InvalidAction("no current batch".to_owned()))?;
        let numbers = batch.numbers(selection)?;
        let entry = |number: &usize| &batch.entries[number - 1];
        if let Some(number) =
            numbers.iter().find(|number| *selection != CaseSelection::All && entry(number).is_approved())
        {
            return Err(InvalidAction(format!("case {number} is approved: drop it first (d {number})")));
        }
        let open: Vec<&Entry> = numbers
            .iter()
            .map(entry)
            .filter(|entry| *selection != CaseSelection::All || entry.is_undecided())
            .collect();
        if open.is_empty() { Err(InvalidAction("all cases of this batch are decided".to_owned())) } else { Ok(open) }
    }

    /// Goes to the previous batch.
    pub fn back(&mut self) -> Result<(), InvalidAction> {
        self.at = self.at.checked_sub(1).ok_or_else(|| InvalidAction("this is the first batch".to_owned()))?;
        Ok(())
    }

    /// Goes to the next batch if all cases of this one are decided.
    pub fn forward(&mut self) -> Result<(), InvalidAction> {
        let open = self.current()?.open_numbers();
        if !open.is_empty() {
            let list: Vec<String> = open.iter().map(usize::to_string).collect();
            return Err(InvalidAction(format!("not decided yet: {}", list.join(", "))));
        }
        self.at += 1;
        Ok(())
    }

    /// Returns the approved but unwritten cases of a tier, in plan order.
    pub fn unwritten(&self, tier: Tier) -> Vec<&Value> {
        self.unwritten_entries(tier).filter_map(|entry| entry.draft.as_ref()?.case.as_ref()).collect()
    }

    /// Returns the dropped entries of a tier.
    pub fn dropped(&self, tier: Tier) -> impl Iterator<Item = &Entry> {
        self.entries(tier).filter(|entry| entry.decision == Decision::Dropped)
    }

    /// Returns the approvals of the unwritten cases of a tier, grouped by person, time and drafter.
    pub fn approvals(&self, tier: Tier) -> Vec<Approval> {
        let mut approvals: Vec<Approval> = Vec::new();
        for entry in self.unwritten_entries(tier) {
            let Decision::Approved { by, at } = &entry.decision else { continue };
            let is_same = |approval: &&mut Approval| {
                (&approval.approved_by, &approval.approved_at, &approval.drafter, &approval.model)
                    == (by, at, &entry.drafter, &entry.model)
            };
            match approvals.iter_mut().find(is_same) {
                Some(approval) => approval.cases.push(entry.slot.id.clone()),
                None => approvals.push(Approval {
                    approved_by: by.clone(),
                    approved_at: at.clone(),
                    drafter: entry.drafter.clone(),
                    model: entry.model.clone(),
                    cases: vec![entry.slot.id.clone()],
                }),
            }
        }
        approvals
    }

    /// Marks the approved cases of a tier as written.
    pub fn mark_written(&mut self, tier: Tier) {
        let batches = self.batches.iter_mut().filter(|batch| batch.tier == tier);
        let approved = batches.flat_map(|batch| &mut batch.entries).filter(|entry| entry.is_approved());
        approved.for_each(|entry| entry.is_written = true);
    }

    /// Returns all cases of the tool that a draft for one of these slots must not repeat.
    pub fn others(&self, brief: &Brief, slots: &[Slot]) -> Vec<Case> {
        let own: BTreeSet<&str> = slots.iter().map(|slot| slot.id.as_str()).collect();
        let existing = brief.existing().filter(|case| !own.contains(case.id.as_str())).cloned();
        let mut cases: Vec<Case> = existing.collect();
        let mut seen: BTreeSet<String> = cases.iter().map(|case| case.id.clone()).collect();
        let entries = self.batches.iter().flat_map(|batch| &batch.entries);
        let entries = entries.filter(|entry| entry.decision != Decision::Dropped);
        for case in entries
            .filter(|entry| !own.contains(entry.slot.id.as_str()))
            .filter_map(|entry| entry.draft.as_ref()?.parse_case())
        {
            if seen.insert(case.id.clone()) {
                cases.push(case);
            }
        }
        cases
    }

    /// Returns the number of approved cases.
    pub fn approved_count(&self) -> usize {
        self.batches.iter().flat_map(|batch| &batch.entries).filter(|entry| entry.is_approved()).count()
    }

    /// Returns the number of approved but unwritten cases.
    pub fn unwritten_count(&self) -> usize {
        [Tier::Golden, Tier::Labeled].into_iter().map(|tier| self.unwritten_entries(tier).count()).sum()
    }

    fn entries(&self, tier: Tier) -> impl Iterator<Item = &Entry> {
        self.batches.iter().filter(move |batch| batch.tier == tier).flat_map(|batch| &batch.entries)
    }

    fn unwritten_entries(&self, tier: Tier) -> impl Iterator<Item = &Entry> {
        self.entries(tier).filter(|entry| entry.is_approved() && !entry.is_written)
    }

    fn is_decided(&self) -> bool {
        self.batch().is_some_and(|batch| batch.open_numbers().is_empty())
    }

    fn current(&mut self) -> Result<&mut Batch, InvalidAction> {
        self.batches.get_mut(self.at).ok_or_else(|| InvalidAction("no current batch".to_owned()))
    }

    /// Goes to the next batch with undecided cases, if this one has none.
    fn advance(&mut self) {
        if self.is_decided() {
            let open = |batch: &Batch| !batch.open_numbers().is_empty();
            let next = self.batches.iter().skip(self.at).position(open);
            self.at = next.map_or(self.batches.len(), |next| self.at + next);
        }
    }
}

/// Splits slots into those that a drafter can fill and the others, and renumbers them in this order.
fn split(brief: &Brief, slots: Vec<Slot>, drafter: &dyn Drafter) -> (Vec<Slot>, Vec<Slot>) {
    let (fillable, open): (Vec<Slot>, Vec<Slot>) = slots.into_iter().partition(|slot| drafter.can_fill(slot));
    let mut split_slots = (Vec::new(), Vec::new());
    for tier in [Tier::Golden, Tier::Labeled] {
        let of_tier = |slots: &[Slot]| {
            let purposes = slots.iter().map(|slot| slot.purpose.clone());
            purposes.filter(|purpose| purpose.tier() == tier).collect::<Vec<_>>()
        };
        let (mut purposes, rest) = (of_tier(&fillable), of_tier(&open));
        let count = purposes.len();
        purposes.extend(rest);
        let mut slots = assign_ids(brief, tier, purposes);
        let rest = slots.split_off(count);
        split_slots.0.extend(slots);
        split_slots.1.extend(rest);
    }
    split_slots
}

/// Creates one batch of all golden cases, then batches of labeled cases of one difficulty each.
fn batches(slots: Vec<Slot>) -> Vec<Batch> {
    let (golden, labeled): (Vec<Slot>, Vec<Slot>) =
        slots.into_iter().partition(|slot| slot.purpose.tier() == Tier::Golden);
    let mut batches = Vec::new();
    if !golden.is_empty() {
        batches.push(Batch::new(Tier::Golden, golden));
    }
    for difficulty in Difficulty::ALL {
        let of_difficulty = labeled.iter().filter(|slot| slot.purpose.difficulty() == Some(difficulty)).cloned();
        let of_difficulty: Vec<Slot> = of_difficulty.collect();
        batches.extend(of_difficulty.chunks(BATCH_SIZE).map(|slots| Batch::new(Tier::Labeled, slots.to_vec())));
    }
    batches
}

#[cfg(test)]
mod tests;
