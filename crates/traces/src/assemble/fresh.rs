//! Which messages are new.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use karat_core::document::{Message, StepCall};
use serde_json::Value;

/// The messages of all steps so far. A model is given the whole conversation each time; a step's input is what was added.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// How often each was in one step at most: who says the same twice says something new the second time.
    times: HashMap<u64, usize>,
}

impl Seen {
    /// Returns what no step before had, and takes note of it and of what the answer says.
    pub(super) fn fresh(&mut self, input: Vec<Message>, answer: &[u64]) -> Vec<Message> {
        let mut times: HashMap<u64, usize> = HashMap::with_capacity(input.len() + answer.len());
        let mut is_new = Vec::with_capacity(input.len());
        for message in &input {
            let mut new = false;
            for said in what_is_said(message) {
                let here = times.entry(said).or_default();
                *here += 1;
                new |= *here > self.times.get(&said).copied().unwrap_or(0);
            }
            is_new.push(new);
        }
        let added = input.iter().zip(&is_new).any(|(message, new)| *new && message.role != "system");
        if !added {
            // The same again, to a sub-agent or after a failure: what is to be answered is what comes after the last answer.
            let after = input.iter().rposition(|message| message.role == "assistant").map_or(0, |at| at + 1);
            for (message, new) in input.iter().zip(&mut is_new).skip(after) {
                *new |= message.role != "system";
            }
        }
        for said in answer {
            *times.entry(*said).or_default() += 1;
        }
        for (said, count) in times {
            let most = self.times.entry(said).or_default();
            *most = count.max(*most);
        }
        input.into_iter().zip(is_new).filter(|(_, new)| *new).map(|(message, _)| message).collect()
    }
}

/// Returns what an answer says, one by one: its calls, or its text where it calls nothing.
pub(super) fn answered(response: &str, calls: &[StepCall]) -> Vec<u64> {
    if calls.is_empty() && response.is_empty() { Vec::new() } else { of_parts("assistant", response, &[], calls) }
}

/// Returns what a message says. Sources write the same message in several ways, together or apart, so calls and answers of
/// tools go each by itself, by their ids where they have one.
fn what_is_said(message: &Message) -> Vec<u64> {
    match &message.tool_call_id {
        Some(id) if message.role == "tool" && message.tool_calls.is_empty() => vec![hash(("answer", id))],
        _ => of_parts(&message.role, &message.content, &message.parts, &message.tool_calls),
    }
}

fn of_parts(role: &str, content: &str, parts: &[Value], calls: &[StepCall]) -> Vec<u64> {
    if calls.is_empty() {
        let parts: Vec<String> = parts.iter().map(Value::to_string).collect();
        return vec![hash((role, content.trim(), parts))];
    }
    let of_call = |call: &StepCall| match &call.id {
        Some(id) => hash(("call", id)),
        None => hash((&call.name, call.arguments.to_string())),
    };
    calls.iter().map(of_call).collect()
}

fn hash(said: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    said.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn said(words: &[&str]) -> Vec<Message> {
        words
            .iter()
            .map(|word| {
                let (role, content) = word.split_once(':').unwrap();
                Message { role: role.to_owned(), content: content.to_owned(), ..Message::default() }
            })
            .collect()
    }

    #[rstest]
    #[case::the_first_is_all_new(&[], &["system:s", "user:a"], &["system:s", "user:a"])]
    #[case::only_what_was_added(&["system:s", "user:a"], &["system:s", "user:a", "assistant:ok", "user:b"], &["user:b"])]
    #[case::the_same_word_twice(&["user:yes"], &["user:yes", "assistant:ok", "user:yes"], &["user:yes"])]
    #[case::a_shortened_history(&["user:a"], &["assistant:ok", "user:a"], &["user:a"])]
    #[case::a_second_try(&["system:s", "user:a"], &["system:s", "user:a"], &["user:a"])]
    #[case::a_sub_agent_with_the_same_words(&["system:s", "user:a"], &["system:t", "user:a"], &["system:t", "user:a"])]
    #[case::spaces_do_not_make_it_new(&["user:a"], &["user:a ", "assistant: ok", "user:b"], &["user:b"])]
    fn what_is_new(#[case] before: &[&str], #[case] now: &[&str], #[case] expected: &[&str]) {
        let mut seen = Seen::default();
        seen.fresh(said(before), &answered("ok", &[]));
        assert_eq!(seen.fresh(said(now), &[]), said(expected));
    }
}
