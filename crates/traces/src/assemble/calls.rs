//! Joins the calls that models made with what came of them.

use std::collections::{HashMap, HashSet};

use karat_core::document::{Message, StepCall};
use serde_json::Value;

use super::step::Draft;
use super::tree::Tree;
use crate::chat::result_of;
use crate::parts::{Role, Span};
use crate::vocabulary::{self, Execution};

/// Leaves each call where it was made first: two instrumentations may tell of the same one.
pub(super) fn drop_doubles(drafts: &mut [Draft]) {
    let mut known: HashSet<String> = HashSet::new();
    for draft in drafts.iter_mut() {
        draft.calls.retain(|call| call.id.as_ref().is_none_or(|id| known.insert(id.clone())));
    }
    // What a step said may be told only by the conversation of the next.
    for at in 1..drafts.len() {
        if drafts[at - 1].has_said() || drafts[at - 1].error.is_some() {
            continue;
        }
        let told = drafts[at].input.iter().rev().find(|message| message.role == "assistant").cloned();
        let Some(told) = told.filter(|told| !drafts[..at].iter().any(|draft| draft.input.contains(told))) else {
            continue;
        };
        if drafts[..at].iter().any(|draft| !told.content.is_empty() && draft.response == told.content) {
            continue;
        }
        drafts[at - 1].calls = told.tool_calls;
        drafts[at - 1].calls.retain(|call| call.id.as_ref().is_none_or(|id| known.insert(id.clone())));
        drafts[at - 1].response = told.content;
    }
}

/// Joins tools' spans: by the call's id, else by the tool's name and arguments. A tool that no model is known to have called
/// becomes a call of the step before it.
pub(super) fn join_spans(tree: &Tree<'_>, drafts: &mut [Draft]) {
    if drafts.is_empty() {
        return;
    }
    let step_of: HashMap<usize, usize> =
        drafts.iter().enumerate().flat_map(|(at, draft)| draft.spans.iter().map(move |span| (*span, at))).collect();
    let mut ids: HashMap<String, (usize, usize)> = HashMap::new();
    let mut open: HashMap<String, Vec<(usize, usize)>> = HashMap::new();
    for (step, draft) in drafts.iter().enumerate() {
        for (at, call) in draft.calls.iter().enumerate() {
            if let Some(id) = &call.id {
                ids.entry(id.clone()).or_insert((step, at));
            }
            open.entry(call.name.clone()).or_default().push((step, at));
        }
    }
    let mut done: HashSet<(usize, usize)> = HashSet::new();
    let mut covered: HashSet<usize> = HashSet::new();
    let mut apart: Vec<(usize, Execution)> = Vec::new();
    for index in tree.of_role(Role::Tool) {
        let span = &tree.spans[index];
        let execution = vocabulary::execution(span);
        let around = around(tree, &step_of, index);
        let by_id = execution.id.as_ref().and_then(|id| ids.get(id).copied());
        let place = by_id.or_else(|| by_name(drafts, &open, &done, span, &execution, around));
        let Some(place) = place else {
            apart.push((index, execution));
            continue;
        };
        done.insert(place);
        cover(tree, &mut covered, index);
        fill(&mut drafts[place.0].calls[place.1], span, &execution);
        if let Some(id) = &execution.id {
            ids.entry(id.clone()).or_insert(place);
        }
    }
    for (index, execution) in apart {
        // A tool within a tool is how that one does its work.
        let within = tree.enclosing[index].is_some_and(|outer| tree.roles[outer] == Role::Tool);
        if within || covered.contains(&index) {
            continue;
        }
        let span = &tree.spans[index];
        if let Some((step, at)) = execution.id.as_ref().and_then(|id| ids.get(id).copied()) {
            fill(&mut drafts[step].calls[at], span, &execution);
            continue;
        }
        let step = around(tree, &step_of, index).unwrap_or_else(|| before(drafts, span));
        let mut call = StepCall {
            name: execution.name.clone(),
            arguments: execution.arguments.clone().unwrap_or_else(|| Value::Object(serde_json::Map::new())),
            id: execution.id.clone(),
            ..StepCall::default()
        };
        fill(&mut call, span, &execution);
        if let Some(id) = &execution.id {
            ids.insert(id.clone(), (step, drafts[step].calls.len()));
        }
        drafts[step].calls.push(call);
    }
}

/// Returns the step whose span is directly around a tool.
fn around(tree: &Tree<'_>, step_of: &HashMap<usize, usize>, index: usize) -> Option<usize> {
    let mut at = tree.enclosing[index];
    while let Some(above) = at {
        match tree.roles[above] {
            Role::Model => return step_of.get(&above).copied(),
            Role::Tool => at = tree.enclosing[above],
            _ => return None,
        }
    }
    None
}

/// Takes note of the tools around one that a model called.
fn cover(tree: &Tree<'_>, covered: &mut HashSet<usize>, index: usize) {
    let mut at = tree.enclosing[index].filter(|above| tree.roles[*above] == Role::Tool);
    while let Some(above) = at {
        if !covered.insert(above) {
            return;
        }
        at = tree.enclosing[above].filter(|above| tree.roles[*above] == Role::Tool);
    }
}

/// Returns the last step that had begun before a span did.
fn before(drafts: &[Draft], span: &Span) -> usize {
    let Some(start) = span.start else { return drafts.len() - 1 };
    drafts.iter().rposition(|draft| draft.start.is_some_and(|begun| begun <= start)).unwrap_or(0)
}

/// Finds the call that a tool's span must answer: not answered yet, of the same name, made before; with the same arguments
/// and in the step around it if there is one.
fn by_name(
    drafts: &[Draft],
    open: &HashMap<String, Vec<(usize, usize)>>,
    done: &HashSet<(usize, usize)>,
    span: &Span,
    execution: &Execution,
    around: Option<usize>,
) -> Option<(usize, usize)> {
    let candidates = open.get(&execution.name)?;
    let mut best: Option<((bool, bool, bool), (usize, usize))> = None;
    for place in candidates.iter().copied().filter(|place| !done.contains(place)) {
        let (draft, call) = (&drafts[place.0], &drafts[place.0].calls[place.1]);
        // With two ids that differ they are two.
        if call.id.is_some() && execution.id.is_some() {
            continue;
        }
        let made_before = match (draft.start, span.start) {
            (Some(begun), Some(start)) => begun <= start,
            _ => true,
        };
        let rank = (execution.arguments.as_ref() == Some(&call.arguments), around == Some(place.0), made_before);
        if best.as_ref().is_none_or(|(known, _)| rank > *known) {
            best = Some((rank, place));
        }
        if rank == (true, true, true) || rank == (true, false, true) && around.is_none() {
            break;
        }
    }
    best.map(|(_, place)| place)
}

/// Fills in what an execution knows; what is known already stays.
fn fill(call: &mut StepCall, span: &Span, execution: &Execution) {
    if call.result.is_null()
        && let Some(result) = &execution.result
    {
        call.result = result.clone();
    }
    if crate::json::is_blank(&call.arguments)
        && let Some(arguments) = &execution.arguments
    {
        call.arguments = arguments.clone();
    }
    if call.id.is_none() {
        call.id.clone_from(&execution.id);
    }
    if call.error.is_none() {
        call.error = vocabulary::failure(span, Role::Tool, !call.result.is_null())
            .or_else(|| vocabulary::failure_of_result(&call.result));
    }
    if call.duration_ms.is_none() {
        call.duration_ms = duration_ms(span);
    }
}

#[expect(clippy::cast_precision_loss, reason = "a duration in nanoseconds is far from what a float cannot tell apart")]
fn duration_ms(span: &Span) -> Option<f64> {
    let nanoseconds = span.end?.as_nanosecond() - span.start?.as_nanosecond();
    (nanoseconds >= 0).then(|| (nanoseconds / 1000) as f64 / 1000.0)
}

/// Joins tools' answers out of the conversation: by the call's id, else by the tool's name, else in their order.
pub(super) fn join_messages(tree: &Tree<'_>, drafts: &mut [Draft]) {
    let mut answers: HashMap<String, Message> = HashMap::new();
    for message in drafts.iter().flat_map(|draft| &draft.input).filter(|message| message.role == "tool") {
        if let Some(id) = &message.tool_call_id {
            answers.entry(id.clone()).or_insert_with(|| message.clone());
        }
    }
    let is_open = |call: &StepCall| call.result.is_null() && call.error.is_none();
    let missing = |drafts: &[Draft]| drafts.iter().flat_map(|draft| &draft.calls).any(is_open);
    for call in drafts.iter_mut().flat_map(|draft| &mut draft.calls) {
        if let Some(message) = call.id.as_ref().and_then(|id| answers.get(id)) {
            answer(call, message);
        }
    }
    if !missing(drafts) {
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
        for message in next {
            let calls = &mut drafts[at].calls;
            let by_name = calls.iter().position(|call| is_open(call) && message.name.as_ref() == Some(&call.name));
            let unnamed = || message.name.is_none().then(|| calls.iter().position(is_open)).flatten();
            if let Some(place) = by_name.or_else(unnamed) {
                answer(&mut drafts[at].calls[place], &message);
            }
        }
    }
    if missing(drafts) {
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

/// Tells whether a tool's message does not say which call it answers.
fn is_nameless(message: &Message) -> bool {
    message.role == "tool" && message.tool_call_id.is_none()
}

pub(super) fn answer(call: &mut StepCall, message: &Message) {
    if message.is_error {
        if call.error.is_none() {
            call.error = Some(message.content.clone());
        }
        return;
    }
    if call.result.is_null() && (call.error.is_none() || !message.content.is_empty()) {
        call.result = result_of(&Value::String(message.content.clone()));
    }
    if call.error.is_none() {
        call.error = vocabulary::failure_of_result(&call.result);
    }
}
