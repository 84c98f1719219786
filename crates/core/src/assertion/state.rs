//! Assertions on the state of systems behind the agent.

use std::ops::ControlFlow;

use serde_json::Value;

use super::Field;
use super::json_difference::{JsonComparison, JsonDifference};
use super::predicate::Predicate;
use super::tally::{Check, Tally};
use crate::state::{CapturedStates, StateChange, StateChanges};
use karat_cases::token::TokenSources;
use karat_cases::{Expectation, StatePredicate, UnchangedState};

/// Maximum number of changes that a failure lists.
const MAX_CHANGES: usize = 5;

/// Maximum number of characters of a value in a failure. A longer one is described, not cut: the redactor does not
/// recognise a partial secret.
const MAX_VALUE_CHARS: usize = 80;

/// Judges `state` and `stateUnchanged`. Without captured states, nothing can be checked.
pub(super) fn judge_state(
    expect: &Expectation,
    states: Option<&CapturedStates>,
    tokens: &TokenSources,
    tally: &mut Tally,
) -> ControlFlow<()> {
    for (index, spec) in expect.state.iter().flatten().enumerate() {
        let state = states.and_then(|states| states.after.get(&spec.source));
        let check = match Predicate::resolve(spec, tokens, tally) {
            Ok(Some(predicate)) => state.map_or_else(
                || not_captured(&spec.source, Field::State, states, tally),
                |state| check_part(spec, &predicate, state),
            ),
            Ok(None) => Check::Skipped,
            Err(failure) => Check::Failed(format!("{}: {failure}", place(spec))),
        };
        tally.record_item(Field::State, index, check)?;
    }
    for (index, spec) in expect.state_unchanged.iter().flatten().enumerate() {
        let captured =
            states.and_then(|states| Some((states.before.get(&spec.source)?, states.after.get(&spec.source)?)));
        let check = match captured {
            None => not_captured(&spec.source, Field::StateUnchanged, states, tally),
            Some((before, after)) => match changes(spec, before, after) {
                None => Check::Passed,
                Some(changes) => {
                    let message = describe_changes(&changes);
                    tally.record_state_changes(changes);
                    Check::Failed(message)
                }
            },
        };
        tally.record_item(Field::StateUnchanged, index, check)?;
    }
    ControlFlow::Continue(())
}

fn not_captured(source: &str, field: Field, states: Option<&CapturedStates>, tally: &mut Tally) -> Check {
    if states.is_some() {
        tally.warn(format!("{field}: the state source '{source}' was not captured"));
    }
    Check::Skipped
}

fn check_part(spec: &StatePredicate, predicate: &Predicate, state: &Value) -> Check {
    let actual = state.pointer(&spec.path);
    if actual.is_none() && spec.optional {
        return Check::Passed;
    }
    let tested = predicate.test(actual);
    tested.map_or_else(|failure| Check::Failed(format!("{}: {failure}", place(spec))), |()| Check::Passed)
}

/// Names the part that a condition checks.
fn place(spec: &StatePredicate) -> String {
    if spec.path.is_empty() { spec.source.clone() } else { format!("{} {}", spec.source, spec.path) }
}

/// Compares a source before and after the case. Returns `None` if nothing changed but what may.
fn changes(spec: &UnchangedState, before: &Value, after: &Value) -> Option<StateChanges> {
    let comparison = JsonComparison { allows_more_keys: false, arrays_by_index: true, ignore: &spec.except };
    let differences = comparison.differences(before, after);
    let text = |value: Option<&Value>| value.map(describe_value);
    let change = |difference: &JsonDifference<'_>| StateChange {
        pointer: difference.pointer.clone(),
        before: text(difference.expected),
        after: text(difference.actual),
    };
    (!differences.is_empty()).then(|| StateChanges {
        source: spec.source.clone(),
        changes: differences.iter().take(MAX_CHANGES).map(change).collect(),
        total: differences.len(),
    })
}

fn describe_changes(changes: &StateChanges) -> String {
    let StateChanges { source, changes, total } = changes;
    let change = |StateChange { pointer, before, after }: &StateChange| {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "absent".to_owned());
        let values = format!("(before {}, after {})", text(before), text(after));
        if pointer.is_empty() { values } else { format!("{pointer} {values}") }
    };
    let listed: Vec<String> = changes.iter().map(change).collect();
    let at = if changes.first().is_some_and(|first| first.pointer.is_empty()) { "" } else { "at " };
    let more = match total - changes.len() {
        0 => String::new(),
        1 => " and in 1 more place".to_owned(),
        more => format!(" and in {more} more places"),
    };
    format!("{source} changed {at}{}{more}", listed.join(", "))
}

/// Returns a value as JSON text, or its type and size if it is long.
fn describe_value(value: &Value) -> String {
    let counted = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let text = value.to_string();
    if text.chars().count() <= MAX_VALUE_CHARS {
        return text;
    }
    match value {
        Value::Object(map) => format!("an object with {}", counted(map.len(), "key")),
        Value::Array(items) => format!("an array of {}", counted(items.len(), "element")),
        Value::String(text) => format!("a string of {}", counted(text.chars().count(), "character")),
        Value::Number(_) | Value::Bool(_) | Value::Null => text,
    }
}
