//! Spans within spans.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use crate::parts::{LogEvent, Role, Span, TraceParts};
use crate::vocabulary;

/// The spans of a trace with what they are and what is around them. Parents that are unknown, or that go round in a circle,
/// are none.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    pub(super) spans: Vec<Cow<'a, Span>>,
    pub(super) roles: Vec<Role>,
    pub(super) parents: Vec<Option<usize>>,
    /// The nearest model, tool or agent around each.
    pub(super) enclosing: Vec<Option<usize>>,
    /// The log records of each.
    pub(super) logs: HashMap<usize, Vec<&'a LogEvent>>,
    /// All, in the order in which they began; those without a time come last.
    pub(super) by_time: Vec<usize>,
}

impl<'a> Tree<'a> {
    pub(super) fn of(parts: &'a TraceParts) -> Self {
        let mut spans: Vec<Cow<'a, Span>> = parts.spans.values().map(Cow::Borrowed).collect();
        let mut places: HashMap<&str, usize> =
            parts.spans.keys().enumerate().map(|(index, id)| (id.as_str(), index)).collect();
        let mut logs: HashMap<usize, Vec<&'a LogEvent>> = HashMap::new();
        let mut apart: BTreeMap<&str, Vec<&'a LogEvent>> = BTreeMap::new();
        for log in &parts.logs {
            let Some(id) = log.span.as_deref() else { continue };
            match places.get(id) {
                Some(index) => logs.entry(*index).or_default().push(log),
                None => apart.entry(id).or_default().push(log),
            }
        }
        // Content may come in log records alone, or before the span to which it belongs.
        for (id, records) in apart {
            if records.iter().any(|record| tells_a_model(record)) {
                places.insert(id, spans.len());
                logs.insert(spans.len(), records.clone());
                spans.push(Cow::Owned(stand_in(id, &records)));
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
                span.parent.as_deref().and_then(|id| places.get(id).copied()).filter(|parent| *parent != index)
            })
            .collect();
        cut_circles(&mut parents);
        let enclosing = enclosing(&parents, &roles);
        let mut by_time: Vec<usize> = (0..spans.len()).collect();
        by_time.sort_by_key(|index| (spans[*index].start.is_none(), spans[*index].start, *index));
        Self { spans, roles, parents, enclosing, logs, by_time }
    }

    /// Returns the root: the first span that says it has no parent, else the first whose parent is not here.
    pub(super) fn root(&self) -> Option<usize> {
        let first = |wanted: &dyn Fn(usize) -> bool| self.by_time.iter().copied().find(|index| wanted(*index));
        first(&|index| self.spans[index].parent.is_none())
            .or_else(|| first(&|index| self.parents[index].is_none()))
            .or_else(|| self.by_time.first().copied())
    }

    pub(super) fn logs_of(&self, index: usize) -> &[&'a LogEvent] {
        self.logs.get(&index).map_or(&[], Vec::as_slice)
    }

    /// Returns those of a role, in the order in which they began.
    pub(super) fn of_role(&self, role: Role) -> impl Iterator<Item = usize> + '_ {
        self.by_time.iter().copied().filter(move |index| self.roles[*index] == role)
    }
}

fn tells_a_model(record: &LogEvent) -> bool {
    let name =
        record.event.attributes.get("event.name").and_then(serde_json::Value::as_str).unwrap_or(&record.event.name);
    name == "gen_ai.client.inference.operation.details" || name == "gen_ai.choice"
}

/// Returns what stands for a span of which only the log records are known.
fn stand_in(id: &str, records: &[&LogEvent]) -> Span {
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

/// Takes away one parent of each circle: that of its first span.
fn cut_circles(parents: &mut [Option<usize>]) {
    let mut state = vec![0_u32; parents.len()];
    for start in 0..parents.len() {
        let walk = u32::try_from(start).unwrap_or(u32::MAX - 1) + 1;
        let mut at = Some(start);
        while let Some(index) = at {
            if state[index] == walk {
                // Back at a span of this walk: the circle's first is cut.
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

/// Returns the nearest span around each that is a model, a tool or an agent.
fn enclosing(parents: &[Option<usize>], roles: &[Role]) -> Vec<Option<usize>> {
    let mut found: Vec<Option<Option<usize>>> = vec![None; parents.len()];
    let mut path = Vec::new();
    for start in 0..parents.len() {
        let mut at = start;
        let answer = loop {
            if let Some(known) = found[at] {
                break known;
            }
            path.push(at);
            match parents[at] {
                None => break None,
                Some(parent) if roles[parent] != Role::Other => {
                    // Only the spans between share this answer.
                    break Some(parent);
                }
                Some(parent) => at = parent,
            }
        };
        for index in path.drain(..) {
            found[index] = Some(answer);
        }
    }
    found.into_iter().map(Option::flatten).collect()
}
