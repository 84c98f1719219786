//! Finds the new messages of each step.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use karat_core::document::{Message, StepCall};
use serde_json::Value;

/// The messages of all steps so far. A model receives the whole conversation each time, but a step's input is only what
/// was added.
#[derive(Debug, Default)]
pub(super) struct SeenMessages {
    /// The maximum number of occurrences of each hash in one step: a repeated message is new the second time.
    counts: HashMap<u64, usize>,
}

impl SeenMessages {
    /// Returns the messages that no earlier step had, and records them and the output.
    pub(super) fn take_new(&mut self, input: Vec<Message>, output: &[u64]) -> Vec<Message> {
        let mut counts: HashMap<u64, usize> = HashMap::with_capacity(input.len() + output.len());
        let mut is_new = Vec::with_capacity(input.len());
        for message in &input {
            let mut new = false;
            for hash in message_hashes(message) {
                let count = counts.entry(hash).or_default();
                *count += 1;
                new |= *count > self.counts.get(&hash).copied().unwrap_or(0);
            }
            is_new.push(new);
        }
        let added = input.iter().zip(&is_new).any(|(message, new)| *new && message.role != "system");
        if !added {
            // A repeated conversation, for a sub-agent or after a failure: the messages after the last answer are new.
            let after = input.iter().rposition(|message| message.role == "assistant").map_or(0, |at| at + 1);
            for (message, new) in input.iter().zip(&mut is_new).skip(after) {
                *new |= message.role != "system";
            }
        }
        for hash in output {
            *counts.entry(*hash).or_default() += 1;
        }
        for (hash, count) in counts {
            let maximum = self.counts.entry(hash).or_default();
            *maximum = count.max(*maximum);
        }
        input.into_iter().zip(is_new).filter(|(_, new)| *new).map(|(message, _)| message).collect()
    }
}

/// Returns the hashes of an output: of its calls, or of its text if it has none.
pub(super) fn output_hashes(response: &str, calls: &[StepCall]) -> Vec<u64> {
    if calls.is_empty() && response.is_empty() { Vec::new() } else { hash_content("assistant", response, &[], calls) }
}

/// Returns the hashes of a message. Sources may split or join the same messages, so calls and tool results are hashed
/// separately, by their ids if they have one.
fn message_hashes(message: &Message) -> Vec<u64> {
    match &message.tool_call_id {
        Some(id) if message.role == "tool" && message.tool_calls.is_empty() => vec![hash(("answer", id))],
        _ => hash_content(&message.role, &message.content, &message.parts, &message.tool_calls),
    }
}

fn hash_content(role: &str, content: &str, parts: &[Value], calls: &[StepCall]) -> Vec<u64> {
    if calls.is_empty() {
        let parts: Vec<String> = parts.iter().map(Value::to_string).collect();
        return vec![hash((role, content.trim(), parts))];
    }
    let hash_call = |call: &StepCall| match &call.id {
        Some(id) => hash(("call", id)),
        None => hash((&call.name, call.arguments.to_string())),
    };
    calls.iter().map(hash_call).collect()
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn messages(texts: &[&str]) -> Vec<Message> {
        texts
            .iter()
            .map(|text| {
                let (role, content) = text.split_once(':').unwrap();
                Message { role: role.to_owned(), content: content.to_owned(), ..Message::default() }
            })
            .collect()
    }

    #[rstest]
    #[case::first_step(&[], &["system:s", "user:a"], &["system:s", "user:a"])]
    #[case::added_messages(&["system:s", "user:a"], &["system:s", "user:a", "assistant:ok", "user:b"], &["user:b"])]
    #[case::a_repeated_message(&["user:yes"], &["user:yes", "assistant:ok", "user:yes"], &["user:yes"])]
    #[case::a_shortened_history(&["user:a"], &["assistant:ok", "user:a"], &["user:a"])]
    #[case::a_retry(&["system:s", "user:a"], &["system:s", "user:a"], &["user:a"])]
    #[case::a_sub_agent_with_the_same_question(&["system:s", "user:a"], &["system:t", "user:a"], &["system:t", "user:a"])]
    #[case::whitespace_is_ignored(&["user:a"], &["user:a ", "assistant: ok", "user:b"], &["user:b"])]
    fn finds_new_messages(#[case] before: &[&str], #[case] now: &[&str], #[case] expected: &[&str]) {
        let mut seen = SeenMessages::default();
        seen.take_new(messages(before), &output_hashes("ok", &[]));
        assert_eq!(seen.take_new(messages(now), &[]), messages(expected));
    }
}
