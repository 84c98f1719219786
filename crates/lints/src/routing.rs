//! Rules for the tools that a case expects, by its tier and difficulty.

use std::collections::BTreeSet;

use super::{Linter, Rule};
use karat_cases::{Difficulty, Expectation, ExpectedCalls, NO_TOOL, Tier, ToolsCalledMatch};

impl Linter<'_, '_> {
    pub(super) fn routing(&mut self) {
        let expect = &self.case.expect;
        if expect.tools_called.is_some() && expect.tools_acceptable.is_some() {
            let message = "use 'toolsCalled' or 'toolsAcceptable', not both";
            self.add(Rule::BothRoutingKinds, "/expect/toolsAcceptable", message);
        }
    }

    /// Finds an order of calls in a draft that is probably unintended.
    pub(super) fn fixed_order(&mut self) {
        let expect = &self.case.expect;
        let is_open = expect.tools_called_match.is_none() && expect.tool_order.is_none();
        if self.is_draft() && is_open && expect.tools_called.as_ref().is_some_and(|tools| tools.len() > 1) {
            let message = "without \"toolsCalledMatch\": \"anyOrder\", an agent that calls them in another order fails";
            self.add(Rule::FixedOrder, "/expect/toolsCalled", message);
        }
    }

    /// Applies the rules for the tier and the difficulty, to the case as a whole.
    pub(super) fn tier(&mut self) {
        if self.file.tier == Tier::Golden {
            self.golden();
        }
        match self.case.difficulty {
            Some(Difficulty::Straightforward) => self.straightforward(),
            Some(Difficulty::Ambiguous) => self.ambiguous(),
            Some(Difficulty::Edge) if !self.case.expectations().any(asserts_absence) => {
                let message = "an edge case asserts that something does not happen ('toolsNotCalled', \
                               'responseNotContains', or no tool called)";
                self.add_for_total(Rule::EdgeWithoutNegative, "/expect", message);
            }
            _ => {}
        }
    }

    fn golden(&mut self) {
        let expect = self.total;
        let tool = &self.file.tool_name;
        match expect.tools_called.as_deref() {
            Some([only]) if self.is_own_tool(only) => {}
            _ if self.expects_no_call_yet() || self.has_unknown_tool => {}
            None if self.expects_one_own_call() => {}
            None => self.add_for_total(
                Rule::GoldenTool,
                "/expect",
                format!("a golden case expects its tool to be called: \"toolsCalled\": [\"{tool}\"]"),
            ),
            Some(_) => self.add_for_total(
                Rule::GoldenTool,
                "/expect/toolsCalled",
                format!("a golden case expects '{tool}' to be called once, and no other tool"),
            ),
        }
        let fields = [
            ("/difficulty", self.case.difficulty.is_some()),
            ("/expect/toolsAcceptable", expect.tools_acceptable.is_some()),
            ("/expect/toolsNotCalled", expect.tools_not_called.is_some() && !self.expects_no_call_yet()),
            ("/expect/responseMatches", expect.response_matches.is_some()),
            ("/expect/maxTokens", expect.max_tokens.is_some()),
        ];
        for (pointer, _) in fields.into_iter().filter(|(_, is_present)| *is_present) {
            let key = pointer.rsplit('/').next().unwrap_or(pointer);
            let message = format!("'{key}' belongs in labeled cases, this file is golden");
            self.add_for_total(Rule::LabeledFieldInGolden, pointer, message);
        }
    }

    fn straightforward(&mut self) {
        let expect = self.total;
        let listed = expect.tools_called.iter().flatten().map(String::as_str);
        let called: BTreeSet<&str> = listed.chain(expect.calls.iter().flat_map(ExpectedCalls::tools)).collect();
        // Asking before acting is straightforward as well.
        let asks_first = self.case.expectations().any(|expect| self.expects_no_call_in(expect));
        let calls_own_tool = called.len() > 1 && called.iter().any(|name| self.is_own_tool(name));
        if asks_first || calls_own_tool || self.has_unknown_tool {
            return;
        }
        let tool = &self.file.tool_name;
        let pointer = if expect.tools_called.is_some() { "/expect/toolsCalled" } else { "/expect" };
        let message = format!("a straightforward case expects '{tool}' and at least one other tool in 'toolsCalled'");
        self.add_for_total(Rule::StraightforwardTools, pointer, message);
    }

    fn ambiguous(&mut self) {
        let Some(sets) = self.total.tools_acceptable.as_deref() else {
            let message = "an ambiguous case names its acceptable tool sets in 'toolsAcceptable'";
            return self.add_for_total(Rule::AmbiguousWithoutSets, "/expect", message);
        };
        let mut named = sets.iter().flatten().filter(|name| *name != NO_TOOL).peekable();
        if named.peek().is_some() && !self.has_unknown_tool && !named.any(|name| self.is_own_tool(name)) {
            let message = format!("no acceptable set names '{}', the tool of this file", self.file.tool_name);
            self.add_for_total(Rule::AmbiguousTools, "/expect/toolsAcceptable", message);
        }
    }

    /// Whether `calls` lists one call, that of the own tool.
    fn expects_one_own_call(&self) -> bool {
        let list = self.total.calls.as_ref().and_then(|calls| calls.list.as_deref());
        matches!(list, Some([only]) if self.is_own_tool(&only.tool))
    }

    /// Whether the case expects its tool not to be called yet, so that no value can prove its use.
    pub(super) fn expects_no_call_yet(&self) -> bool {
        self.expects_no_call_in(self.total)
    }

    fn expects_no_call_in(&self, expect: &Expectation) -> bool {
        if let Some(called) = expect.tools_called.as_deref() {
            return called.is_empty() && lists_all_calls(expect);
        }
        let list = expect.calls.as_ref().and_then(|calls| calls.list.as_ref());
        list.is_some_and(Vec::is_empty) || expect.tools_not_called.iter().flatten().any(|name| self.is_own_tool(name))
    }
}

/// Whether `toolsCalled` lists all calls, so that no other tool may be called.
pub(super) fn lists_all_calls(expect: &Expectation) -> bool {
    let is_part = matches!(expect.tools_called_match, Some(ToolsCalledMatch::InOrder | ToolsCalledMatch::Includes));
    expect.tools_called.is_some() && !is_part
}

/// Whether an expectation asserts that something does not happen.
fn asserts_absence(expect: &Expectation) -> bool {
    let is_filled = |list: &Option<Vec<String>>| list.as_ref().is_some_and(|list| !list.is_empty());
    is_filled(&expect.tools_not_called)
        || is_filled(&expect.response_not_contains)
        || expect.tools_called.as_ref().is_some_and(Vec::is_empty)
        || expect.response_not_matches.as_ref().is_some_and(|patterns| !patterns.is_empty())
        || expect.calls.as_ref().is_some_and(|calls| {
            calls.list.as_ref().is_some_and(Vec::is_empty)
                || calls.forbidden.as_ref().is_some_and(|list| !list.is_empty())
        })
        || expect.max_tool_calls == Some(0)
        || expect.tools_acceptable.iter().flatten().any(|set| set.is_empty() || set[0] == NO_TOOL)
}
