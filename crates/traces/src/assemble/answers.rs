//! Joins calls with the tools' answers that the conversation tells.

use std::collections::HashMap;

use karat_core::document::{Message, StepCall};
use serde_json::Value;

use super::open::Place;
use super::step::Draft;
use super::tree::Tree;
use crate::chat::result_of;
use crate::json::is_blank;
use crate::parts::Role;
use crate::vocabulary;

/// How many later steps are compared with the one that made a call.
const MOST_COMPARED: usize = 32;

/// Joins tools' answers out of the conversation: by the call's id, else by the tool's name, else in their order.
pub(super) fn join(tree: &Tree<'_>, drafts: &mut [Draft]) {
    by_id(drafts);
    if !is_missing(drafts) {
        return;
    }
    for at in 0..drafts.len().saturating_sub(1) {
        if !drafts[at].calls.iter().any(is_open) {
            continue;
        }
        // The answers that the next step has more than this one.
        let counted = if drafts[at + 1].only_new { &[] } else { drafts[at].input.as_slice() };
        let known = counted.iter().filter(|message| is_nameless(message)).count();
        let next: Vec<Message> =
            drafts[at + 1].input.iter().filter(|message| is_nameless(message)).skip(known).cloned().collect();
        let calls = &mut drafts[at].calls;
        let fits = |(call, message): (&StepCall, &Message)| message.name.as_ref().is_none_or(|name| *name == call.name);
        if next.len() == calls.len() && calls.iter().zip(&next).all(fits) {
            // Each call has its answer, also those of which a tool's span has told already.
            for (call, message) in calls.iter_mut().zip(&next) {
                answer(call, message);
            }
            continue;
        }
        for message in next {
            let calls = &mut drafts[at].calls;
            let by_name = calls.iter().position(|call| is_open(call) && message.name.as_ref() == Some(&call.name));
            let unnamed = || message.name.is_none().then(|| calls.iter().position(is_open)).flatten();
            if let Some(place) = by_name.or_else(unnamed) {
                answer(&mut drafts[at].calls[place], &message);
            }
        }
    }
    if is_missing(drafts) {
        // What came of the last calls may be told only by the agent around.
        for index in tree.of_role(Role::Agent) {
            let Some(said) = vocabulary::conversation(&tree.spans[index]) else { continue };
            for message in said.messages.iter().filter(|message| message.role == "tool") {
                let calls = drafts.iter_mut().flat_map(|draft| &mut draft.calls);
                if let Some(call) = calls.into_iter().find(|call| call.id.is_some() && call.id == message.tool_call_id)
                {
                    answer(call, message);
                }
            }
        }
    }
}

/// Tells whether nothing is known of what came of a call. Some write an empty result into a tool's span, whatever it was.
fn is_open(call: &StepCall) -> bool {
    is_blank(&call.result) && call.error.is_none()
}

fn is_missing(drafts: &[Draft]) -> bool {
    drafts.iter().flat_map(|draft| &draft.calls).any(is_open)
}

/// Joins by the call's id. Some models count the ids of their calls from zero in each answer: a call's own answer is then
/// the first that the step which made the call had not seen yet.
fn by_id(drafts: &mut [Draft]) {
    let mut answers: HashMap<&str, Vec<(usize, &Message)>> = HashMap::new();
    for (at, draft) in drafts.iter().enumerate() {
        for message in draft.input.iter().filter(|message| message.role == "tool") {
            if let Some(id) = &message.tool_call_id {
                answers.entry(id).or_default().push((at, message));
            }
        }
    }
    if answers.is_empty() {
        return;
    }
    let mut found: Vec<(Place, Message)> = Vec::new();
    for (step, draft) in drafts.iter().enumerate() {
        for (at, call) in draft.calls.iter().enumerate() {
            let Some(told) = call.id.as_deref().and_then(|id| answers.get(id)) else { continue };
            if let Some(message) = of_call(drafts, told, step) {
                found.push(((step, at), message.clone()));
            }
        }
    }
    for (place, message) in found {
        answer(&mut drafts[place.0].calls[place.1], &message);
    }
}

/// Returns the answer to a call of a step, among all answers with its id, in the order of the steps that were given them.
fn of_call<'a>(drafts: &[Draft], told: &[(usize, &'a Message)], step: usize) -> Option<&'a Message> {
    let known = told.iter().filter(|(at, _)| *at == step).count();
    let later = &told[told.partition_point(|(at, _)| *at <= step)..];
    let groups = || later.chunk_by(|one, other| one.0 == other.0);
    let of_group = |group: &[(usize, &'a Message)]| {
        let skipped = if drafts[group[0].0].only_new { 0 } else { known };
        group.get(skipped).map(|(_, message)| *message)
    };
    // Agents at work side by side may count their calls alike: what goes on with the same conversation comes first.
    let mut same = groups().take(MOST_COMPARED).filter(|group| goes_on(&drafts[step], &drafts[group[0].0]));
    if let Some(message) = same.find_map(of_group).or_else(|| groups().find_map(of_group)) {
        return Some(message);
    }
    // Steps that began at the same time may be in the wrong order.
    told.first().map(|(_, message)| *message).filter(|_| later.is_empty() && known > 0)
}

/// Tells whether a later step can be of the same conversation: the same agent's, which began with the same question.
fn goes_on(step: &Draft, later: &Draft) -> bool {
    step.agent == later.agent && (step.only_new || later.only_new || question(step) == question(later))
}

fn question(draft: &Draft) -> Option<&str> {
    draft.input.iter().find(|message| message.role == "user").map(|message| message.content.as_str())
}

/// Tells whether a tool's message does not say which call it answers.
fn is_nameless(message: &Message) -> bool {
    message.role == "tool" && message.tool_call_id.is_none()
}

/// Writes down what a tool's message says of a call; what is known already stays.
pub(super) fn answer(call: &mut StepCall, message: &Message) {
    if message.is_error {
        if call.error.is_none() {
            call.error = Some(message.content.clone());
        }
        return;
    }
    let is_better = call.result.is_null() || is_blank(&call.result) && !message.content.is_empty();
    if is_better && (call.error.is_none() || !message.content.is_empty()) {
        call.result = result_of(&Value::String(message.content.clone()));
    }
    if call.error.is_none() {
        call.error = vocabulary::failure_of_result(&call.result);
    }
}
