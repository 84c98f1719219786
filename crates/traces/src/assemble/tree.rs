//! The tree of spans.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use super::restored_spans;
use crate::parts::{LogEvent, Role, Span, TraceParts};
use crate::vocabulary;

/// The spans of a trace with their roles and ancestors. Unknown parents and parents that form a cycle are dropped.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    pub(super) spans: Vec<Cow<'a, Span>>,
    pub(super) roles: Vec<Role>,
    pub(super) parents: Vec<Option<usize>>,
    /// The nearest enclosing model, tool or agent of each span.
    pub(super) enclosing: Vec<Option<usize>>,
    /// The log records of each span.
    pub(super) logs: HashMap<usize, Vec<&'a LogEvent>>,
    /// All spans ordered by start time; those without a time come last.
    pub(super) by_time: Vec<usize>,
}

impl<'a> Tree<'a> {
    pub(super) fn new(parts: &'a TraceParts) -> Self {
        let mut spans: Vec<Cow<'a, Span>> = parts.spans.values().map(Cow::Borrowed).collect();
        let merged_ids = restored_spans::merge_events(&mut spans);
        restored_spans::remove_numbers(&mut spans);
        let mut indices: HashMap<String, usize> =
            spans.iter().enumerate().map(|(index, span)| (span.id.clone(), index)).collect();
        for (id, merged) in merged_ids {
            if let Some(index) = indices.get(&merged).copied() {
                indices.insert(id, index);
            }
        }
        let mut logs: HashMap<usize, Vec<&'a LogEvent>> = HashMap::new();
        let mut without_span: BTreeMap<&str, Vec<&'a LogEvent>> = BTreeMap::new();
        for log in &parts.logs {
            let Some(id) = log.span.as_deref() else { continue };
            match indices.get(id) {
                Some(index) => logs.entry(*index).or_default().push(log),
                None => without_span.entry(id).or_default().push(log),
            }
        }
        // Log records may arrive without their span, or before it.
        for (id, records) in without_span {
            if records.iter().any(|record| is_model_event(record)) {
                indices.insert(id.to_owned(), spans.len());
                logs.insert(spans.len(), records.clone());
                spans.push(Cow::Owned(span_from_logs(id, &records)));
            }
        }
        for records in logs.values_mut() {
            records.sort_by_key(|record| record.event.time);
        }
        let roles: Vec<Role> = spans.iter().map(|span| vocabulary::role(span)).collect();
        let mut parents: Vec<Option<usize>> = spans
            .iter()
            .enumerate()
            .map(|(index, span)| {
                span.parent.as_deref().and_then(|id| indices.get(id).copied()).filter(|parent| *parent != index)
            })
            .collect();
        break_cycles(&mut parents);
        let enclosing = enclosing(&parents, &roles);
        let mut by_time: Vec<usize> = (0..spans.len()).collect();
        by_time.sort_by_key(|index| (spans[*index].start.is_none(), spans[*index].start, *index));
        Self { spans, roles, parents, enclosing, logs, by_time }
    }

    /// Returns the root: the first span without a parent, else the first whose parent is unknown.
    pub(super) fn root(&self) -> Option<usize> {
        let first = |matches: &dyn Fn(usize) -> bool| self.by_time.iter().copied().find(|index| matches(*index));
        first(&|index| self.spans[index].parent.is_none())
            .or_else(|| first(&|index| self.parents[index].is_none()))
            .or_else(|| self.by_time.first().copied())
    }

    pub(super) fn logs_of(&self, index: usize) -> &[&'a LogEvent] {
        self.logs.get(&index).map_or(&[], Vec::as_slice)
    }

    /// Returns the spans with a role, ordered by start time.
    pub(super) fn with_role(&self, role: Role) -> impl Iterator<Item = usize> + '_ {
        self.by_time.iter().copied().filter(move |index| self.roles[*index] == role)
    }
}

fn is_model_event(record: &LogEvent) -> bool {
    let name =
        record.event.attributes.get("event.name").and_then(serde_json::Value::as_str).unwrap_or(&record.event.name);
    name == "gen_ai.client.inference.operation.details" || name == "gen_ai.choice"
}

/// Creates a span from log records whose own span is unknown.
fn span_from_logs(id: &str, records: &[&LogEvent]) -> Span {
    let times = || records.iter().filter_map(|record| record.event.time);
    let mut span = Span {
        id: id.to_owned(),
        role: Some(Role::Model),
        start: times().min(),
        end: times().max(),
        ..Span::default()
    };
    for record in records {
        for (name, value) in &record.event.attributes {
            span.attributes.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
    span
}

/// Breaks each cycle by dropping the parent of its first span.
fn break_cycles(parents: &mut [Option<usize>]) {
    let mut state = vec![0_u32; parents.len()];
    for start in 0..parents.len() {
        let walk = u32::try_from(start).unwrap_or(u32::MAX - 1) + 1;
        let mut at = Some(start);
        while let Some(index) = at {
            if state[index] == walk {
                // This walk returned to one of its spans.
                let mut first = index;
                let mut next = parents[index];
                while let Some(other) = next.filter(|other| *other != index) {
                    first = first.min(other);
                    next = parents[other];
                }
                parents[first] = None;
                break;
            }
            if state[index] != 0 {
                break;
            }
            state[index] = walk;
            at = parents[index];
        }
    }
}

/// Returns the nearest enclosing model, tool or agent of each span.
fn enclosing(parents: &[Option<usize>], roles: &[Role]) -> Vec<Option<usize>> {
    let mut enclosing: Vec<Option<Option<usize>>> = vec![None; parents.len()];
    let mut path = Vec::new();
    for start in 0..parents.len() {
        let mut at = start;
        let nearest = loop {
            if let Some(known) = enclosing[at] {
                break known;
            }
            path.push(at);
            match parents[at] {
                None => break None,
                Some(parent) if roles[parent] != Role::Other => {
                    break Some(parent);
                }
                Some(parent) => at = parent,
            }
        };
        for index in path.drain(..) {
            enclosing[index] = Some(nearest);
        }
    }
    enclosing.into_iter().map(Option::flatten).collect()
}
