//! Calls without a matching tool span.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use karat_core::document::StepCall;
use serde_json::Value;

use super::step::StepBuilder;
use super::tree::Tree;
use crate::parts::Role;
use crate::vocabulary::Execution;

/// The index of a step and of a call in it.
pub(super) type CallPosition = (usize, usize);

/// Where a model or a tool ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Scope {
    /// Directly below this span.
    Parent(usize),
    /// In this agent.
    Agent(usize),
    /// Outside of any agent.
    NoAgent,
    Anywhere,
}

/// The open calls by tool name and scope, with and without their arguments. Steps are ordered by time, so the first
/// position of a set is the earliest call.
#[derive(Debug)]
pub(super) struct OpenCalls {
    calls: HashMap<u64, BTreeSet<CallPosition>>,
    /// The scopes of each step.
    step_scopes: Vec<[Option<Scope>; 3]>,
}

impl OpenCalls {
    pub(super) fn new(tree: &Tree<'_>, builders: &[StepBuilder], is_joined: impl Fn(&CallPosition) -> bool) -> Self {
        let step_scopes = builders.iter().map(|builder| scopes(tree, builder.spans.first().copied())).collect();
        let mut open_calls = Self { calls: HashMap::new(), step_scopes };
        for (step, builder) in builders.iter().enumerate() {
            for (at, call) in builder.calls.iter().enumerate().filter(|(at, _)| !is_joined(&(step, *at))) {
                for key in open_calls.keys(step, call) {
                    open_calls.calls.entry(key).or_default().insert((step, at));
                }
            }
        }
        open_calls
    }

    /// Removes and returns the call that a tool span belongs to: a call of the same name that was made before it, in
    /// the step around the span, else below the same parent, else in the same agent, preferably with the same
    /// arguments. A call of another agent must have the same arguments. Two different ids never match.
    pub(super) fn take(
        &mut self,
        tree: &Tree<'_>,
        builders: &[StepBuilder],
        index: usize,
        execution: &Execution,
        enclosing_step: Option<usize>,
    ) -> Option<CallPosition> {
        let span = &tree.spans[index];
        let without_id = execution.id.is_some();
        let arguments = execution.arguments.as_ref();
        let set = |arguments: Option<&Value>, scope: Scope| {
            self.calls.get(&key(&execution.name, arguments, without_id, scope))
        };
        let starts_before = |position: &CallPosition| match (builders[position.0].start, span.start) {
            (Some(step_start), Some(start)) => step_start <= start,
            _ => true,
        };
        let first = |set: &BTreeSet<CallPosition>| set.first().copied().filter(starts_before);
        let in_step = |arguments: Option<&Value>| {
            let step = enclosing_step?;
            set(arguments, Scope::Anywhere)?.range((step, 0)..(step + 1, 0)).next().copied()
        };
        let exact_or_named = |scope: Scope| {
            let exact = arguments.and_then(|arguments| first(set(Some(arguments), scope)?));
            exact.or_else(|| first(set(None, scope)?))
        };
        let [parent, agent, _] = scopes(tree, Some(index));
        let position = arguments
            .and_then(|arguments| in_step(Some(arguments)))
            .or_else(|| in_step(None))
            .or_else(|| exact_or_named(parent?))
            .or_else(|| exact_or_named(agent?))
            .or_else(|| arguments.and_then(|arguments| first(set(Some(arguments), Scope::Anywhere)?)))
            // Some instrumentations record only the models or only the tools below an agent.
            .or_else(|| match agent {
                Some(Scope::NoAgent) => first(set(None, Scope::Anywhere)?),
                _ => first(set(None, Scope::NoAgent)?),
            })?;
        for key in self.keys(position.0, &builders[position.0].calls[position.1]) {
            if let Some(set) = self.calls.get_mut(&key) {
                set.remove(&position);
            }
        }
        Some(position)
    }

    /// Returns the keys of a call.
    fn keys(&self, step: usize, call: &StepCall) -> Vec<u64> {
        let mut keys = Vec::new();
        for scope in self.step_scopes[step].into_iter().flatten() {
            for arguments in [None, Some(&call.arguments)] {
                keys.push(key(&call.name, arguments, false, scope));
                if call.id.is_none() {
                    keys.push(key(&call.name, arguments, true, scope));
                }
            }
        }
        keys
    }
}

/// Returns the scopes of a span, the narrowest first.
fn scopes(tree: &Tree<'_>, span: Option<usize>) -> [Option<Scope>; 3] {
    let mut agent = span.and_then(|span| tree.enclosing[span]);
    while let Some(above) = agent.filter(|above| tree.roles[*above] != Role::Agent) {
        agent = tree.enclosing[above];
    }
    let parent = span.and_then(|span| tree.parents[span]);
    [parent.map(Scope::Parent), Some(agent.map_or(Scope::NoAgent, Scope::Agent)), Some(Scope::Anywhere)]
}

fn key(name: &str, arguments: Option<&Value>, without_id: bool, scope: Scope) -> u64 {
    let mut hasher = DefaultHasher::new();
    (name, arguments.is_some(), without_id, scope).hash(&mut hasher);
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
