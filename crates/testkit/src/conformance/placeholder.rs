//! The placeholders `{agent}`, `{base}`, `{dir}` and `{runId}` in scenarios.

use serde_json::Value;

/// The current values of the placeholders.
#[derive(Debug, Clone)]
pub(super) struct Placeholders {
    /// The URL of the HTTP agent.
    pub(super) agent: String,
    /// The base URL of the server.
    pub(super) base: String,
    /// The project folder.
    pub(super) dir: String,
    /// The run id of the newest result; empty before the first one.
    pub(super) run_id: String,
}

impl Placeholders {
    pub(super) fn fill(&self, text: &str) -> String {
        [("{agent}", &self.agent), ("{base}", &self.base), ("{dir}", &self.dir), ("{runId}", &self.run_id)]
            .into_iter()
            .fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    /// Fills all strings of a value, including keys.
    pub(super) fn fill_all(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(text)),
            Value::Array(items) => items.iter().map(|item| self.fill_all(item)).collect(),
            Value::Object(map) => map.iter().map(|(key, item)| (self.fill(key), self.fill_all(item))).collect(),
            other => other.clone(),
        }
    }
}
