//! Restores spans that instrumentations split or rename.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use crate::parts::Span;
use karat_chat::lenient::{is_blank, unpack};

/// The events of an operation that `BeeAI` exports as separate spans, in order of precedence of their attributes.
const EVENTS: [&str; 8] = ["start", "success", "error", "finish", "retry", "update", "partialUpdate", "newToken"];

/// Maximum depth at which the content of spans is searched for names.
const MAX_DEPTH: usize = 16;

/// Merges the spans `NAME.start-3`, `NAME.success-3` and `NAME.finish-3`, which `BeeAI` writes for one operation, into
/// one span `NAME`. Returns the ids of the merged spans, each with the id of the remaining one.
pub(super) fn merge_events(spans: &mut Vec<Cow<'_, Span>>) -> Vec<(String, String)> {
    let mut operations: BTreeMap<(String, String), Vec<(usize, usize)>> = BTreeMap::new();
    for (index, span) in spans.iter().enumerate() {
        if let Some((name, event, number)) = event_of(&span.name) {
            operations.entry((name.to_owned(), number.to_owned())).or_default().push((event, index));
        }
    }
    let mut merged_ids = Vec::new();
    let mut is_merged = vec![false; spans.len()];
    for ((name, _), mut events) in operations.into_iter().filter(|(_, events)| events.len() > 1) {
        events.sort_unstable();
        let mut merged = spans[events[0].1].clone().into_owned();
        merged.name = name;
        for (_, index) in &events[1..] {
            is_merged[*index] = true;
            add_event(&mut merged, &spans[*index]);
            merged_ids.push((spans[*index].id.clone(), merged.id.clone()));
        }
        spans[events[0].1] = Cow::Owned(merged);
    }
    let mut index = 0;
    spans.retain(|_| {
        index += 1;
        !is_merged[index - 1]
    });
    merged_ids
}

/// Splits `NAME.EVENT-NUMBER`. The event is an index into [`EVENTS`].
fn event_of(name: &str) -> Option<(&str, usize, &str)> {
    let (path, number) = name.rsplit_once('-').filter(|(_, number)| is_number(number))?;
    let (name, event) = path.rsplit_once('.')?;
    Some((name, EVENTS.iter().position(|known| *known == event)?, number))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn add_event(merged: &mut Span, event: &Span) {
    merged.start = merged.start.into_iter().chain(event.start).min();
    merged.end = merged.end.max(event.end);
    merged.error = merged.error.take().or_else(|| event.error.clone());
    merged.input = merged.input.take().or_else(|| event.input.clone());
    merged.output = merged.output.take().or_else(|| event.output.clone());
    merged.events.extend(event.events.iter().cloned());
    for (name, value) in &event.attributes {
        let known = merged.attributes.entry(name.clone()).or_insert(Value::Null);
        if is_blank(known) {
            known.clone_from(value);
        }
    }
}

/// Removes the numbers that `MLflow` appends to the names of spans if several have the same: `NAME_1`, `NAME_2`. If some
/// of these spans are missing, the names of tools in other spans show which names are numbered.
pub(super) fn remove_numbers(spans: &mut [Cow<'_, Span>]) {
    let mut numbered: HashMap<String, Vec<(usize, usize)>> = HashMap::new();
    for (index, span) in spans.iter().enumerate() {
        if span.attributes.keys().any(|name| name.starts_with("mlflow."))
            && let Some((name, number)) = span.name.rsplit_once('_')
            && let Ok(number) = number.parse()
        {
            numbered.entry(name.to_owned()).or_default().push((number, index));
        }
    }
    if numbered.is_empty() {
        return;
    }
    let known_names = names_in_content(spans);
    for (name, mut indices) in numbered {
        indices.sort_unstable();
        let is_sequence = indices.iter().zip(1..).all(|((number, _), expected)| *number == expected);
        let is_known =
            known_names.contains(&name) && !indices.iter().any(|(_, index)| known_names.contains(&spans[*index].name));
        if indices.len() > 1 && is_sequence || is_known {
            for (_, index) in indices {
                spans[index].to_mut().name.clone_from(&name);
            }
        }
    }
}

/// Returns the names in the inputs and outputs of spans, among them those of called and defined tools.
fn names_in_content(spans: &[Cow<'_, Span>]) -> HashSet<String> {
    let mut names = HashSet::new();
    for span in spans {
        for name in ["mlflow.spanInputs", "mlflow.spanOutputs", "mlflow.chat.tools", "mlflow.chat.messages"] {
            if let Some(content) = span.attributes.get(name) {
                add_names(&unpack(content), MAX_DEPTH, &mut names);
            }
        }
    }
    names
}

fn add_names(value: &Value, depth: usize, names: &mut HashSet<String>) {
    match value {
        Value::Array(items) if depth > 0 => items.iter().for_each(|item| add_names(item, depth - 1, names)),
        Value::Object(map) if depth > 0 => {
            names.extend(map.get("name").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|value| add_names(value, depth - 1, names));
        }
        _ => {}
    }
}
