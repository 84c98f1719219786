//! Which messages are new.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use karat_core::document::Message;

/// The messages of all steps so far. A model is given the whole conversation each time; a step's input is what was added.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// How often each was in one step at most: who says the same twice says something new the second time.
    times: HashMap<u64, usize>,
}

impl Seen {
    /// Returns what no step before had, and takes note of it and of the answer.
    pub(super) fn fresh(&mut self, input: Vec<Message>, answer: &Message) -> Vec<Message> {
        let mut times: HashMap<u64, usize> = HashMap::with_capacity(input.len() + 1);
        let mut is_new = Vec::with_capacity(input.len());
        for message in &input {
            let key = key(message);
            let here = times.entry(key).or_default();
            *here += 1;
            is_new.push(*here > self.times.get(&key).copied().unwrap_or(0));
        }
        let added = input.iter().zip(&is_new).any(|(message, new)| *new && message.role != "system");
        if !added {
            // The same again, to a sub-agent or after a failure: what is to be answered is what comes after the last answer.
            let after = input.iter().rposition(|message| message.role == "assistant").map_or(0, |at| at + 1);
            for (message, new) in input.iter().zip(&mut is_new).skip(after) {
                *new |= message.role != "system";
            }
        }
        if !answer.content.is_empty() || !answer.tool_calls.is_empty() {
            *times.entry(key(answer)).or_default() += 1;
        }
        for (key, count) in times {
            let most = self.times.entry(key).or_default();
            *most = count.max(*most);
        }
        input.into_iter().zip(is_new).filter(|(_, new)| *new).map(|(message, _)| message).collect()
    }
}

/// Returns what makes two messages the same. Sources write the same message in several ways, so calls and answers of tools
/// go by their ids where they have one.
fn key(message: &Message) -> u64 {
    let mut hasher = DefaultHasher::new();
    match (&message.tool_call_id, message.tool_calls.as_slice()) {
        (Some(id), []) if message.role == "tool" => ("answer", id).hash(&mut hasher),
        (_, []) => {
            (message.role.as_str(), message.content.trim()).hash(&mut hasher);
            for part in &message.parts {
                part.to_string().hash(&mut hasher);
            }
        }
        (_, calls) => {
            for call in calls {
                match &call.id {
                    Some(id) => ("call", id).hash(&mut hasher),
                    None => (&call.name, call.arguments.to_string()).hash(&mut hasher),
                }
            }
        }
    }
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
        seen.fresh(said(before), &said(&["assistant:ok"])[0]);
        assert_eq!(seen.fresh(said(now), &Message::default()), said(expected));
    }
}
