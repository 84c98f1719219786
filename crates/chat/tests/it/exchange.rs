//! Recorded exchanges with agents, with the expected reply of each.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

/// A request to an agent and its reply.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Exchange {
    #[serde(skip)]
    pub(crate) file: PathBuf,
    /// The product and the name of the file.
    #[serde(skip)]
    pub(crate) name: String,
    pub(crate) content_type: Option<String>,
    pub(crate) body: String,
    pub(crate) expected: Expected,
}

/// The expected reply according to the product's documentation.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Expected {
    pub(crate) text: String,
    pub(crate) calls: Vec<ExpectedCall>,
    pub(crate) input_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
    pub(crate) approval: Option<String>,
    pub(crate) error: Option<String>,
    #[serde(rename = "callsTold")]
    pub(crate) reports_calls: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ExpectedCall {
    pub(crate) name: String,
    /// Absent if the arguments are in an earlier reply that was not recorded.
    pub(crate) arguments: Option<Value>,
    pub(crate) result: Option<Value>,
    pub(crate) failed: Option<bool>,
}

/// Reads all exchanges, by product and name.
pub(crate) fn exchanges() -> Vec<Exchange> {
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "agents", "tests", "fixtures", "replies"].iter().collect();
    let mut files: Vec<PathBuf> = list(&folder).iter().flat_map(|product| list(product)).collect();
    files.sort();
    files.iter().map(|file| read(file)).collect()
}

fn list(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.expect("readable folder").path()).collect()
}

#[expect(clippy::disallowed_methods, reason = "tests read fixtures")]
pub(crate) fn read(file: &Path) -> Exchange {
    let opened = File::open(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let exchange: Exchange =
        serde_json::from_reader(opened).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let name: Vec<_> = file.iter().rev().take(2).map(|part| part.to_string_lossy()).collect();
    Exchange { file: file.to_owned(), name: format!("{}/{}", name[1], name[0]), ..exchange }
}

impl Exchange {
    /// Returns the body as the value that `read_reply` takes; `None` if it is neither JSON nor a stream.
    pub(crate) fn value(&self) -> Option<Value> {
        match self.content_type.as_deref().unwrap_or_default() {
            kind if kind.contains("event-stream") => {
                // Rasa sends JSON Lines with this content type.
                let events = sse_events(&self.body);
                if events.is_empty() { json_lines(&self.body) } else { Some(Value::Array(events)) }
            }
            kind if kind.contains("json") => serde_json::from_str(&self.body).ok().or_else(|| json_lines(&self.body)),
            _ => json_lines(&self.body),
        }
    }
}

/// Splits a complete body into events. Names that the data repeats are dropped.
pub(crate) fn sse_events(body: &str) -> Vec<Value> {
    let body = body.replace("\r\n", "\n");
    let mut events = Vec::new();
    for block in body.split("\n\n") {
        let field = |name: &'static str| {
            block
                .lines()
                .filter_map(move |line| line.strip_prefix(name)?.strip_prefix(':'))
                .map(|value| value.strip_prefix(' ').unwrap_or(value))
        };
        let data = field("data").collect::<Vec<_>>().join("\n");
        if data == "[DONE]" || field("data").next().is_none() && field("event").next().is_none() {
            continue;
        }
        let data: Value = serde_json::from_str(&data).unwrap_or(Value::String(data));
        let repeats = |name: &str| ["type", "event"].iter().any(|key| data.get(*key).is_some_and(|kind| kind == name));
        match field("event").next_back() {
            Some(name) if !repeats(name) => events.push(json!({"event": name, "data": data})),
            _ => events.push(data),
        }
    }
    events
}

fn json_lines(body: &str) -> Option<Value> {
    body.lines().filter(|line| !line.trim().is_empty()).map(|line| serde_json::from_str::<Value>(line).ok()).collect()
}
