//! Joins the calls of models with tool spans.

use std::collections::{HashMap, HashSet};

use karat_core::document::StepCall;
use serde_json::Value;

use super::open_calls::{CallPosition, OpenCalls};
use super::step::StepBuilder;
use super::tree::Tree;
use crate::parts::{Role, Span};
use crate::vocabulary::{self, Execution};

/// Merges steps that describe the same model call: they overlap in time and have the same tool calls. Call ids are
/// unique enough only among overlapping steps: some models number their calls from zero in each answer.
pub(super) fn merge_duplicates(builders: &mut Vec<StepBuilder>) {
    let mut by_calls: HashMap<Vec<String>, Vec<usize>> = HashMap::new();
    let mut duplicates = HashSet::new();
    for at in 0..builders.len() {
        let ids: Option<Vec<String>> = builders[at].calls.iter().map(|call| call.id.clone()).collect();
        let Some(ids) = ids.filter(|ids| !ids.is_empty()) else { continue };
        let same = by_calls.entry(ids).or_default();
        let first = same.iter().rev().copied().find(|first| {
            let (first, second) = (&builders[*first], &builders[at]);
            let overlap = first.start <= second.end && second.start <= first.end && first.start.is_some();
            overlap && first.calls == second.calls && first.response == second.response
        });
        match first {
            None => same.push(at),
            Some(first) => {
                duplicates.insert(at);
                let duplicate = std::mem::take(&mut builders[at]);
                builders[first].merge(duplicate);
            }
        }
    }
    let mut at = 0;
    builders.retain(|_| {
        at += 1;
        !duplicates.contains(&(at - 1))
    });
}

/// Fills in the output of a step from the input of the next step if its own span does not have it.
pub(super) fn fill_missing_outputs(builders: &mut [StepBuilder]) {
    for at in 1..builders.len() {
        if builders[at - 1].has_output() || builders[at - 1].error.is_some() {
            continue;
        }
        let previous_output = builders[at].input.iter().rev().find(|message| message.role == "assistant").cloned();
        let Some(output) =
            previous_output.filter(|output| !builders[..at].iter().any(|builder| builder.input.contains(output)))
        else {
            continue;
        };
        if builders[..at].iter().any(|builder| !output.content.is_empty() && builder.response == output.content) {
            continue;
        }
        builders[at - 1].calls = output.tool_calls;
        builders[at - 1].response = output.content;
    }
}

/// Joins tool spans with calls: by call id, else by tool name and arguments. A tool span without a matching call
/// becomes a call of the step before it.
pub(super) fn join_tool_spans(tree: &Tree<'_>, builders: &mut [StepBuilder]) {
    if builders.is_empty() {
        return;
    }
    let step_of: HashMap<usize, usize> = builders
        .iter()
        .enumerate()
        .flat_map(|(at, builder)| builder.spans.iter().map(move |span| (*span, at)))
        .collect();
    let mut ids: HashMap<String, Vec<CallPosition>> = HashMap::new();
    for (step, builder) in builders.iter().enumerate() {
        for (at, call) in builder.calls.iter().enumerate() {
            if let Some(id) = &call.id {
                ids.entry(id.clone()).or_default().push((step, at));
            }
        }
    }
    let mut joined: HashSet<CallPosition> = HashSet::new();
    let mut calls_by_span: HashMap<usize, CallPosition> = HashMap::new();
    let mut unjoined: Vec<(usize, Execution)> = Vec::new();
    for index in tree.with_role(Role::Tool) {
        let execution = vocabulary::execution(&tree.spans[index]);
        let positions = execution.id.as_ref().and_then(|id| ids.get(id));
        match positions.and_then(|positions| find_by_id(builders, positions, &joined, &tree.spans[index])) {
            Some(position) => {
                let is_first = joined.insert(position);
                calls_by_span.insert(index, position);
                let call = &mut builders[position.0].calls[position.1];
                let is_nested = tree.enclosing[index].is_some_and(|outer| tree.roles[outer] == Role::Tool);
                if !is_first && !is_nested {
                    clear_failure(call, &tree.spans[index], &execution);
                }
                fill(call, &tree.spans[index], &execution);
            }
            None => unjoined.push((index, execution)),
        }
    }
    if unjoined.is_empty() {
        return;
    }
    let mut open_calls = OpenCalls::new(tree, builders, |position| joined.contains(position));
    let mut covered: HashSet<usize> = HashSet::new();
    for index in calls_by_span.keys() {
        mark_enclosing_tools(tree, &mut covered, *index);
    }
    let mut unmatched: Vec<(usize, Execution)> = Vec::new();
    for (index, execution) in unjoined {
        let span = &tree.spans[index];
        // A tool span inside a joined tool span belongs to the same call.
        let outer = tree.enclosing[index].filter(|outer| tree.roles[*outer] == Role::Tool);
        if let Some(position) = outer.and_then(|outer| calls_by_span.get(&outer).copied()) {
            calls_by_span.insert(index, position);
            let call = &mut builders[position.0].calls[position.1];
            if call.name == execution.name {
                fill(call, span, &execution);
            }
            continue;
        }
        match open_calls.take(tree, builders, index, &execution, enclosing_step(tree, &step_of, index)) {
            Some(position) => {
                calls_by_span.insert(index, position);
                mark_enclosing_tools(tree, &mut covered, index);
                fill(&mut builders[position.0].calls[position.1], span, &execution);
                if let Some(id) = &execution.id {
                    ids.entry(id.clone()).or_default().push(position);
                }
            }
            None => unmatched.push((index, execution)),
        }
    }
    for (index, execution) in unmatched {
        let is_nested = tree.enclosing[index].is_some_and(|outer| tree.roles[outer] == Role::Tool);
        if is_nested || covered.contains(&index) {
            continue;
        }
        let span = &tree.spans[index];
        if let Some((step, at)) = execution.id.as_ref().and_then(|id| ids.get(id)?.last().copied()) {
            fill(&mut builders[step].calls[at], span, &execution);
            continue;
        }
        let step = enclosing_step(tree, &step_of, index).unwrap_or_else(|| preceding_step(builders, span));
        let mut call = StepCall {
            name: execution.name.clone(),
            arguments: execution.arguments.clone().unwrap_or_else(|| Value::Object(serde_json::Map::new())),
            id: execution.id.clone(),
            ..StepCall::default()
        };
        fill(&mut call, span, &execution);
        if let Some(id) = &execution.id {
            ids.entry(id.clone()).or_default().push((step, builders[step].calls.len()));
        }
        builders[step].calls.push(call);
    }
}

/// Returns the call that a span with its id belongs to. Several calls with the same id are joined in order; further
/// spans belong to the last call.
fn find_by_id(
    builders: &[StepBuilder],
    positions: &[CallPosition],
    joined: &HashSet<CallPosition>,
    span: &Span,
) -> Option<CallPosition> {
    let starts_before = |position: &&CallPosition| match (builders[position.0].start, span.start) {
        (Some(step_start), Some(start)) => step_start <= start,
        _ => true,
    };
    let earlier = || positions.iter().filter(starts_before);
    earlier()
        .find(|position| !joined.contains(position))
        .or_else(|| earlier().next_back())
        .or_else(|| positions.first())
        .copied()
}

/// Returns the step whose span directly encloses a tool span.
fn enclosing_step(tree: &Tree<'_>, step_of: &HashMap<usize, usize>, index: usize) -> Option<usize> {
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

/// Marks the tool spans around a joined tool span.
fn mark_enclosing_tools(tree: &Tree<'_>, covered: &mut HashSet<usize>, index: usize) {
    let mut at = tree.enclosing[index].filter(|above| tree.roles[*above] == Role::Tool);
    while let Some(above) = at {
        if !covered.insert(above) {
            return;
        }
        at = tree.enclosing[above].filter(|above| tree.roles[*above] == Role::Tool);
    }
}

/// Returns the last step that started before a span.
fn preceding_step(builders: &[StepBuilder], span: &Span) -> usize {
    let Some(start) = span.start else { return builders.len() - 1 };
    builders.iter().rposition(|builder| builder.start.is_some_and(|step_start| step_start <= start)).unwrap_or(0)
}

/// Clears the outcome of a failed attempt if a later one succeeded.
fn clear_failure(call: &mut StepCall, span: &Span, execution: &Execution) {
    let succeeded = execution.result.as_ref().is_some_and(|result| vocabulary::result_failure(result).is_none())
        && vocabulary::failure(span, Role::Tool, true).is_none();
    if call.error.is_some() && succeeded {
        call.error = None;
        call.result = Value::Null;
        call.duration_ms = None;
    }
}

/// Fills in the values of an execution, without overwriting known values.
fn fill(call: &mut StepCall, span: &Span, execution: &Execution) {
    if call.result.is_null()
        && let Some(result) = &execution.result
    {
        call.result = result.clone();
    }
    if karat_chat::lenient::is_blank(&call.arguments)
        && let Some(arguments) = &execution.arguments
    {
        call.arguments = arguments.clone();
    }
    if call.id.is_none() {
        call.id.clone_from(&execution.id);
    }
    if call.error.is_none() {
        call.error = vocabulary::failure(span, Role::Tool, !call.result.is_null())
            .or_else(|| execution.error.clone())
            .or_else(|| vocabulary::result_failure(&call.result));
    }
    if call.duration_ms.is_none() {
        call.duration_ms = duration_ms(span);
    }
}

#[expect(clippy::cast_precision_loss, reason = "durations are far below the precision limit of f64")]
fn duration_ms(span: &Span) -> Option<f64> {
    let nanoseconds = span.end?.as_nanosecond() - span.start?.as_nanosecond();
    (nanoseconds >= 0).then(|| (nanoseconds / 1000) as f64 / 1000.0)
}
