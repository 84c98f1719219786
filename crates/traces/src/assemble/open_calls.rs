//! Calls without a matching tool span.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use karat_core::document::StepCall;
use serde_json::Value;

use super::step::StepBuilder;
use crate::parts::Span;
use crate::vocabulary::Execution;

/// The index of a step and of a call in it.
pub(super) type CallPosition = (usize, usize);

/// The open calls by tool name, and by tool name and arguments. Steps are ordered by time, so the first position of a
/// set is the earliest call.
#[derive(Debug)]
pub(super) struct OpenCalls {
    calls: HashMap<u64, BTreeSet<CallPosition>>,
}

impl OpenCalls {
    pub(super) fn new(builders: &[StepBuilder], is_joined: impl Fn(&CallPosition) -> bool) -> Self {
        let mut open_calls = Self { calls: HashMap::new() };
        for (step, builder) in builders.iter().enumerate() {
            for (at, call) in builder.calls.iter().enumerate().filter(|(at, _)| !is_joined(&(step, *at))) {
                for key in keys(call) {
                    open_calls.calls.entry(key).or_default().insert((step, at));
                }
            }
        }
        open_calls
    }

    /// Removes and returns the call that a tool span belongs to: a call of the same name, preferably with the same
    /// arguments, in the step around the span, and made before it. Two different ids never match.
    pub(super) fn take(
        &mut self,
        builders: &[StepBuilder],
        span: &Span,
        execution: &Execution,
        enclosing_step: Option<usize>,
    ) -> Option<CallPosition> {
        let without_id = execution.id.is_some();
        let exact = execution.arguments.as_ref().map(|arguments| key(&execution.name, Some(arguments), without_id));
        let sets: Vec<&BTreeSet<CallPosition>> = exact
            .into_iter()
            .chain([key(&execution.name, None, without_id)])
            .filter_map(|key| self.calls.get(&key))
            .collect();
        let in_enclosing_step = |set: &&BTreeSet<CallPosition>| {
            enclosing_step.and_then(|step| set.range((step, 0)..(step + 1, 0)).next().copied())
        };
        let starts_before = |position: &CallPosition| match (builders[position.0].start, span.start) {
            (Some(step_start), Some(start)) => step_start <= start,
            _ => true,
        };
        let first = |set: &&BTreeSet<CallPosition>| set.first().copied();
        let position = sets
            .iter()
            .find_map(|set| in_enclosing_step(set).or_else(|| first(set).filter(starts_before)))
            .or_else(|| sets.iter().find_map(first))?;
        let call = &builders[position.0].calls[position.1];
        for key in keys(call) {
            if let Some(set) = self.calls.get_mut(&key) {
                set.remove(&position);
            }
        }
        Some(position)
    }
}

/// Returns the keys of a call.
fn keys(call: &StepCall) -> Vec<u64> {
    let mut keys = vec![key(&call.name, None, false), key(&call.name, Some(&call.arguments), false)];
    if call.id.is_none() {
        keys.extend([key(&call.name, None, true), key(&call.name, Some(&call.arguments), true)]);
    }
    keys
}

fn key(name: &str, arguments: Option<&Value>, without_id: bool) -> u64 {
    let mut hasher = DefaultHasher::new();
    (name, arguments.is_some(), without_id).hash(&mut hasher);
    if let Some(arguments) = arguments {
        hash(arguments, &mut hasher);
    }
    hasher.finish()
}

/// Hashes a value independently of the order of object keys.
fn hash(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Array(items) => {
            items.len().hash(hasher);
            for item in items {
                hash(item, hasher);
            }
        }
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            fields.len().hash(hasher);
            for (name, value) in fields {
                name.hash(hasher);
                hash(value, hasher);
            }
        }
        other => other.to_string().hash(hasher),
    }
}
