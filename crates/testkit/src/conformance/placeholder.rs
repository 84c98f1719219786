//! `{agent}`, `{base}`, `{dir}` and `{runId}` in a scenario's texts.

use serde_json::Value;

/// What placeholders stand for at the moment.
#[derive(Debug, Clone)]
pub(super) struct Names {
    /// Where the HTTP agent is asked.
    pub(super) agent: String,
    /// The server's root.
    pub(super) base: String,
    /// The project's folder.
    pub(super) dir: String,
    /// The newest result's id; empty before there is one.
    pub(super) run_id: String,
}

impl Names {
    pub(super) fn fill(&self, text: &str) -> String {
        [("{agent}", &self.agent), ("{base}", &self.base), ("{dir}", &self.dir), ("{runId}", &self.run_id)]
            .into_iter()
            .fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    /// Fills all texts of a value, keys too.
    pub(super) fn fill_all(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(text)),
            Value::Array(items) => items.iter().map(|item| self.fill_all(item)).collect(),
            Value::Object(map) => map.iter().map(|(key, item)| (self.fill(key), self.fill_all(item))).collect(),
            other => other.clone(),
        }
    }
}
