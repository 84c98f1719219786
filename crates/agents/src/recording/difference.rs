//! What a question that was never recorded has changed against the nearest that was.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use karat_json::canonical::sorted;
use serde_json::{Map, Value};

use super::file::read_asked;
use super::key::{AGENT, Key, MESSAGE, SAMPLE, USER};

/// How much of what changed is told.
const MOST_CHANGES: usize = 6;
const MOST_NAMES: usize = 3;
/// A longer text is not quoted.
const LONGEST_QUOTE: usize = 60;

/// What the folder's recordings were asked.
#[derive(Debug)]
pub(super) struct Known {
    questions: Vec<Question>,
    /// Places in `questions`, by a part's name and value.
    by_part: HashMap<(&'static str, u64), Vec<usize>>,
}

#[derive(Debug)]
struct Question {
    asked: Map<String, Value>,
    /// Of every part, so that comparing thousands with thousands costs little.
    prints: HashMap<String, u64>,
}

impl Question {
    fn new(asked: Map<String, Value>) -> Self {
        let prints = asked.iter().map(|(name, part)| (name.clone(), print(part))).collect();
        Self { asked, prints }
    }

    fn equal_parts(&self, other: &Question) -> usize {
        self.prints.iter().filter(|(name, print)| other.prints.get(*name) == Some(print)).count()
    }

    fn differs_in_sample_only(&self, other: &Question) -> bool {
        let without = |question: &Question| question.prints.keys().filter(|name| *name != SAMPLE).count();
        let equal =
            self.prints.iter().filter(|(name, print)| *name != SAMPLE && other.prints.get(*name) == Some(print));
        without(self) == without(other) && equal.count() == without(self)
    }
}

fn print(part: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    sorted(part).to_string().hash(&mut hasher);
    hasher.finish()
}

/// The parts that recordings are looked up by.
const LOOKED_UP: [&str; 3] = [AGENT, MESSAGE, USER];

impl Known {
    /// Reads what every recording of a folder was asked, in the order of names; what cannot be read is none.
    pub(super) fn scan(folder: &Path) -> Self {
        let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| is_recording(path)).collect();
        paths.sort();
        Self::of(paths.iter().filter_map(|path| read_asked(&std::fs::read(path).ok()?)))
    }

    fn of(asked: impl Iterator<Item = Map<String, Value>>) -> Self {
        let questions: Vec<Question> = asked.map(Question::new).collect();
        let mut by_part: HashMap<(&'static str, u64), Vec<usize>> = HashMap::new();
        for (place, question) in questions.iter().enumerate() {
            for name in LOOKED_UP {
                if let Some(print) = question.prints.get(name) {
                    by_part.entry((name, *print)).or_default().push(place);
                }
            }
        }
        Self { questions, by_part }
    }

    /// Says what is different from the nearest recording; none where nothing is like it.
    pub(super) fn why_missed(&self, key: &Key) -> Option<String> {
        let question = Question::new(key.asked().clone());
        let with_same = |part: &'static str| {
            let places = question.prints.get(part).and_then(|print| self.by_part.get(&(part, *print)));
            places.into_iter().flatten().map(|place| &self.questions[*place])
        };
        let same_title = nearest(with_same(key.title()), |known| (known.equal_parts(&question), 0));
        if let Some(near) = same_title {
            if near.differs_in_sample_only(&question) {
                let times = with_same(key.title()).filter(|known| known.differs_in_sample_only(&question)).count();
                return Some(too_few_samples(&question, times));
            }
            return Some(told(differences(&near.asked, &question.asked)));
        }
        let title = |question: &Question| plain_text(question.asked.get(key.title()));
        let now = title(&question);
        let of_this_kind = with_same(AGENT).filter(|known| known.asked.contains_key(key.title()));
        let near = nearest(of_this_kind, |known| (known.equal_parts(&question), likeness(&title(known), &now)))?;
        let mut changes = differences(&near.asked, &question.asked);
        if !is_alike(&title(near), &now) {
            // What was asked instead would be told of a case that has nothing to do with this one.
            let mut others = near.asked.clone();
            others.insert(key.title().to_owned(), key.asked().get(key.title()).cloned().unwrap_or_default());
            changes = differences(&others, &question.asked);
            changes.insert(0, format!("{} is new", label(key.title())));
        }
        Some(told(changes))
    }
}

fn is_recording(path: &Path) -> bool {
    let is_hidden = path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
    !is_hidden && path.extension().is_some_and(|extension| extension == "json")
}

/// Returns the first of those that rank highest.
fn nearest<'q>(
    questions: impl Iterator<Item = &'q Question>,
    rank: impl Fn(&Question) -> (usize, usize),
) -> Option<&'q Question> {
    let mut best: Option<((usize, usize), &Question)> = None;
    for question in questions {
        let rank = rank(question);
        if best.is_none_or(|(highest, _)| rank > highest) {
            best = Some((rank, question));
        }
    }
    best.map(|(_, question)| question)
}

/// Counts the characters that two texts share at their beginnings and ends.
fn likeness(left: &str, right: &str) -> usize {
    let (short, long) = if left.len() < right.len() { (left, right) } else { (right, left) };
    let start = short.chars().zip(long.chars()).take_while(|(left, right)| left == right).count();
    let rest = short.chars().count() - start;
    let end = short.chars().rev().zip(long.chars().rev()).take(rest).take_while(|(left, right)| left == right).count();
    start + end
}

fn is_alike(left: &str, right: &str) -> bool {
    likeness(left, right) * 2 >= left.chars().count().max(right.chars().count())
}

fn plain_text(part: Option<&Value>) -> String {
    match part {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

fn too_few_samples(question: &Question, times: usize) -> String {
    let sample = question.asked.get(SAMPLE).and_then(Value::as_u64).unwrap_or_default();
    let recorded = if times == 1 { "once".to_owned() } else { format!("{times} times") };
    format!("the same is asked {} times in this run and was recorded {recorded}", sample + 1)
}

fn told(mut changes: Vec<String>) -> String {
    if changes.len() > MOST_CHANGES {
        let more = changes.len() - MOST_CHANGES;
        changes.truncate(MOST_CHANGES);
        changes.push(format!("and {more} more"));
    }
    changes.join(", ")
}

/// Lists what changed from one question to another, in words.
fn differences(before: &Map<String, Value>, now: &Map<String, Value>) -> Vec<String> {
    let mut changes = Vec::new();
    let names = now.keys().chain(before.keys().filter(|name| !now.contains_key(*name)));
    for name in names.filter(|name| *name != SAMPLE) {
        let told = changes.len();
        match (before.get(name), now.get(name)) {
            (before, now) if before == now => continue,
            (Some(Value::Object(before)), Some(Value::Object(now))) => members(name, before, now, &mut changes),
            (None, Some(Value::Object(now))) => members(name, &Map::new(), now, &mut changes),
            (Some(Value::Object(before)), None) => members(name, before, &Map::new(), &mut changes),
            (before, now) => changes.push(change(&label(name), before, now)),
        }
        if changes.len() == told {
            // An object that is empty has no members to tell of.
            changes.push(format!("{} changed", label(name)));
        }
    }
    changes
}

fn members(name: &str, before: &Map<String, Value>, now: &Map<String, Value>, changes: &mut Vec<String>) {
    if name == "parameters" {
        return leaves("", before, now, changes);
    }
    let Some(one) = name.strip_suffix('s') else {
        return leaves(&format!("{} ", words(name)), before, now, changes);
    };
    let names_of = |test: &dyn Fn(&String) -> bool| -> Vec<&str> {
        let all: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        all.into_iter().filter(|name| test(name)).map(String::as_str).collect()
    };
    let one = words(one);
    let kinds: [(&str, Vec<&str>); 3] = [
        ("changed", names_of(&|name| before.contains_key(name) && now.contains_key(name) && before[name] != now[name])),
        ("added", names_of(&|name| !before.contains_key(name))),
        ("removed", names_of(&|name| !now.contains_key(name))),
    ];
    for (verb, names) in kinds.into_iter().filter(|(_, names)| !names.is_empty()) {
        let plural = if names.len() == 1 { "" } else { "s" };
        changes.push(format!("{} {one}{plural} {verb} ({})", names.len(), listed(&names)));
    }
}

fn listed(names: &[&str]) -> String {
    let shown = names.iter().take(MOST_NAMES).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Tells each value of a tree that changed, by its path.
fn leaves(path: &str, before: &Map<String, Value>, now: &Map<String, Value>, changes: &mut Vec<String>) {
    let names = now.keys().chain(before.keys().filter(|name| !now.contains_key(*name)));
    for name in names {
        match (before.get(name), now.get(name)) {
            (before, now) if before == now => {}
            (Some(Value::Object(before)), Some(Value::Object(now))) => {
                leaves(&format!("{path}{name}."), before, now, changes);
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
        (Some(before), Some(now)) => format!("{label} was {before} and is {now}"),
        _ if before.is_none() => format!("{label} was added"),
        _ if now.is_none() => format!("{label} was removed"),
        _ => format!("{label} changed"),
    }
}

/// Returns a value as a message shows it; none where that would tell nobody anything.
fn quote(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => {
            let is_hash = text.len() >= 12 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            (!is_hash && text.chars().count() <= LONGEST_QUOTE).then(|| format!("'{text}'"))
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

/// Returns `systemPrompt` as `system prompt`.
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
        let Value::Object(map) = value else { panic!("parts have names") };
        map
    }

    fn recorded() -> Value {
        json!({
            "agent": "openai:m", "model": "m-1", "parameters": {"temperature": 0.2, "seed": 7},
            "systemPrompt": "0123456789ab", "tools": {"get_weather": "aaaaaaaaaaaa", "get_time": "bbbbbbbbbbbb"},
            "message": "What's the weather in Paris?", "stubs": {"get_weather": {"t": 18}}, "maxTurns": 5, "sample": 0,
        })
    }

    fn why_missed(change: &[(&str, Value)]) -> String {
        let other = json!({"agent": "openai:m", "message": "something else entirely", "sample": 0});
        let mut now = map(recorded());
        for (name, part) in change {
            if part.is_null() {
                now.shift_remove(*name)
            } else {
                now.insert((*name).to_owned(), part.clone())
            };
        }
        let known = Known::of([map(other), map(recorded())].into_iter());
        let key = Key::new(now, MESSAGE, &Redactor::default());
        known.why_missed(&key).unwrap_or_else(|| "nothing is like it".to_owned())
    }

    #[rstest]
    #[case(&[("systemPrompt", json!("ba9876543210"))], "the system prompt changed")]
    #[case(&[("model", json!("m-2"))], "the model was 'm-1' and is 'm-2'")]
    #[case(&[("agent", json!("anthropic:n"))], "the agent was 'openai:m' and is 'anthropic:n'")]
    #[case(
        &[("parameters", json!({"temperature": 0.7, "maxTokens": 9}))],
        "maxTokens was not set and is 9, temperature was 0.2 and is 0.7, seed was 7 and is not set"
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
    #[case(&[("maxTurns", Value::Null)], "max turns was 5 and is not set")]
    #[case(&[("headers", json!({}))], "headers changed")]
    #[case(&[("script", json!("0123456789ab"))], "the script was added")]
    #[case(&[("request", json!({"method": "PUT", "body": {"a": [1]}}))], "request body was added, request method was not set and is 'PUT'")]
    #[case(&[("sample", json!(1))], "the same is asked 2 times in this run and was recorded once")]
    #[case(&[("sample", json!(1)), ("model", json!("m-2"))], "the model was 'm-1' and is 'm-2'")]
    #[case(
        &[("message", json!("What's the weather in Rome?"))],
        "the message was 'What's the weather in Paris?' and is 'What's the weather in Rome?'"
    )]
    #[case(&[("message", json!("Play some jazz."))], "the message is new")]
    #[case(&[("message", json!("Play some jazz.")), ("model", json!("m-2"))], "the message is new, the model was 'm-1' and is 'm-2'")]
    #[case(&[("message", json!("Play some jazz.")), ("agent", json!("b"))], "nothing is like it")]
    fn says_what_changed(#[case] change: &[(&str, Value)], #[case] expected: &str) {
        assert_eq!(why_missed(change), expected);
    }

    #[test]
    fn much_that_changed_is_not_all_told() {
        let parameters: Map<String, Value> = (0..9).map(|number| (format!("p{number}"), number.into())).collect();
        let why = why_missed(&[("parameters", Value::Object(parameters))]);
        assert!(why.ends_with("p5 was not set and is 5, and 5 more"), "{why}");
    }
}
