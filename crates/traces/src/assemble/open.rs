//! Calls that no tool's span has answered yet.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use karat_core::document::StepCall;
use serde_json::Value;

use super::step::Draft;
use crate::parts::Span;
use crate::vocabulary::Execution;

/// Where a call is: in which step, and the how manieth of it.
pub(super) type Place = (usize, usize);

/// The open calls by the tool's name, and by its name and arguments. Steps are in the order of time, so the first of a set
/// is the one that was made first.
#[derive(Debug)]
pub(super) struct Open {
    calls: HashMap<u64, BTreeSet<Place>>,
}

impl Open {
    pub(super) fn of(drafts: &[Draft], is_done: impl Fn(&Place) -> bool) -> Self {
        let mut open = Self { calls: HashMap::new() };
        for (step, draft) in drafts.iter().enumerate() {
            for (at, call) in draft.calls.iter().enumerate().filter(|(at, _)| !is_done(&(step, *at))) {
                for key in keys(call) {
                    open.calls.entry(key).or_default().insert((step, at));
                }
            }
        }
        open
    }

    /// Takes the call that a tool's span must answer: of the same name, with the same arguments if there is one, in the
    /// step around the span if there is one, and made before. With two ids that differ they are two.
    pub(super) fn take(
        &mut self,
        drafts: &[Draft],
        span: &Span,
        execution: &Execution,
        around: Option<usize>,
    ) -> Option<Place> {
        let without_id = execution.id.is_some();
        let exact = execution.arguments.as_ref().map(|arguments| key(&execution.name, Some(arguments), without_id));
        let sets: Vec<&BTreeSet<Place>> = exact
            .into_iter()
            .chain([key(&execution.name, None, without_id)])
            .filter_map(|key| self.calls.get(&key))
            .collect();
        let within =
            |set: &&BTreeSet<Place>| around.and_then(|step| set.range((step, 0)..(step + 1, 0)).next().copied());
        let made_before = |place: &Place| match (drafts[place.0].start, span.start) {
            (Some(begun), Some(start)) => begun <= start,
            _ => true,
        };
        let first = |set: &&BTreeSet<Place>| set.first().copied();
        let place = sets
            .iter()
            .find_map(|set| within(set).or_else(|| first(set).filter(made_before)))
            .or_else(|| sets.iter().find_map(first))?;
        let call = &drafts[place.0].calls[place.1];
        for key in keys(call) {
            if let Some(set) = self.calls.get_mut(&key) {
                set.remove(&place);
            }
        }
        Some(place)
    }
}

/// Returns all keys under which a call is found.
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

/// Hashes a value such that the order of an object's fields makes no difference.
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
