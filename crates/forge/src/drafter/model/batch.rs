//! The state of a batch while a model fills it.

use karat_cases::Case;
use karat_json::text::shorten;
use karat_json::type_name;
use karat_lints::Severity;
use serde_json::Value;

use crate::brief::{Question, RejectedCase};
use crate::{Draft, DraftFinding, Origin, Request, Slot};

use super::CheckDraft;
use super::answer::{Answer, ReturnedCase};

/// Maximum length of a quoted answer in a finding, in characters.
const MAX_SHOWN_ANSWER: usize = 200;

/// Maximum length of a problem that is sent back to the model, in characters.
const MAX_PROBLEM: usize = 2000;

/// Maximum number of unrequested cases that are listed.
const MAX_EXTRA_SHOWN: usize = 3;

pub(super) struct Batch<'r> {
    request: Request<'r>,
    origin: Origin,
    check_draft: CheckDraft,
    states: Vec<SlotState>,
    /// Cases that must not be repeated: first the request's, then the accepted ones of this batch.
    others: Vec<Case>,
    /// The problem with the last answer as a whole.
    problem: Option<String>,
    /// The rejected cases of the last answer.
    rejected: Vec<RejectedCase>,
    /// The messages of unrequested cases.
    extra: Vec<String>,
}

#[derive(Debug, Clone, Default)]
struct SlotState {
    /// The best draft so far.
    draft: Option<Draft>,
    /// The model is not asked about it again.
    is_accepted: bool,
}

impl<'r> Batch<'r> {
    pub(super) fn new(request: Request<'r>, model: String, check_draft: CheckDraft) -> Self {
        Self {
            request,
            origin: Origin::Model(model),
            check_draft,
            states: vec![SlotState::default(); request.slots.len()],
            others: request.other_cases.to_vec(),
            problem: None,
            rejected: Vec::new(),
            extra: Vec::new(),
        }
    }

    /// Returns the slots without an accepted case.
    pub(super) fn open(&self) -> Vec<&'r Slot> {
        let slots = self.request.slots.iter().zip(&self.states);
        slots.filter(|(_, state)| !state.is_accepted).map(|(slot, _)| slot).collect()
    }

    pub(super) fn question<'q>(&'q self, open: &'q [&'q Slot]) -> Question<'q> {
        Question {
            request: self.request,
            slots: open,
            accepted: &self.others[self.request.other_cases.len()..],
            problem: self.problem.as_deref(),
            returned: &self.rejected,
        }
    }

    /// Processes the model's answer for the open slots.
    pub(super) fn accept_answer(&mut self, open: &[&'r Slot], value: &Value, schema: &Value) {
        let answer = match Answer::parse(value, open, schema) {
            Ok(answer) => answer,
            Err(reason) => return self.reject_answer(&reason, &value.to_string()),
        };
        self.problem = None;
        self.extra.extend(answer.extra.iter().map(message_of));
        for (slot, returned) in open.iter().zip(answer.cases) {
            let draft = match returned {
                Some(returned) => self.checked(slot, returned),
                None => self.failed(slot, "the model returned no case for this slot"),
            };
            self.store(draft);
        }
        self.record_rejected();
    }

    /// Rejects an answer that has no cases at all.
    pub(super) fn reject_answer(&mut self, reason: &str, text: &str) {
        let message =
            if text.is_empty() || reason.contains(text) { reason.to_owned() } else { format!("{reason}: {text}") };
        self.problem = Some(shorten(&message, MAX_PROBLEM).into_owned());
        for slot in self.open() {
            let draft = self.failed(slot, &shorten(&message, MAX_SHOWN_ANSWER));
            self.store(draft);
        }
        // The next prompt does not include the rejected answer.
        self.record_rejected();
    }

    /// Ends the batch when a correction could not be requested.
    pub(super) fn give_up(&mut self, reason: &str) {
        let message = format!("the model could not be asked to fix this: {reason}");
        for state in self.states.iter_mut().filter(|state| !state.is_accepted) {
            let findings = state.draft.iter_mut().map(|draft| &mut draft.findings);
            findings.for_each(|findings| findings.push(DraftFinding::warning("", message.clone())));
        }
    }

    /// Returns a draft for each slot, in slot order.
    pub(super) fn into_drafts(mut self) -> Vec<Draft> {
        let extra = self.extra_cases_warning();
        let states = std::mem::take(&mut self.states);
        let drafts = self.request.slots.iter().zip(states);
        let drafts =
            drafts.map(|(slot, state)| state.draft.unwrap_or_else(|| self.failed(slot, "the model was not asked")));
        let mut drafts: Vec<Draft> = drafts.collect();
        self.check_duplicates(&mut drafts);
        if let (Some(extra), Some(last)) = (extra, drafts.last_mut()) {
            last.findings.push(extra);
        }
        drafts
    }

    /// Adds errors that depend on earlier drafts of the batch: of two duplicates, the first is valid.
    fn check_duplicates(&self, drafts: &mut [Draft]) {
        let mut others = self.request.other_cases.to_vec();
        for draft in drafts {
            let Some(value) = &draft.case else { continue };
            for finding in (self.check_draft)(self.request.brief, &draft.slot, value, &others) {
                if finding.severity == Severity::Error && !draft.findings.contains(&finding) {
                    draft.findings.push(finding);
                }
            }
            others.extend(draft.parse_case());
        }
    }

    /// Returns the cases that a draft for this slot must not repeat.
    fn others(&self, slot: &Slot) -> Vec<Case> {
        let slots = self.request.slots.iter().zip(&self.states).take_while(|(before, _)| before.id != slot.id);
        let open =
            slots.filter(|(_, state)| !state.is_accepted).filter_map(|(_, state)| state.draft.as_ref()?.parse_case());
        self.others.iter().cloned().chain(open).collect()
    }

    /// Checks a case and makes it a draft, valid or not.
    fn checked(&self, slot: &Slot, returned: ReturnedCase) -> Draft {
        let ReturnedCase { value, original_id } = returned;
        if !value.is_object() {
            let text = shorten(&value.to_string(), MAX_SHOWN_ANSWER).into_owned();
            return self.failed(slot, &format!("expected a case, found {}: {text}", type_name(&value)));
        }
        let mut findings = (self.check_draft)(self.request.brief, slot, &value, &self.others(slot));
        if let Some(original_id) = original_id {
            let original_id = shorten(&original_id, 80);
            let message = format!("the model returned the id '{original_id}'; matched by position");
            findings.push(DraftFinding::warning("/id", message));
        }
        Draft { slot: slot.clone(), case: Some(value), origin: self.origin.clone(), findings }
    }

    fn failed(&self, slot: &Slot, reason: &str) -> Draft {
        Draft::failed(slot.clone(), self.origin.clone(), reason)
    }

    /// Stores a draft unless its slot has a better one.
    fn store(&mut self, draft: Draft) {
        let Some(index) = self.request.slots.iter().position(|slot| slot.id == draft.slot.id) else { return };
        let state = &mut self.states[index];
        if state.draft.as_ref().is_some_and(|before| quality(before) > quality(&draft)) {
            return;
        }
        state.is_accepted = draft.case.is_some() && !draft.findings.iter().any(DraftFinding::is_retryable);
        if state.is_accepted {
            self.others.extend(draft.parse_case());
        }
        state.draft = Some(draft);
    }

    /// Records what the model needs to correct its last answer.
    fn record_rejected(&mut self) {
        let open = self.states.iter().filter(|state| !state.is_accepted).filter_map(|state| state.draft.as_ref());
        let rejected = open.filter(|draft| draft.case.is_some() || self.problem.is_none()).map(|draft| {
            let reasons = draft.findings.iter().filter(|finding| finding.is_retryable());
            RejectedCase { id: draft.slot.id.clone(), case: draft.case.clone(), reasons: reasons.map(reason).collect() }
        });
        self.rejected = rejected.collect();
    }

    fn extra_cases_warning(&self) -> Option<DraftFinding> {
        let count = self.extra.len();
        let ids: Vec<&str> = self.extra.iter().take(MAX_EXTRA_SHOWN).map(String::as_str).collect();
        let cases = if count == 1 { "1 unrequested case" } else { &format!("{count} unrequested cases") };
        let more = if count > MAX_EXTRA_SHOWN { ", …" } else { "" };
        let message = format!("the model also returned {cases}: {}{more}", ids.join(", "));
        (count > 0).then(|| DraftFinding::warning("", message))
    }
}

/// Ranks drafts: a case is better than none, and one that can be approved is better still.
fn quality(draft: &Draft) -> u8 {
    u8::from(draft.case.is_some()) + u8::from(draft.can_be_approved())
}

fn reason(finding: &DraftFinding) -> String {
    let DraftFinding { pointer, message, .. } = finding;
    if pointer.is_empty() { message.clone() } else { format!("{pointer}: {message}") }
}

fn message_of(case: &Value) -> String {
    let message = case.pointer("/input/message").and_then(Value::as_str);
    let text = message.map_or_else(|| case.to_string(), str::to_owned);
    format!("'{}'", shorten(&text, 80))
}
