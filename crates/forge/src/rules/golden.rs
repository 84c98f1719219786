//! Golden cases: one message, one tool, and proof that it ran.

use karat_core::case::{Tier, ToolsCalledMatch};

use super::wording::{holds_phrase, is_raw, same_words};
use super::{DraftRule, Examination};
use crate::Purpose;

impl Examination<'_> {
    pub(super) fn golden(&mut self) {
        let expect = &self.case.expect;
        if expect.tools_acceptable.is_some() {
            let what = "a golden case has one right tool: use 'toolsCalled'";
            self.error(DraftRule::OneTool, "/expect/toolsAcceptable", what);
        }
        if self.slot.purpose == Purpose::AsksFirst {
            return self.asks_first();
        }
        let ours = &self.brief.tool.name;
        match expect.tools_called.as_deref() {
            Some([only]) if only == ours => {}
            None => {
                let what = format!("a golden case says that the tool is called: \"toolsCalled\": [\"{ours}\"]");
                self.error(DraftRule::OneTool, "/expect", what);
            }
            Some(found) => {
                let what =
                    format!("a golden case calls '{ours}' once and nothing else, found {}", counted(found.len()));
                self.error(DraftRule::OneTool, "/expect/toolsCalled", what);
            }
        }
        match &self.slot.purpose {
            Purpose::Trigger(phrase) => self.trigger(phrase),
            Purpose::Rephrasing(phrase) => self.rephrasing(phrase),
            Purpose::NoLeak => self.no_leak(),
            _ => {}
        }
    }

    fn trigger(&mut self, phrase: &str) {
        if !holds_phrase(&self.case.input.message, phrase) {
            let what = format!("the message does not say the trigger phrase '{phrase}'");
            self.warning(DraftRule::TriggerPhrase, "/input/message", what);
        }
    }

    fn rephrasing(&mut self, phrase: &str) {
        if same_words(&self.case.input.message, phrase) {
            let what = "the message is the trigger phrase itself: say it in other words";
            self.warning(DraftRule::Rephrasing, "/input/message", what);
        }
    }

    fn no_leak(&mut self) {
        let forbidden = self.case.expect.response_not_contains.as_deref().unwrap_or_default();
        if forbidden.is_empty() {
            let what = "a case against leaks forbids raw field names in 'responseNotContains', such as 'fetchedAt'";
            self.error(DraftRule::FieldLeak, "/expect", what);
        } else if !forbidden.iter().any(|text| is_raw(text)) {
            let what =
                "none of these is a raw field name: name what the tool returns, such as 'fetchedAt' or '\"tool\":'";
            self.warning(DraftRule::FieldLeak, "/expect/responseNotContains", what);
        }
    }

    /// Looks at a case in which the tool must not be called yet.
    pub(super) fn asks_first(&mut self) {
        let expect = &self.case.expect;
        let ours = &self.brief.tool.name;
        let names = |list: &Option<Vec<String>>| list.iter().flatten().any(|name| name == ours);
        let is_whole =
            !matches!(expect.tools_called_match, Some(ToolsCalledMatch::InOrder | ToolsCalledMatch::Includes));
        let leaves_out = expect.tools_called.is_some() && is_whole && !names(&expect.tools_called);
        if names(&expect.tools_called) {
            let what = format!("the agent asks before it acts, so that '{ours}' is not called yet");
            self.error(DraftRule::AsksFirst, "/expect/toolsCalled", what);
        } else if !leaves_out && !names(&expect.tools_not_called) && expect.max_tool_calls != Some(0) {
            let what = format!(
                "nothing says that '{ours}' is not called before the person agrees: write \"toolsCalled\": [] or name it \
                 in 'toolsNotCalled'"
            );
            self.error(DraftRule::AsksFirst, "/expect", what);
        }
        let is_judged =
            [&expect.response_contains, &expect.response_matches].iter().any(|list| filled(list.as_deref()))
                || filled(expect.response_contains_any.as_deref());
        if !is_judged {
            let what = "nothing says that the agent asks: name the words of a question, such as 'confirm', in \
                        'responseContainsAny'";
            self.warning(DraftRule::AsksFirst, "/expect", what);
        }
        if self.tier == Tier::Golden && expect.tools_called.as_ref().is_some_and(|tools| tools.len() > 1) {
            let what = "a golden case is about one tool";
            self.error(DraftRule::OneTool, "/expect/toolsCalled", what);
        }
    }
}

fn filled<T>(list: Option<&[T]>) -> bool {
    list.is_some_and(|list| !list.is_empty())
}

fn counted(tools: usize) -> String {
    match tools {
        0 => "no tool".to_owned(),
        1 => "another tool".to_owned(),
        _ => format!("{tools} calls"),
    }
}
