//! Splits a trace into turns: a user's message and the steps that it led to.

use karat_core::document::TraceDocument;

use super::observed::{Step, is_new_message};

/// A user's message in a trace, and what the agent did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceTurn {
    /// The numbers of its steps, from 1.
    pub steps: std::ops::RangeInclusive<usize>,
    pub message: String,
    /// The message was not the first, and may depend on earlier ones.
    pub has_history: bool,
    /// The called tools, in order.
    pub tools: Vec<String>,
    /// The last output of the agent.
    pub response: String,
    /// The first failed call or step, with its error.
    pub error: Option<String>,
}

/// Splits a trace into turns. Steps before the first message are in no turn.
pub fn trace_turns(trace: &TraceDocument) -> Vec<TraceTurn> {
    let mut turns: Vec<TraceTurn> = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    let mut before: Option<Step> = None;
    for (at, step) in trace.steps().map(Step::new).enumerate() {
        if let Some(input) = &step.input {
            let is_known = !seen.is_empty() && seen.ends_with(&input.messages);
            if turns.is_empty() || !is_known && is_new_message(input, &seen, before.as_ref()) {
                let new_messages = input.messages.strip_prefix(seen.as_slice()).unwrap_or(&input.messages);
                let has_history = input.has_history || !turns.is_empty();
                // With history, only the last message is new.
                let message = if input.has_history {
                    new_messages.last().cloned().unwrap_or_default()
                } else {
                    new_messages.join("\n")
                };
                let message = message.trim().to_owned();
                let steps = at + 1..=at + 1;
                turns.push(TraceTurn {
                    steps,
                    message,
                    has_history,
                    tools: Vec::new(),
                    response: String::new(),
                    error: None,
                });
                seen.extend(new_messages.iter().cloned());
            }
        }
        if let Some(turn) = turns.last_mut() {
            turn.add_step(at + 1, &step);
        }
        before = Some(step);
    }
    turns
}

impl TraceTurn {
    fn add_step(&mut self, number: usize, step: &Step) {
        self.steps = *self.steps.start()..=number;
        self.tools.extend(step.calls.iter().map(|call| &call.name).filter(|name| !name.is_empty()).cloned());
        if !step.output.trim().is_empty() {
            step.output.trim().clone_into(&mut self.response);
        }
        if self.error.is_none() {
            let call = step.calls.iter().find_map(|call| Some((call.name.as_str(), call.error.as_deref()?)));
            let call = call.map(|(name, error)| format!("'{name}' failed: {error}"));
            self.error = call.or_else(|| step.error.as_deref().map(|error| format!("a step failed: {error}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn step(input: &Value, response: &str, tools: &[&str]) -> Value {
        let calls: Vec<Value> = tools.iter().map(|name| json!({"name": name, "arguments": {}})).collect();
        json!({"input": input, "output": {"response": response}, "tool_calls": calls, "error": null})
    }

    fn read(trace: &Value) -> Vec<TraceTurn> {
        trace_turns(&TraceDocument::parse(trace.to_string()).expect("a trace"))
    }

    fn turns(steps: &[Value]) -> Vec<(String, std::ops::RangeInclusive<usize>, String, bool)> {
        let all = read(&json!({"trace_id": "t", "steps": steps}));
        all.into_iter().map(|turn| (turn.message, turn.steps, turn.tools.join(","), turn.has_history)).collect()
    }

    #[test]
    fn a_turn_has_all_steps_of_a_message() {
        let system = json!({"role": "system", "content": "be kind"});
        let user = |text: &str| json!({"role": "user", "content": text});
        let turns = turns(&[
            step(&json!({"message": "one", "messages": [system, user("one")]}), "", &["search"]),
            step(&json!({"message": null, "messages": [{"role": "tool", "content": "12"}]}), "first", &[]),
            step(&json!({"message": "two", "messages": [user("two")]}), "second", &["book", "pay"]),
        ]);
        let expected = [
            ("one".to_owned(), 1..=2, "search".to_owned(), false),
            ("two".to_owned(), 3..=3, "book,pay".to_owned(), true),
        ];
        assert_eq!(turns, expected);
    }

    #[test]
    fn a_repeated_message_starts_no_turn() {
        let bare = turns(&[
            step(&json!("one"), "", &["search"]),
            step(&json!("one"), "first", &[]),
            step(&json!("two"), "second", &[]),
            step(&json!("two"), "more", &[]),
        ]);
        assert_eq!(bare.iter().map(|turn| turn.1.clone()).collect::<Vec<_>>(), [1..=2, 3..=4]);
        let user = |text: &str| json!({"role": "user", "content": text});
        let agent = json!({"role": "assistant", "content": "hi"});
        let history = turns(&[step(&json!([user("old"), agent, user("new")]), "yes", &[])]);
        assert_eq!(history, [("new".to_owned(), 1..=1, String::new(), true)]);
    }

    #[test]
    fn records_the_first_failure() {
        let mut failing = step(&json!("one"), "sorry", &["search"]);
        failing["tool_calls"][0]["error"] = json!("timed out");
        let all = read(&json!({"steps": [failing]}));
        assert_eq!(all[0].error.as_deref(), Some("'search' failed: timed out"));
        assert_eq!(read(&json!({"steps": []})), Vec::new());
    }
}
