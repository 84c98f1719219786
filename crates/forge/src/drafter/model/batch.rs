//! A batch while a model fills it.

use karat_core::case::Case;
use karat_core::lint::Severity;
use karat_json::text::shorten;
use karat_json::type_name;
use serde_json::Value;

use crate::brief::{Question, Returned};
use crate::{Draft, DraftFinding, Origin, Request, Slot};

use super::Examine;
use super::answer::{Answer, AnsweredCase};

/// How much of what a model said a person is shown.
const MAX_SHOWN_ANSWER: usize = 200;

/// How much of it the model is told.
const MAX_PROBLEM: usize = 2000;

/// How many cases that nobody asked for are shown.
const MAX_EXTRA_SHOWN: usize = 3;

pub(super) struct Batch<'r> {
    request: Request<'r>,
    origin: Origin,
    examine: Examine,
    /// For each slot of the request, the best that was returned so far.
    places: Vec<Place>,
    /// All cases that must not be repeated: the first are the request's, the rest hold in this batch.
    others: Vec<Case>,
    /// What was wrong with the last answer as a whole.
    problem: Option<String>,
    /// What did not hold of the last answer.
    returned: Vec<Returned>,
    /// The messages of cases that nobody asked for.
    extra: Vec<String>,
}

#[derive(Debug, Clone, Default)]
struct Place {
    draft: Option<Draft>,
    /// Nothing more is to be asked of it.
    holds: bool,
}

impl<'r> Batch<'r> {
    pub(super) fn new(request: Request<'r>, model: String, examine: Examine) -> Self {
        Self {
            request,
            origin: Origin::Model(model),
            examine,
            places: vec![Place::default(); request.slots.len()],
            others: request.so_far.to_vec(),
            problem: None,
            returned: Vec::new(),
            extra: Vec::new(),
        }
    }

    /// Returns the slots for which there is no case that holds.
    pub(super) fn open(&self) -> Vec<&'r Slot> {
        let slots = self.request.slots.iter().zip(&self.places);
        slots.filter(|(_, place)| !place.holds).map(|(slot, _)| slot).collect()
    }

    pub(super) fn question<'q>(&'q self, open: &'q [&'q Slot]) -> Question<'q> {
        Question {
            request: self.request,
            slots: open,
            kept: &self.others[self.request.so_far.len()..],
            problem: self.problem.as_deref(),
            returned: &self.returned,
        }
    }

    /// Takes what a model answered for the open slots.
    pub(super) fn take(&mut self, open: &[&'r Slot], value: &Value, schema: &Value) {
        let answer = match Answer::read(value, open, schema) {
            Ok(answer) => answer,
            Err(why) => return self.refuse(&why, &value.to_string()),
        };
        self.problem = None;
        self.extra.extend(answer.extra.iter().map(message_of));
        for (slot, answered) in open.iter().zip(answer.cases) {
            let draft = match answered {
                Some(answered) => self.examined(slot, answered),
                None => self.failed(slot, "the model returned no case for this place"),
            };
            self.place(draft);
        }
        self.remember();
    }

    /// Takes an answer that holds no cases at all.
    pub(super) fn refuse(&mut self, why: &str, said: &str) {
        let whole = if said.is_empty() || why.contains(said) { why.to_owned() } else { format!("{why}: {said}") };
        self.problem = Some(shorten(&whole, MAX_PROBLEM).into_owned());
        for slot in self.open() {
            let draft = self.failed(slot, &shorten(&whole, MAX_SHOWN_ANSWER));
            self.place(draft);
        }
        // The model has nothing of it before itself any more.
        self.remember();
    }

    /// Ends without an answer to what was asked again.
    pub(super) fn give_up(&mut self, why: &str) {
        let message = format!("the model could not be asked to fix this: {why}");
        for place in self.places.iter_mut().filter(|place| !place.holds) {
            let findings = place.draft.iter_mut().map(|draft| &mut draft.findings);
            findings.for_each(|findings| findings.push(DraftFinding::warning("", message.clone())));
        }
    }

    /// Returns a draft for each slot, in their order.
    pub(super) fn into_drafts(mut self) -> Vec<Draft> {
        let extra = self.said_extra();
        let places = std::mem::take(&mut self.places);
        let drafts = self.request.slots.iter().zip(places);
        let drafts = drafts.map(|(slot, place)| place.draft.unwrap_or_else(|| self.failed(slot, "nobody was asked")));
        let mut drafts: Vec<Draft> = drafts.collect();
        self.compare(&mut drafts);
        if let (Some(extra), Some(last)) = (extra, drafts.last_mut()) {
            last.findings.push(extra);
        }
        drafts
    }

    /// Finds what is wrong with drafts beside the others of their batch: of two that are alike, the first is kept.
    fn compare(&self, drafts: &mut [Draft]) {
        let mut others = self.request.so_far.to_vec();
        for draft in drafts {
            let Some(value) = &draft.case else { continue };
            for found in (self.examine)(self.request.brief, &draft.slot, value, &others) {
                if found.severity == Severity::Error && !draft.findings.contains(&found) {
                    draft.findings.push(found);
                }
            }
            others.extend(draft.read());
        }
    }

    /// Returns the cases that one for this place must not repeat.
    fn others(&self, slot: &Slot) -> Vec<Case> {
        let slots = self.request.slots.iter().zip(&self.places).take_while(|(before, _)| before.id != slot.id);
        let open = slots.filter(|(_, place)| !place.holds).filter_map(|(_, place)| place.draft.as_ref()?.read());
        self.others.iter().cloned().chain(open).collect()
    }

    /// Examines a case; one that does not hold is a draft too.
    fn examined(&self, slot: &Slot, answered: AnsweredCase) -> Draft {
        let AnsweredCase { value, other_id } = answered;
        if !value.is_object() {
            let said = shorten(&value.to_string(), MAX_SHOWN_ANSWER).into_owned();
            return self.failed(slot, &format!("the model returned {} in place of a case: {said}", type_name(&value)));
        }
        let mut findings = (self.examine)(self.request.brief, slot, &value, &self.others(slot));
        if let Some(other_id) = other_id {
            let other_id = shorten(&other_id, 80);
            let message = format!("the model called it '{other_id}'; it is taken by its place in the answer");
            findings.push(DraftFinding::warning("/id", message));
        }
        Draft { slot: slot.clone(), case: Some(value), origin: self.origin.clone(), findings }
    }

    fn failed(&self, slot: &Slot, why: &str) -> Draft {
        Draft::failed(slot.clone(), self.origin.clone(), why)
    }

    /// Puts a draft into its place, unless a better one is there.
    fn place(&mut self, draft: Draft) {
        let Some(index) = self.request.slots.iter().position(|slot| slot.id == draft.slot.id) else { return };
        let place = &mut self.places[index];
        if place.draft.as_ref().is_some_and(|before| worth(before) > worth(&draft)) {
            return;
        }
        place.holds = draft.case.is_some() && !draft.findings.iter().any(DraftFinding::is_worth_another_try);
        if place.holds {
            self.others.extend(draft.read());
        }
        place.draft = Some(draft);
    }

    /// Keeps what the model is told of its last answer.
    fn remember(&mut self) {
        let open = self.places.iter().filter(|place| !place.holds).filter_map(|place| place.draft.as_ref());
        let returned = open.filter(|draft| draft.case.is_some() || self.problem.is_none()).map(|draft| {
            let reasons = draft.findings.iter().filter(|finding| finding.is_worth_another_try());
            Returned { id: draft.slot.id.clone(), case: draft.case.clone(), reasons: reasons.map(reason).collect() }
        });
        self.returned = returned.collect();
    }

    fn said_extra(&self) -> Option<DraftFinding> {
        let count = self.extra.len();
        let shown: Vec<&str> = self.extra.iter().take(MAX_EXTRA_SHOWN).map(String::as_str).collect();
        let cases = if count == 1 { "1 case" } else { &format!("{count} cases") };
        let more = if count > MAX_EXTRA_SHOWN { ", …" } else { "" };
        let message = format!("the model also returned {cases} that nobody asked for: {}{more}", shown.join(", "));
        (count > 0).then(|| DraftFinding::warning("", message))
    }
}

/// A case is better than none, and one that can be approved is better than another.
fn worth(draft: &Draft) -> u8 {
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
