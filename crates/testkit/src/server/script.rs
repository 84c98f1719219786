//! Finds a request's reply in the script.

use serde_json::{Map, Value, json};

use super::reply::{self, Reply};

const ANY_MESSAGE: &str = "*";

/// The keys by which an entry says the reply itself, not an agent's answer.
const REPLY_KEYS: [&str; 8] = ["raw", "rawBytes", "json", "status", "hangup", "huge", "endless", "slowHeaders"];

/// A script that was found to be one.
#[derive(Debug)]
pub(super) struct Script(Map<String, Value>);

impl Script {
    pub(super) fn read(script: Value) -> Self {
        let Value::Object(entries) = script else {
            panic!("a script is an object of entries by message, not {script}");
        };
        for (message, entry) in &entries {
            let steps = entry.get("sequence").and_then(Value::as_array);
            let one = std::slice::from_ref(entry);
            let steps = steps.map_or(one, Vec::as_slice);
            assert!(!steps.is_empty(), "the sequence of '{message}' has no entry");
            let answers = !message.starts_with("GET ");
            assert!(!answers || steps.iter().all(Value::is_object), "the entry of '{message}' is not an object");
        }
        Self(entries)
    }

    /// Returns the reply to a path that is fetched.
    pub(super) fn get(&self, path: &str) -> Reply {
        match self.0.get(&format!("GET {path}")) {
            None => Reply::json(404, &json!({"error": "no such path"})),
            Some(Value::Object(entry)) if speaks_for_itself(entry) => reply::read(entry),
            Some(content) => Reply::json(200, content),
        }
    }

    /// Returns the reply to a message that came `before` times already.
    pub(super) fn post(&self, message: &str, before: usize) -> Reply {
        let entry = self.0.get(message).or_else(|| self.0.get(ANY_MESSAGE));
        let entry = match entry.and_then(|entry| entry.get("sequence")).and_then(Value::as_array) {
            Some(steps) => steps.get(before).or_else(|| steps.last()),
            None => entry,
        };
        let Some(entry) = entry.and_then(Value::as_object) else {
            return Reply::json(404, &json!({"error": "message not scripted"}));
        };
        if speaks_for_itself(entry) { reply::read(entry) } else { answer(entry) }
    }
}

fn speaks_for_itself(entry: &Map<String, Value>) -> bool {
    REPLY_KEYS.iter().any(|key| entry.contains_key(*key))
}

/// Returns the entry as an agent's answer, with what an agent always says.
fn answer(entry: &Map<String, Value>) -> Reply {
    let mut wire = entry.clone();
    let mut outer = Map::new();
    for key in ["delayMs", "truncated"] {
        if let Some(value) = wire.shift_remove(key) {
            outer.insert(key.to_owned(), value);
        }
    }
    wire.entry("response").or_insert_with(|| json!(""));
    wire.entry("toolCalls").or_insert_with(|| json!([]));
    outer.insert("json".to_owned(), Value::Object(wire));
    reply::read(&outer)
}
