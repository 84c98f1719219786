//! Conversations: cases with several messages.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Case, Expectation, Input, ToolsCalledMatch};

/// One message of a conversation and what is expected of the answer to it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = super::shape::turn)]
pub struct Turn {
    /// The user's message.
    #[schemars(regex(pattern = r"\S"))]
    pub message: String,
    /// Assertions on the answer to this message and on the tool calls of this turn. Without it, the turn passes when it
    /// is answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expectation>,
    /// Tool results in this turn, in place of those of the case for the same tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stubs: Option<Map<String, Value>>,
}

/// What happens after a turn that failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnTurnFailure {
    /// The conversation ends.
    #[default]
    Stop,
    /// The conversation continues.
    Continue,
}

impl OnTurnFailure {
    pub const NAMES: [&'static str; 2] = ["stop", "continue"];

    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "stop" => Some(Self::Stop),
            "continue" => Some(Self::Continue),
            _ => None,
        }
    }
}

impl Case {
    /// Whether the case is a conversation, even if it has a single turn.
    pub fn has_turns(&self) -> bool {
        self.turns.is_some() || self.user.is_some()
    }

    /// Returns the turns; none if the case has a single message or a simulated user.
    pub fn turns(&self) -> &[Turn] {
        self.turns.as_deref().unwrap_or_default()
    }

    /// Returns the user's messages: the single one, or one per turn; none if a model writes them.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &str> + Clone {
        let single = self.input.iter().map(|input| input.message.as_str());
        single.chain(self.turns().iter().map(|turn| turn.message.as_str()))
    }

    /// Returns the user's message of a turn; the single message is that of turn 0.
    pub fn message(&self, turn: usize) -> &str {
        self.messages().nth(turn).unwrap_or_default()
    }

    /// Returns the user's messages, or the goal of a simulated user, as one text, for searches.
    pub fn message_text(&self) -> Cow<'_, str> {
        match (&self.input, &self.user) {
            (Some(input), _) => Cow::Borrowed(&input.message),
            (None, Some(user)) => Cow::Borrowed(&user.goal),
            (None, None) => Cow::Owned(self.messages().collect::<Vec<_>>().join("\n")),
        }
    }

    /// Returns the expectations of the turns, followed by those of the whole case; not `safety`.
    pub fn expectations(&self) -> impl Iterator<Item = &Expectation> {
        self.turns().iter().filter_map(|turn| turn.expect.as_ref()).chain([&self.expect])
    }

    /// Returns all expectations, also those of `safety`, with their locations in the case, as JSON pointers.
    pub fn located_expectations(&self) -> impl Iterator<Item = (String, &Expectation)> {
        let turns = self.turns().iter().enumerate();
        let in_turns =
            turns.filter_map(|(index, turn)| Some((format!("/turns/{index}/expect"), turn.expect.as_ref()?)));
        let safety = self.safety.as_ref().map(|safety| ("/safety".to_owned(), safety));
        in_turns.chain([("/expect".to_owned(), &self.expect)]).chain(safety)
    }

    /// Whether the case or a turn has stubs.
    pub fn has_stubs(&self) -> bool {
        self.stubs.is_some() || self.turns().iter().any(|turn| turn.stubs.is_some())
    }

    /// Returns the stubs that answer calls in a turn, with the texts of the injections; the stubs of the turn take
    /// precedence.
    pub fn stubs_of_turn(&self, turn: usize) -> Option<Cow<'_, Map<String, Value>>> {
        let mut stubs = self.written_stubs(turn)?;
        for injection in self.injections() {
            injection.apply(stubs.to_mut());
        }
        Some(stubs)
    }

    fn written_stubs(&self, turn: usize) -> Option<Cow<'_, Map<String, Value>>> {
        let own = self.turns().get(turn).and_then(|turn| turn.stubs.as_ref());
        match (&self.stubs, own) {
            (shared, None) => shared.as_ref().map(Cow::Borrowed),
            (None, Some(own)) => Some(Cow::Borrowed(own)),
            (Some(shared), Some(own)) => {
                let mut stubs = shared.clone();
                stubs.extend(own.iter().map(|(tool, stub)| (tool.clone(), stub.clone())));
                Some(Cow::Owned(stubs))
            }
        }
    }

    /// Returns a turn as a case with a single message, which is judged like any other.
    pub fn of_turn(&self, index: usize) -> Option<Case> {
        let turn = self.turns().get(index)?;
        Some(Case {
            id: self.id.clone(),
            description: self.description.clone(),
            difficulty: self.difficulty,
            created_at: None,
            bug_ref: None,
            input: Some(Input { message: turn.message.clone() }),
            turns: None,
            user: None,
            on_turn_failure: None,
            stubs: self.stubs_of_turn(index).map(Cow::into_owned),
            injections: None,
            max_turns: self.max_turns,
            expect: turn.expect.clone().unwrap_or_default(),
            safety: None,
            tags: Vec::new(),
            skip: None,
            location: self.location.clone(),
        })
    }

    /// Returns what the case expects in total: its own expectations and those of its turns, for questions about the
    /// case as a whole, such as which tools it names.
    pub fn total_expectation(&self) -> Cow<'_, Expectation> {
        if self.turns().iter().all(|turn| turn.expect.is_none()) {
            return Cow::Borrowed(&self.expect);
        }
        let mut total = self.expect.clone();
        let is_complete = self.turns().iter().all(|turn| turn.expect.as_ref().is_some_and(lists_all_calls));
        let has_own_calls = total.tools_called.is_some();
        for expect in self.turns().iter().filter_map(|turn| turn.expect.as_ref()) {
            if !has_own_calls && let Some(called) = &expect.tools_called {
                total.tools_called.get_or_insert_default().extend_from_slice(called);
                total.tools_called_match = (!is_complete).then_some(ToolsCalledMatch::Includes);
            }
            extend(&mut total.tools_acceptable, expect.tools_acceptable.as_ref());
            extend(&mut total.tools_not_called, expect.tools_not_called.as_ref());
            extend(&mut total.tool_params, expect.tool_params.as_ref());
            extend(&mut total.tool_order, expect.tool_order.as_ref());
            extend(&mut total.response_contains, expect.response_contains.as_ref());
            extend(&mut total.response_contains_any, expect.response_contains_any.as_ref());
            extend(&mut total.response_not_contains, expect.response_not_contains.as_ref());
            extend(&mut total.response_matches, expect.response_matches.as_ref());
            extend(&mut total.evals, expect.evals.as_ref());
            total.no_tool_errors = total.no_tool_errors.or(expect.no_tool_errors);
            total.response_non_empty = total.response_non_empty.or(expect.response_non_empty);
            total.numbers_grounded = total.numbers_grounded.or(expect.numbers_grounded);
            extend(&mut total.response_not_matches, expect.response_not_matches.as_ref());
            extend(&mut total.response_json, expect.response_json.as_ref());
            extend(&mut total.response_similar, expect.response_similar.as_ref());
            total.calls = total.calls.take().or_else(|| expect.calls.clone());
            total.response_equals = total.response_equals.take().or_else(|| expect.response_equals.clone());
            total.response_json_schema =
                total.response_json_schema.take().or_else(|| expect.response_json_schema.clone());
        }
        Cow::Owned(total)
    }
}

/// Whether `toolsCalled` lists all calls.
fn lists_all_calls(expect: &Expectation) -> bool {
    let is_part = matches!(expect.tools_called_match, Some(ToolsCalledMatch::InOrder | ToolsCalledMatch::Includes));
    expect.tools_called.is_some() && !is_part
}

fn extend<T: Clone>(total: &mut Option<Vec<T>>, items: Option<&Vec<T>>) {
    if let Some(items) = items {
        total.get_or_insert_default().extend_from_slice(items);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn case() -> Case {
        Case::read_one(&json!({
            "id": "ls-shop-001",
            "stubs": {"find": 1, "pay": 1},
            "turns": [
                {"message": "Cancel it", "expect": {"toolsCalled": [], "responseNotContains": ["done"]}},
                {"message": "4411", "stubs": {"pay": 2}, "expect": {"toolsCalled": ["cancel"]}},
                {"message": "Thanks"},
            ],
            "expect": {"maxToolCalls": 1, "responseNotContains": ["error"]},
        }))
        .expect("valid case")
    }

    #[test]
    fn stubs_of_a_turn_take_precedence() {
        let case = case();
        assert_eq!(case.stubs_of_turn(0).map(|stubs| json!(stubs)), Some(json!({"find": 1, "pay": 1})));
        assert_eq!(case.stubs_of_turn(1).map(|stubs| json!(stubs)), Some(json!({"find": 1, "pay": 2})));
        let turn = case.of_turn(1).expect("a turn");
        assert_eq!((turn.message(0), json!(turn.stubs)), ("4411", json!({"find": 1, "pay": 2})));
    }

    #[test]
    fn the_total_expectation_has_the_calls_of_all_turns() {
        let mut case = case();
        let total = case.total_expectation().into_owned();
        assert_eq!(total.tools_called, Some(vec!["cancel".to_owned()]));
        assert_eq!(total.tools_called_match, Some(ToolsCalledMatch::Includes), "the last turn expects nothing");
        assert_eq!(total.response_not_contains, Some(vec!["error".to_owned(), "done".to_owned()]));
        case.turns.as_mut().and_then(Vec::pop);
        assert_eq!(case.total_expectation().tools_called_match, None);
        case.expect.tools_called = Some(vec!["own".to_owned()]);
        assert_eq!(case.total_expectation().tools_called, Some(vec!["own".to_owned()]));
    }
}
