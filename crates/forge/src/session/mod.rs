//! The conversation with a person, as data: what was drafted, what was decided, and what comes next.
//!
//! It is a state that is changed by actions and can be kept between two of them. It knows no terminal and no file: the
//! caller shows what [`Session::stage`] says, does what the person wants, and keeps the session after every change.

mod basis;
mod batch;

use std::collections::BTreeSet;

use karat_core::case::{Approval, Case, Difficulty, Tier};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::basis::Basis;
pub use self::batch::{Batch, Decision, Entry, Which};
use crate::slots::numbered;
use crate::{BATCH_SIZE, Brief, Draft, DraftFinding, Drafter, Origin, Plan, Slot};

/// The form that a session is kept in; another one is of another karat.
const FORMAT: u32 = 2;

/// All that is known of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Session {
    format: u32,
    pub tool: String,
    /// What the drafts were made for.
    pub basis: Basis,
    pub triggers: Vec<String>,
    /// Neighbours that a person approved, and that the overlap map may not have yet.
    pub declared: Vec<DeclaredOverlap>,
    pub plan: Plan,
    is_plan_approved: bool,
    batches: Vec<Batch>,
    /// The batch that a person sees.
    at: usize,
    /// The slots without a draft.
    open: Vec<Slot>,
}

/// A tool that a person says is taken for ours, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeclaredOverlap {
    pub tool: String,
    pub reason: Option<String>,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// A person has not said yet that the plan is right.
    ApprovePlan,
    /// Slots of the current batch have no drafts.
    Draft,
    /// A person decides about the current batch.
    Decide,
    /// All of a tier is decided: what was approved is to be written.
    Write(Tier),
    Done,
}

/// Who approves, and when.
#[derive(Debug, Clone, Copy)]
pub struct Approver<'a> {
    pub name: &'a str,
    pub time: &'a str,
}

/// Why an action was not done; a lower-case fragment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(String);

/// Why a kept session cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    #[error("it is of another version of karat")]
    Format,
    #[error("it cannot be read: {0}")]
    Unreadable(String),
}

impl Session {
    /// Begins a conversation about the slots that a drafter can fill; the others stay open.
    pub fn begin(brief: &Brief, plan: Plan, slots: Vec<Slot>, drafter: &dyn Drafter) -> Self {
        let (slots, open) = split(brief, slots, drafter);
        Self {
            format: FORMAT,
            tool: brief.tool.name.clone(),
            basis: Basis::of(brief),
            triggers: brief.triggers.clone(),
            declared: Vec::new(),
            plan,
            is_plan_approved: false,
            batches: batches(slots),
            at: 0,
            open,
        }
    }

    /// Begins a conversation about drafts that are all there, so that it goes on without their drafter; these slots
    /// stay open.
    pub fn begin_with(brief: &Brief, plan: Plan, drafts: &[Draft], open: Vec<Slot>, drafter: &dyn Drafter) -> Self {
        let mut session = Self::begin(brief, plan, Vec::new(), drafter);
        session.batches = batches(drafts.iter().map(|draft| draft.slot.clone()).collect());
        session.open = open;
        for batch in &mut session.batches {
            batch.fill(drafts, drafter.name(), drafter.model().as_deref());
        }
        session
    }

    /// Adds batches for the open slots that a drafter can fill.
    pub fn reopen(&mut self, drafter: &dyn Drafter) {
        let (fillable, open): (Vec<Slot>, Vec<Slot>) =
            std::mem::take(&mut self.open).into_iter().partition(|slot| drafter.can_fill(slot));
        self.open = open;
        self.batches.extend(batches(fillable));
    }

    /// Returns the slots without a draft.
    pub fn open_slots(&self) -> &[Slot] {
        &self.open
    }

    /// Reads a session that was kept.
    pub fn read(text: &str) -> Result<Self, SessionError> {
        let unreadable = |error: serde_json::Error| SessionError::Unreadable(error.to_string());
        let value: Value = serde_json::from_str(text).map_err(unreadable)?;
        if value.get("format").and_then(Value::as_u64).is_some_and(|format| format != u64::from(FORMAT)) {
            return Err(SessionError::Format);
        }
        let session: Self = serde_json::from_value(value).map_err(unreadable)?;
        if session.at > session.batches.len() {
            return Err(SessionError::Unreadable("it is at a batch that is not there".to_owned()));
        }
        Ok(session)
    }

    /// Returns the text that is kept.
    pub fn text(&self) -> String {
        // Maps have text keys only, so that there is nothing that could not be written.
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
        // Golden cases are written before labeled ones are shown.
        if batch.tier == Tier::Labeled && has_unwritten(Tier::Golden) {
            return Stage::Write(Tier::Golden);
        }
        if batch.tier == Tier::Labeled && !self.is_plan_approved {
            return Stage::ApprovePlan;
        }
        if batch.slots_without_draft().is_empty() { Stage::Decide } else { Stage::Draft }
    }

    /// Returns the batch that a person sees.
    pub fn batch(&self) -> Option<&Batch> {
        self.batches.get(self.at)
    }

    pub fn batches(&self) -> &[Batch] {
        &self.batches
    }

    /// Returns the number of the current batch within its tier, from 1, and how many there are.
    pub fn place(&self) -> (usize, usize) {
        let tier = self.batch().map(|batch| batch.tier);
        let is_of = |batch: &&Batch| Some(batch.tier) == tier;
        let before = self.batches.iter().take(self.at).filter(is_of).count();
        (before + 1, self.batches.iter().filter(is_of).count())
    }

    pub fn approve_plan(&mut self) {
        self.is_plan_approved = true;
    }

    /// Puts drafts into the current batch, each into the slot of its id. A slot that a person approved keeps its case;
    /// one for which there is no draft stays open.
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

    /// Approves cases of the current batch, and goes on when all of it is decided. Returns the numbers of those that
    /// cannot be approved.
    pub fn approve(&mut self, which: &Which, approver: Approver<'_>) -> Result<Vec<usize>, Refusal> {
        let is_all = *which == Which::All;
        let was_decided = self.is_decided();
        let batch = self.current()?;
        let mut refused = Vec::new();
        for number in batch.numbers(which)? {
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
            self.go_on();
        }
        Ok(refused)
    }

    /// Leaves cases of the current batch out, and goes on when all of it is decided.
    pub fn leave_out(&mut self, numbers: &[usize]) -> Result<(), Refusal> {
        if numbers.is_empty() {
            return Ok(());
        }
        let was_decided = self.is_decided();
        let batch = self.current()?;
        let numbers = batch.numbers(&Which::Some(numbers.to_vec()))?;
        batch.refuse_written(&numbers)?;
        for number in numbers {
            batch.entries[number - 1].decision = Decision::Dropped;
        }
        if !was_decided {
            self.go_on();
        }
        Ok(())
    }

    /// Puts a case in the place of a draft, as a person wrote it. It is to be decided about anew.
    pub fn replace(&mut self, number: usize, case: Value, findings: Vec<DraftFinding>) -> Result<(), Refusal> {
        let batch = self.current()?;
        let numbers = batch.numbers(&Which::Some(vec![number]))?;
        batch.refuse_written(&numbers)?;
        let entry = &mut batch.entries[number - 1];
        entry.decision = Decision::Undecided;
        entry.draft = Some(Draft { slot: entry.slot.clone(), case: Some(case), origin: Origin::Person, findings });
        Ok(())
    }

    /// Changes an undecided draft; the closure returns its new findings.
    pub fn amend(&mut self, id: &str, change: impl FnOnce(&mut Value) -> Vec<DraftFinding>) {
        let mut entries = self.batches.iter_mut().flat_map(|batch| &mut batch.entries);
        let entry = entries.find(|entry| entry.slot.id == id && entry.is_undecided());
        if let Some(draft) = entry.and_then(|entry| entry.draft.as_mut())
            && let Some(case) = &mut draft.case
        {
            draft.findings = change(case);
        }
    }

    /// Returns an entry of the current batch by its number, if it can still be changed.
    pub fn editable(&self, number: usize) -> Result<&Entry, Refusal> {
        let batch = self.batch().ok_or_else(|| Refusal("there is no batch".to_owned()))?;
        let numbers = batch.numbers(&Which::Some(vec![number]))?;
        batch.refuse_written(&numbers)?;
        Ok(&batch.entries[number - 1])
    }

    /// Returns the entries of the current batch that are to be drafted anew: never one that is approved.
    pub fn redraftable(&self, which: &Which) -> Result<Vec<&Entry>, Refusal> {
        let batch = self.batch().ok_or_else(|| Refusal("there is no batch".to_owned()))?;
        let numbers = batch.numbers(which)?;
        let entry = |number: &usize| &batch.entries[number - 1];
        if let Some(number) = numbers.iter().find(|number| *which != Which::All && entry(number).is_approved()) {
            return Err(Refusal(format!("case {number} is approved: drop it first (d {number})")));
        }
        let open: Vec<&Entry> =
            numbers.iter().map(entry).filter(|entry| *which != Which::All || entry.is_undecided()).collect();
        if open.is_empty() { Err(Refusal("all cases of this batch are decided".to_owned())) } else { Ok(open) }
    }

    /// Goes back to the batch before.
    pub fn back(&mut self) -> Result<(), Refusal> {
        self.at = self.at.checked_sub(1).ok_or_else(|| Refusal("this is the first batch".to_owned()))?;
        Ok(())
    }

    /// Goes to the next batch, when everything in this one is decided.
    pub fn forward(&mut self) -> Result<(), Refusal> {
        let open = self.current()?.open_numbers();
        if !open.is_empty() {
            let list: Vec<String> = open.iter().map(usize::to_string).collect();
            return Err(Refusal(format!("not decided yet: {}", list.join(", "))));
        }
        self.at += 1;
        Ok(())
    }

    /// Returns the cases of a tier that are approved and not written, in the order of the plan.
    pub fn unwritten(&self, tier: Tier) -> Vec<&Value> {
        self.unwritten_entries(tier).filter_map(|entry| entry.draft.as_ref()?.case.as_ref()).collect()
    }

    /// Returns the drafts of a tier that were left out.
    pub fn left_out(&self, tier: Tier) -> impl Iterator<Item = &Entry> {
        self.entries(tier).filter(|entry| entry.decision == Decision::Dropped)
    }

    /// Returns who approved which unwritten cases of a tier: one approval for each person, time and drafter.
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

    /// Notes that the approved cases of a tier are in their file.
    pub fn wrote(&mut self, tier: Tier) {
        let batches = self.batches.iter_mut().filter(|batch| batch.tier == tier);
        let approved = batches.flat_map(|batch| &mut batch.entries).filter(|entry| entry.is_approved());
        approved.for_each(|entry| entry.is_written = true);
    }

    /// Returns all other cases of the tool, which a draft for one of these slots must not repeat.
    pub fn others(&self, brief: &Brief, slots: &[Slot]) -> Vec<Case> {
        let own: BTreeSet<&str> = slots.iter().map(|slot| slot.id.as_str()).collect();
        let existing = brief.existing().filter(|case| !own.contains(case.id.as_str())).cloned();
        let mut cases: Vec<Case> = existing.collect();
        let mut seen: BTreeSet<String> = cases.iter().map(|case| case.id.clone()).collect();
        let entries = self.batches.iter().flat_map(|batch| &batch.entries);
        let entries = entries.filter(|entry| entry.decision != Decision::Dropped);
        for case in entries
            .filter(|entry| !own.contains(entry.slot.id.as_str()))
            .filter_map(|entry| entry.draft.as_ref()?.read())
        {
            if seen.insert(case.id.clone()) {
                cases.push(case);
            }
        }
        cases
    }

    /// Returns how many cases were approved so far.
    pub fn approved_count(&self) -> usize {
        self.batches.iter().flat_map(|batch| &batch.entries).filter(|entry| entry.is_approved()).count()
    }

    /// Returns how many cases are approved and not written.
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

    fn current(&mut self) -> Result<&mut Batch, Refusal> {
        self.batches.get_mut(self.at).ok_or_else(|| Refusal("there is no batch".to_owned()))
    }

    /// Goes to the next batch in which something is to be decided, if nothing is in this one.
    fn go_on(&mut self) {
        if self.is_decided() {
            let open = |batch: &Batch| !batch.open_numbers().is_empty();
            let next = self.batches.iter().skip(self.at).position(open);
            self.at = next.map_or(self.batches.len(), |next| self.at + next);
        }
    }
}

/// Splits slots into those that a drafter can fill and the others. Ids follow each other, the fillable ones first.
fn split(brief: &Brief, slots: Vec<Slot>, drafter: &dyn Drafter) -> (Vec<Slot>, Vec<Slot>) {
    let (fillable, open): (Vec<Slot>, Vec<Slot>) = slots.into_iter().partition(|slot| drafter.can_fill(slot));
    let mut numbered_slots = (Vec::new(), Vec::new());
    for tier in [Tier::Golden, Tier::Labeled] {
        let of_tier = |slots: &[Slot]| {
            let purposes = slots.iter().map(|slot| slot.purpose.clone());
            purposes.filter(|purpose| purpose.tier() == tier).collect::<Vec<_>>()
        };
        let (mut purposes, rest) = (of_tier(&fillable), of_tier(&open));
        let count = purposes.len();
        purposes.extend(rest);
        let mut slots = numbered(brief, tier, purposes);
        let rest = slots.split_off(count);
        numbered_slots.0.extend(slots);
        numbered_slots.1.extend(rest);
    }
    numbered_slots
}

/// Makes batches: all golden cases, then labeled ones of one difficulty each.
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
