//! Explains a missing recording by its differences from the most similar one.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use karat_json::canonical::sorted;
use serde_json::{Map, Value};

use super::file::parse_request;
use super::key::{AGENT, Key, MESSAGE, SAMPLE, USER};

/// Maximum number of changes in a message.
const MAX_CHANGES: usize = 6;
/// Maximum number of names in a change.
const MAX_NAMES: usize = 3;
/// Maximum number of characters of a quoted string; longer strings are not quoted.
const MAX_QUOTE_CHARS: usize = 60;

/// The requests of all recordings in a folder.
#[derive(Debug)]
pub(super) struct RecordingIndex {
    requests: Vec<Request>,
    /// Indices into `requests`, by a part's name and hash.
    by_part: HashMap<(&'static str, u64), Vec<usize>>,
}

#[derive(Debug)]
struct Request {
    parts: Map<String, Value>,
    /// Hashes of the parts, which make comparisons cheap.
    hashes: HashMap<String, u64>,
}

impl Request {
    fn new(parts: Map<String, Value>) -> Self {
        let hashes = parts.iter().map(|(name, part)| (name.clone(), hash_part(part))).collect();
        Self { parts, hashes }
    }

    fn count_equal_parts(&self, other: &Request) -> usize {
        self.hashes.iter().filter(|(name, hash)| other.hashes.get(*name) == Some(hash)).count()
    }

    fn differs_in_sample_only(&self, other: &Request) -> bool {
        let other_parts = |request: &Request| request.hashes.keys().filter(|name| *name != SAMPLE).count();
        let equal = self.hashes.iter().filter(|(name, hash)| *name != SAMPLE && other.hashes.get(*name) == Some(hash));
        other_parts(self) == other_parts(other) && equal.count() == other_parts(self)
    }
}

fn hash_part(part: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    sorted(part).to_string().hash(&mut hasher);
    hasher.finish()
}

/// The parts by which recordings are indexed.
const INDEXED_PARTS: [&str; 3] = [AGENT, MESSAGE, USER];

impl RecordingIndex {
    /// Reads all recordings in a folder, in the order of their names; skips invalid files.
    pub(super) fn scan(folder: &Path) -> Self {
        let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| is_recording(path)).collect();
        paths.sort();
        Self::new(paths.iter().filter_map(|path| parse_request(&std::fs::read(path).ok()?)))
    }

    fn new(parts: impl Iterator<Item = Map<String, Value>>) -> Self {
        let requests: Vec<Request> = parts.map(Request::new).collect();
        let mut by_part: HashMap<(&'static str, u64), Vec<usize>> = HashMap::new();
        for (index, request) in requests.iter().enumerate() {
            for name in INDEXED_PARTS {
                if let Some(hash) = request.hashes.get(name) {
                    by_part.entry((name, *hash)).or_default().push(index);
                }
            }
        }
        Self { requests, by_part }
    }

    /// Describes the differences from the most similar recording; `None` if there is no similar one.
    pub(super) fn explain_miss(&self, key: &Key) -> Option<String> {
        let request = Request::new(key.parts().clone());
        let with_same = |part: &'static str| {
            let indices = request.hashes.get(part).and_then(|hash| self.by_part.get(&(part, *hash)));
            indices.into_iter().flatten().map(|index| &self.requests[*index])
        };
        let same_title = most_similar(with_same(key.title()), |recorded| (recorded.count_equal_parts(&request), 0));
        if let Some(similar) = same_title {
            if similar.differs_in_sample_only(&request) {
                let with_title = with_same(key.title());
                let times = with_title.filter(|recorded| recorded.differs_in_sample_only(&request)).count();
                return Some(too_few_samples(&request, times));
            }
            return Some(join_changes(differences(&similar.parts, &request.parts)));
        }
        let title = |request: &Request| plain_text(request.parts.get(key.title()));
        let new_title = title(&request);
        let same_agent = with_same(AGENT).filter(|recorded| recorded.parts.contains_key(key.title()));
        let similar = most_similar(same_agent, |recorded| {
            (recorded.count_equal_parts(&request), similarity(&title(recorded), &new_title))
        })?;
        let mut changes = differences(&similar.parts, &request.parts);
        if !is_similar(&title(similar), &new_title) {
            // Do not quote the message of an unrelated case.
            let mut others = similar.parts.clone();
            others.insert(key.title().to_owned(), key.parts().get(key.title()).cloned().unwrap_or_default());
            changes = differences(&others, &request.parts);
            changes.insert(0, format!("{} is new", label(key.title())));
        }
        Some(join_changes(changes))
    }
}

fn is_recording(path: &Path) -> bool {
    let is_hidden = path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
    !is_hidden && path.extension().is_some_and(|extension| extension == "json")
}

/// Returns the first request with the highest rank.
fn most_similar<'r>(
    requests: impl Iterator<Item = &'r Request>,
    rank: impl Fn(&Request) -> (usize, usize),
) -> Option<&'r Request> {
    let mut best: Option<((usize, usize), &Request)> = None;
    for request in requests {
        let rank = rank(request);
        if best.is_none_or(|(highest, _)| rank > highest) {
            best = Some((rank, request));
        }
    }
    best.map(|(_, request)| request)
}

/// Returns the number of characters in the common prefix and suffix of two strings.
fn similarity(left: &str, right: &str) -> usize {
    let (short, long) = if left.len() < right.len() { (left, right) } else { (right, left) };
    let start = short.chars().zip(long.chars()).take_while(|(left, right)| left == right).count();
    let rest = short.chars().count() - start;
    let end = short.chars().rev().zip(long.chars().rev()).take(rest).take_while(|(left, right)| left == right).count();
    start + end
}

fn is_similar(left: &str, right: &str) -> bool {
    similarity(left, right) * 2 >= left.chars().count().max(right.chars().count())
}

fn plain_text(part: Option<&Value>) -> String {
    match part {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

fn too_few_samples(request: &Request, times: usize) -> String {
    let sample = request.parts.get(SAMPLE).and_then(Value::as_u64).unwrap_or_default();
    let recorded = if times == 1 { "once".to_owned() } else { format!("{times} times") };
    format!("the same request is made {} times in this run but was recorded {recorded}", sample + 1)
}

fn join_changes(mut changes: Vec<String>) -> String {
    if changes.len() > MAX_CHANGES {
        let more = changes.len() - MAX_CHANGES;
        changes.truncate(MAX_CHANGES);
        changes.push(format!("and {more} more"));
    }
    changes.join(", ")
}

/// Describes the differences between two requests.
fn differences(before: &Map<String, Value>, now: &Map<String, Value>) -> Vec<String> {
    let mut changes = Vec::new();
    let names = now.keys().chain(before.keys().filter(|name| !now.contains_key(*name)));
    for name in names.filter(|name| *name != SAMPLE) {
        let previous_count = changes.len();
        match (before.get(name), now.get(name)) {
            (before, now) if before == now => continue,
            (Some(Value::Object(before)), Some(Value::Object(now))) => {
                push_member_changes(name, before, now, &mut changes);
            }
            (None, Some(Value::Object(now))) => push_member_changes(name, &Map::new(), now, &mut changes),
            (Some(Value::Object(before)), None) => push_member_changes(name, before, &Map::new(), &mut changes),
            (before, now) => changes.push(change(&label(name), before, now)),
        }
        if changes.len() == previous_count {
            // An empty object has no members to list.
            changes.push(format!("{} changed", label(name)));
        }
    }
    changes
}

fn push_member_changes(name: &str, before: &Map<String, Value>, now: &Map<String, Value>, changes: &mut Vec<String>) {
    if name == "parameters" {
        return push_leaf_changes("", before, now, changes);
    }
    let Some(singular) = name.strip_suffix('s') else {
        return push_leaf_changes(&format!("{} ", words(name)), before, now, changes);
    };
    let names_of = |test: &dyn Fn(&String) -> bool| -> Vec<&str> {
        let all: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        all.into_iter().filter(|name| test(name)).map(String::as_str).collect()
    };
    let singular = words(singular);
    let kinds: [(&str, Vec<&str>); 3] = [
        ("changed", names_of(&|name| before.contains_key(name) && now.contains_key(name) && before[name] != now[name])),
        ("added", names_of(&|name| !before.contains_key(name))),
        ("removed", names_of(&|name| !now.contains_key(name))),
    ];
    for (verb, names) in kinds.into_iter().filter(|(_, names)| !names.is_empty()) {
        let plural = if names.len() == 1 { "" } else { "s" };
        changes.push(format!("{} {singular}{plural} {verb} ({})", names.len(), join_names(&names)));
    }
}

fn join_names(names: &[&str]) -> String {
    let listed = names.iter().take(MAX_NAMES).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}

/// Adds each changed value of a tree with its path.
fn push_leaf_changes(path: &str, before: &Map<String, Value>, now: &Map<String, Value>, changes: &mut Vec<String>) {
    let names = now.keys().chain(before.keys().filter(|name| !now.contains_key(*name)));
    for name in names {
        match (before.get(name), now.get(name)) {
            (before, now) if before == now => {}
            (Some(Value::Object(before)), Some(Value::Object(now))) => {
                push_leaf_changes(&format!("{path}{name}."), before, now, changes);
            }
            (before, now) => changes.push(change(&format!("{path}{name}"), before, now)),
        }
    }
}

fn change(label: &str, before: Option<&Value>, now: Option<&Value>) -> String {
    let quoted = |value: Option<&Value>| match value {
        None => Some("not set".to_owned()),
        Some(value) => quote(value),
    };
    match (quoted(before), quoted(now)) {
        (Some(before), Some(now)) => format!("{label} was {before} and is now {now}"),
        _ if before.is_none() => format!("{label} was added"),
        _ if now.is_none() => format!("{label} was removed"),
        _ => format!("{label} changed"),
    }
}

/// Formats a value for a message; `None` for hashes, long strings and collections.
fn quote(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => {
            let is_hash = text.len() >= 12 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            (!is_hash && text.chars().count() <= MAX_QUOTE_CHARS).then(|| format!("'{text}'"))
        }
        Value::Number(_) | Value::Bool(_) | Value::Null => Some(value.to_string()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

fn label(name: &str) -> String {
    match name {
        "user" => "the prompt".to_owned(),
        "system" => "the system prompt".to_owned(),
        name if name.ends_with('s') => words(name),
        name => format!("the {}", words(name)),
    }
}

/// Splits camel case: `systemPrompt` becomes `system prompt`.
fn words(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 4);
    for character in name.chars() {
        if character.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(character.to_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use karat_core::redact::Redactor;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        let Value::Object(map) = value else { panic!("expected an object") };
        map
    }

    fn recorded() -> Value {
        json!({
            "agent": "openai:m", "model": "m-1", "parameters": {"temperature": 0.2, "seed": 7},
            "systemPrompt": "0123456789ab", "tools": {"get_weather": "aaaaaaaaaaaa", "get_time": "bbbbbbbbbbbb"},
            "message": "What's the weather in Paris?", "stubs": {"get_weather": {"t": 18}}, "maxTurns": 5, "sample": 0,
        })
    }

    fn explain_miss(change: &[(&str, Value)]) -> String {
        let other = json!({"agent": "openai:m", "message": "something else entirely", "sample": 0});
        let mut now = map(recorded());
        for (name, part) in change {
            if part.is_null() {
                now.shift_remove(*name)
            } else {
                now.insert((*name).to_owned(), part.clone())
            };
        }
        let index = RecordingIndex::new([map(other), map(recorded())].into_iter());
        let key = Key::new(now, MESSAGE, &Redactor::default());
        index.explain_miss(&key).unwrap_or_else(|| "no similar recording".to_owned())
    }

    #[rstest]
    #[case(&[("systemPrompt", json!("ba9876543210"))], "the system prompt changed")]
    #[case(&[("model", json!("m-2"))], "the model was 'm-1' and is now 'm-2'")]
    #[case(&[("agent", json!("anthropic:n"))], "the agent was 'openai:m' and is now 'anthropic:n'")]
    #[case(
        &[("parameters", json!({"temperature": 0.7, "maxTokens": 9}))],
        "maxTokens was not set and is now 9, temperature was 0.2 and is now 0.7, seed was 7 and is now not set"
    )]
    #[case(
        &[("tools", json!({"get_weather": "cccccccccccc", "get_time": "bbbbbbbbbbbb"}))],
        "1 tool changed (get_weather)"
    )]
    #[case(
        &[("tools", json!({"a": "a", "b": "b", "c": "c", "d": "d"}))],
        "4 tools added (a, b, c and 1 more), 2 tools removed (get_time, get_weather)"
    )]
    #[case(&[("stubs", json!({"get_weather": {"t": 19}}))], "1 stub changed (get_weather)")]
    #[case(&[("stubs", Value::Null)], "1 stub removed (get_weather)")]
    #[case(&[("maxTurns", Value::Null)], "max turns was 5 and is now not set")]
    #[case(&[("headers", json!({}))], "headers changed")]
    #[case(&[("script", json!("0123456789ab"))], "the script was added")]
    #[case(&[("request", json!({"method": "PUT", "body": {"a": [1]}}))], "request body was added, request method was not set and is now 'PUT'")]
    #[case(&[("sample", json!(1))], "the same request is made 2 times in this run but was recorded once")]
    #[case(&[("sample", json!(1)), ("model", json!("m-2"))], "the model was 'm-1' and is now 'm-2'")]
    #[case(
        &[("message", json!("What's the weather in Rome?"))],
        "the message was 'What's the weather in Paris?' and is now 'What's the weather in Rome?'"
    )]
    #[case(&[("message", json!("Play some jazz."))], "the message is new")]
    #[case(&[("message", json!("Play some jazz.")), ("model", json!("m-2"))], "the message is new, the model was 'm-1' and is now 'm-2'")]
    #[case(&[("message", json!("Play some jazz.")), ("agent", json!("b"))], "no similar recording")]
    fn describes_changes(#[case] change: &[(&str, Value)], #[case] expected: &str) {
        assert_eq!(explain_miss(change), expected);
    }

    #[test]
    fn truncates_long_lists_of_changes() {
        let parameters: Map<String, Value> = (0..9).map(|number| (format!("p{number}"), number.into())).collect();
        let reason = explain_miss(&[("parameters", Value::Object(parameters))]);
        assert!(reason.ends_with("p5 was not set and is now 5, and 5 more"), "{reason}");
    }
}
