//! Looks up the reply to a request in the script.

use serde_json::{Map, Value, json};

use super::reply::{self, Reply};

const ANY_MESSAGE: &str = "*";

/// A validated script.
#[derive(Debug)]
pub(super) struct Script {
    entries: Map<String, Value>,
    periodic: Option<PeriodicEntry>,
}

/// An entry for every n-th request with any message.
#[derive(Debug)]
struct PeriodicEntry {
    every: u64,
    entry: Map<String, Value>,
}

impl Script {
    pub(super) fn read(script: Value) -> Self {
        let Value::Object(mut entries) = script else {
            panic!("a script must be an object of entries by message, found {script}");
        };
        let periodic = take_periodic_entry(&mut entries);
        for (message, entry) in &entries {
            let is_queue = message == ANY_MESSAGE && entry.get("queue").is_some();
            let steps = entry.get(if is_queue { "queue" } else { "sequence" }).and_then(Value::as_array);
            let single = std::slice::from_ref(entry);
            let steps = steps.map_or(single, Vec::as_slice);
            assert!(!steps.is_empty(), "the sequence of '{message}' is empty");
            let is_post = !message.starts_with("GET ");
            assert!(!is_post || steps.iter().all(Value::is_object), "the entry of '{message}' is not an object");
            for turns in steps.iter().filter_map(|step| step.get("turns")) {
                let turns = turns.as_array().filter(|turns| !turns.is_empty() && turns.iter().all(Value::is_object));
                assert!(turns.is_some(), "the turns of '{message}' are not a list of objects");
            }
        }
        Self { entries, periodic }
    }

    /// Returns the reply to a GET request.
    pub(super) fn get(&self, path: &str) -> Reply {
        match self.entries.get(&format!("GET {path}")) {
            None => Reply::json(404, &json!({"error": "no such path"})),
            Some(Value::Object(entry)) if reply::has_own_body(entry) || entry.contains_key("status") => {
                reply::read(entry, |text| text.map_or_else(|| json!({}), |text| json!({"content": text})))
            }
            Some(content) => Reply::json(200, content),
        }
    }

    /// Returns the periodic entry if it applies to this request number, counted from 1.
    pub(super) fn periodic_entry(&self, number: u64) -> Option<&Map<String, Value>> {
        self.periodic.as_ref().filter(|periodic| number.is_multiple_of(periodic.every)).map(|periodic| &periodic.entry)
    }

    /// Returns the queue entry at an index for a message without its own entry.
    pub(super) fn queued(&self, message: &str, index: usize) -> Option<&Map<String, Value>> {
        let any = self.entries.get(ANY_MESSAGE).filter(|_| !self.entries.contains_key(message))?;
        let queue = any.get("queue")?.as_array()?;
        queue.get(index).or_else(|| queue.last())?.as_object()
    }

    /// Returns the entry for a message that was received `count` times before.
    pub(super) fn entry(&self, message: &str, count: usize) -> Option<&Map<String, Value>> {
        let entry = self.entries.get(message).or_else(|| self.entries.get(ANY_MESSAGE))?;
        let entry = match entry.get("sequence").and_then(Value::as_array) {
            Some(steps) => steps.get(count).or_else(|| steps.last())?,
            None => entry,
        };
        entry.as_object()
    }
}

/// Removes `storm` from the entry for any message, and the entry if nothing else is left.
fn take_periodic_entry(entries: &mut Map<String, Value>) -> Option<PeriodicEntry> {
    let any = entries.get_mut(ANY_MESSAGE)?.as_object_mut()?;
    let storm = any.shift_remove("storm")?;
    if any.is_empty() {
        entries.shift_remove(ANY_MESSAGE);
    }
    let entry = storm.as_object().expect("'storm' must be an object").clone();
    let every = reply::integer(&entry, "every").filter(|every| *every > 0).expect("'every' must be at least 1");
    Some(PeriodicEntry { every, entry })
}
