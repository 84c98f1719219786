//! The turns of a trace: what a user said, and all that it led to.

use karat_core::document::TraceDocument;

use super::observed::{Step, is_further};

/// What a user said in a trace, and what the agent did then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceTurn {
    /// The steps that it took, from 1.
    pub steps: std::ops::RangeInclusive<usize>,
    pub message: String,
    /// The message was not the first: it may mean nothing without what was said before.
    pub leans: bool,
    /// The tools that were called, in order.
    pub tools: Vec<String>,
    /// What the agent said last.
    pub response: String,
    /// The first thing that failed, with whose failure it was.
    pub error: Option<String>,
}

/// Cuts a trace into turns. What an agent did before anybody said anything is in none.
pub fn trace_turns(trace: &TraceDocument) -> Vec<TraceTurn> {
    let mut turns: Vec<TraceTurn> = Vec::new();
    let mut said: Vec<String> = Vec::new();
    let mut before: Option<Step> = None;
    for (at, step) in trace.steps().map(Step::of).enumerate() {
        if let Some(input) = &step.input {
            let is_known = !said.is_empty() && said.ends_with(&input.messages);
            if turns.is_empty() || !is_known && is_further(input, &said, before.as_ref()) {
                let news = input.messages.strip_prefix(said.as_slice()).unwrap_or(&input.messages);
                let leans = input.has_history || !turns.is_empty();
                // Where the agent spoke in between, only the last message is new.
                let message =
                    if input.has_history { news.last().cloned().unwrap_or_default() } else { news.join("\n") };
                let message = message.trim().to_owned();
                let steps = at + 1..=at + 1;
                turns.push(TraceTurn {
                    steps,
                    message,
                    leans,
                    tools: Vec::new(),
                    response: String::new(),
                    error: None,
                });
                said.extend(news.iter().cloned());
            }
        }
        if let Some(turn) = turns.last_mut() {
            turn.take(at + 1, &step);
        }
        before = Some(step);
    }
    turns
}

impl TraceTurn {
    fn take(&mut self, number: usize, step: &Step) {
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
        trace_turns(&TraceDocument::read(trace.to_string()).expect("a trace"))
    }

    fn turns(steps: &[Value]) -> Vec<(String, std::ops::RangeInclusive<usize>, String, bool)> {
        let all = read(&json!({"trace_id": "t", "steps": steps}));
        all.into_iter().map(|turn| (turn.message, turn.steps, turn.tools.join(","), turn.leans)).collect()
    }

    #[test]
    fn a_turn_is_all_that_a_message_led_to() {
        let system = json!({"role": "system", "content": "be kind"});
        let user = |text: &str| json!({"role": "user", "content": text});
        let found = turns(&[
            step(&json!({"message": "one", "messages": [system, user("one")]}), "", &["search"]),
            step(&json!({"message": null, "messages": [{"role": "tool", "content": "12"}]}), "first", &[]),
            step(&json!({"message": "two", "messages": [user("two")]}), "second", &["book", "pay"]),
        ]);
        let expected = [
            ("one".to_owned(), 1..=2, "search".to_owned(), false),
            ("two".to_owned(), 3..=3, "book,pay".to_owned(), true),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_said_again_is_no_turn() {
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
    fn the_first_failure_is_kept() {
        let mut failing = step(&json!("one"), "sorry", &["search"]);
        failing["tool_calls"][0]["error"] = json!("timed out");
        let all = read(&json!({"steps": [failing]}));
        assert_eq!(all[0].error.as_deref(), Some("'search' failed: timed out"));
        assert_eq!(read(&json!({"steps": []})), Vec::new());
    }
}
