//! The facts of the test data, as tokens with their values.

use std::cmp::Reverse;

use karat_core::similarity::words;
use karat_core::text::shorten;
use serde_json::{Map, Value, json};

use crate::Brief;

/// So many tokens are told; of more, those whose paths have the most words in common with the tool.
const MOST_TOKENS: usize = 150;

/// So many are looked at.
const MOST_LEAVES: usize = 20_000;

const LONGEST_VALUE: usize = 100;

/// Returns the tokens that a case can hold, each with its value, and how many more there are.
pub(super) fn seed_tokens(brief: &Brief) -> Value {
    let mut leaves = Leaves { found: Vec::new(), more: 0 };
    if let Some(seed) = &brief.sources.seed {
        leaves.walk(seed, "");
    }
    let Leaves { found, more } = leaves;
    let more = more + found.len().saturating_sub(MOST_TOKENS);
    let mut chosen: Vec<usize> = (0..found.len()).collect();
    if found.len() > MOST_TOKENS {
        let tool = &brief.tool;
        let schema = tool.input_schema.get().map(Value::to_string).unwrap_or_default();
        let texts = [tool.name.as_str(), tool.description.as_deref().unwrap_or_default(), &schema];
        let mut known = words(&texts.join(" "));
        known.extend(brief.triggers.iter().flat_map(|phrase| words(phrase)));
        chosen.sort_by_cached_key(|&place| Reverse(words(&found[place].0).intersection(&known).count()));
        chosen.truncate(MOST_TOKENS);
        chosen.sort_unstable();
    }
    let tokens: Map<String, Value> = chosen.into_iter().map(|place| token(&found[place])).collect();
    json!({"tokens": tokens, "leftOut": more})
}

fn token((path, value): &(String, &Value)) -> (String, Value) {
    let value = match value {
        Value::String(text) => shorten(text, LONGEST_VALUE).into(),
        other => (*other).clone(),
    };
    (format!("{{{{seed:{path}}}}}"), value)
}

/// The scalars of a tree, each with its path.
struct Leaves<'v> {
    found: Vec<(String, &'v Value)>,
    more: usize,
}

impl<'v> Leaves<'v> {
    fn walk(&mut self, value: &'v Value, path: &str) {
        match value {
            Value::Object(members) => {
                for (key, member) in members.iter().filter(|(key, _)| can_stand_in_a_path(key)) {
                    let dot = if path.is_empty() { "" } else { "." };
                    self.walk(member, &format!("{path}{dot}{key}"));
                }
            }
            // A path begins with a key.
            Value::Array(_) if path.is_empty() => {}
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.walk(item, &format!("{path}[{index}]"));
                }
            }
            // Nothing proves nothing.
            Value::Null | Value::Bool(_) => {}
            Value::String(text) if text.trim().is_empty() => {}
            _ if path.is_empty() => {}
            _ if self.found.len() < MOST_LEAVES => self.found.push((path.to_owned(), value)),
            _ => self.more += 1,
        }
    }
}

fn can_stand_in_a_path(key: &str) -> bool {
    !key.is_empty() && !key.contains(['.', '[', ']', '}'])
}
