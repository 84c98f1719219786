//! Joins the calls that models made with what came of them.

use std::collections::{HashMap, HashSet};

use karat_core::document::StepCall;
use serde_json::Value;

use super::open::{Open, Place};
use super::step::Draft;
use super::tree::Tree;
use crate::parts::{Role, Span};
use crate::vocabulary::{self, Execution};

/// Takes away steps that tell of the same call of a model as another: side by side in time, with the same calls of tools.
/// The ids of calls are unique enough for that where they are made at the same time, and not where they are not: some
/// models count theirs from zero in each answer.
pub(super) fn drop_doubles(drafts: &mut Vec<Draft>) {
    let mut by_calls: HashMap<Vec<String>, Vec<usize>> = HashMap::new();
    let mut doubles = HashSet::new();
    for at in 0..drafts.len() {
        let ids: Option<Vec<String>> = drafts[at].calls.iter().map(|call| call.id.clone()).collect();
        let Some(ids) = ids.filter(|ids| !ids.is_empty()) else { continue };
        let same = by_calls.entry(ids).or_default();
        let first = same.iter().rev().copied().find(|first| {
            let (first, second) = (&drafts[*first], &drafts[at]);
            let overlap = first.start <= second.end && second.start <= first.end && first.start.is_some();
            overlap && first.calls == second.calls && first.response == second.response
        });
        match first {
            None => same.push(at),
            Some(first) => {
                doubles.insert(at);
                let double = std::mem::take(&mut drafts[at]);
                drafts[first].absorb(double);
            }
        }
    }
    let mut at = 0;
    drafts.retain(|_| {
        at += 1;
        !doubles.contains(&(at - 1))
    });
}

/// Fills in what a step said where only the conversation of the next step tells it.
pub(super) fn fill_answers(drafts: &mut [Draft]) {
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
    let mut ids: HashMap<String, Vec<Place>> = HashMap::new();
    for (step, draft) in drafts.iter().enumerate() {
        for (at, call) in draft.calls.iter().enumerate() {
            if let Some(id) = &call.id {
                ids.entry(id.clone()).or_default().push((step, at));
            }
        }
    }
    let mut done: HashSet<Place> = HashSet::new();
    let mut answered: HashMap<usize, Place> = HashMap::new();
    let mut rest: Vec<(usize, Execution)> = Vec::new();
    for index in tree.of_role(Role::Tool) {
        let execution = vocabulary::execution(&tree.spans[index]);
        let places = execution.id.as_ref().and_then(|id| ids.get(id));
        match places.and_then(|places| by_id(drafts, places, &done, &tree.spans[index])) {
            Some(place) => {
                let is_first = done.insert(place);
                answered.insert(index, place);
                let call = &mut drafts[place.0].calls[place.1];
                let within = tree.enclosing[index].is_some_and(|outer| tree.roles[outer] == Role::Tool);
                if !is_first && !within {
                    forget_failure(call, &tree.spans[index], &execution);
                }
                fill(call, &tree.spans[index], &execution);
            }
            None => rest.push((index, execution)),
        }
    }
    if rest.is_empty() {
        return;
    }
    let mut open = Open::of(drafts, |place| done.contains(place));
    let mut covered: HashSet<usize> = HashSet::new();
    for index in answered.keys() {
        cover(tree, &mut covered, *index);
    }
    let mut apart: Vec<(usize, Execution)> = Vec::new();
    for (index, execution) in rest {
        let span = &tree.spans[index];
        // A tool within one that a model called is how that one does its work.
        let outer = tree.enclosing[index].filter(|outer| tree.roles[*outer] == Role::Tool);
        if let Some(place) = outer.and_then(|outer| answered.get(&outer).copied()) {
            answered.insert(index, place);
            let call = &mut drafts[place.0].calls[place.1];
            if call.name == execution.name {
                fill(call, span, &execution);
            }
            continue;
        }
        match open.take(drafts, span, &execution, around(tree, &step_of, index)) {
            Some(place) => {
                answered.insert(index, place);
                cover(tree, &mut covered, index);
                fill(&mut drafts[place.0].calls[place.1], span, &execution);
                if let Some(id) = &execution.id {
                    ids.entry(id.clone()).or_default().push(place);
                }
            }
            None => apart.push((index, execution)),
        }
    }
    for (index, execution) in apart {
        let within = tree.enclosing[index].is_some_and(|outer| tree.roles[outer] == Role::Tool);
        if within || covered.contains(&index) {
            continue;
        }
        let span = &tree.spans[index];
        if let Some((step, at)) = execution.id.as_ref().and_then(|id| ids.get(id)?.last().copied()) {
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
            ids.entry(id.clone()).or_default().push((step, drafts[step].calls.len()));
        }
        drafts[step].calls.push(call);
    }
}

/// Returns the call that a span with its id answers. Where several have the same id, the spans answer them in order; one
/// more than there are calls tells of the last one again.
fn by_id(drafts: &[Draft], places: &[Place], done: &HashSet<Place>, span: &Span) -> Option<Place> {
    let made_before = |place: &&Place| match (drafts[place.0].start, span.start) {
        (Some(begun), Some(start)) => begun <= start,
        _ => true,
    };
    let before = || places.iter().filter(made_before);
    before().find(|place| !done.contains(place)).or_else(|| before().next_back()).or_else(|| places.first()).copied()
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

/// Takes away what a try that failed left, where a later one came through.
fn forget_failure(call: &mut StepCall, span: &Span, execution: &Execution) {
    let came_through = execution.result.as_ref().is_some_and(|result| vocabulary::failure_of_result(result).is_none())
        && vocabulary::failure(span, Role::Tool, true).is_none();
    if call.error.is_some() && came_through {
        call.error = None;
        call.result = Value::Null;
        call.duration_ms = None;
    }
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
