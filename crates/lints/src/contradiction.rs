//! Rules for expectations that no answer can meet, or that every answer meets.

use std::collections::BTreeSet;

use super::routing::lists_all_calls;
use super::{Linter, Rule};
use karat_cases::{CallSelector, ExpectedCalls, NO_TOOL, ParamAssertion, Tier};
use karat_core::assertion::can_fail;
use karat_json::text::shorten;

impl Linter<'_, '_> {
    pub(super) fn contradictions(&mut self) {
        self.forbidden_tools();
        self.expected_calls();
        self.separate_params();
        self.response_text();
        self.unused_params();
        self.numbers();
        self.forbidden_texts();
    }

    pub(super) fn cannot_fail(&mut self) {
        // Cases of rubric files are scored instead.
        if self.file.tier != Tier::Rubric && !can_fail(self.case) {
            self.add_for_total(Rule::CannotFail, "/expect", "every answer passes, so the case tests nothing");
        }
    }

    fn forbidden_tools(&mut self) {
        let expect = &self.case.expect;
        let forbidden: BTreeSet<&String> = expect.tools_not_called.iter().flatten().collect();
        for (index, tool) in
            expect.tools_called.iter().flatten().enumerate().filter(|(_, tool)| forbidden.contains(tool))
        {
            let message = format!("'{}' is expected, but 'toolsNotCalled' forbids it", shorten(tool, 80));
            self.add(Rule::Contradiction, format!("/expect/toolsCalled/{index}"), message);
        }
        let sets = expect.tools_acceptable.as_deref().unwrap_or_default();
        let is_forbidden = |set: &Vec<String>| set.iter().any(|tool| forbidden.contains(tool));
        if !sets.is_empty() && sets.iter().all(is_forbidden) {
            let message = "each acceptable set contains a tool that 'toolsNotCalled' forbids";
            self.add(Rule::Contradiction, "/expect/toolsAcceptable", message);
        } else {
            for (index, _) in sets.iter().enumerate().filter(|(_, set)| is_forbidden(set)) {
                let message = "this set can never match, since it contains a tool that 'toolsNotCalled' forbids";
                self.add(Rule::UnusedAssertion, format!("/expect/toolsAcceptable/{index}"), message);
            }
        }
    }

    /// Finds expected calls of forbidden tools.
    fn expected_calls(&mut self) {
        let expect = &self.case.expect;
        let Some(calls) = &expect.calls else { return };
        let forbidden: BTreeSet<&str> = expect.tools_not_called.iter().flatten().map(String::as_str).collect();
        let entries =
            calls.entries().filter(|(_, entry, is_forbidden)| !is_forbidden && forbidden.contains(&*entry.tool));
        for (below, entry, _) in entries {
            let message = format!("'{}' is expected, but 'toolsNotCalled' forbids it", shorten(&entry.tool, 80));
            let is_certain = calls.list.is_some() && calls.mode().needs_every_entry();
            let rule = if is_certain { Rule::Contradiction } else { Rule::UnusedAssertion };
            self.add(rule, format!("/expect/calls{below}/tool"), message);
        }
        let count = calls.list.as_ref().filter(|_| calls.mode().needs_every_entry()).map(|list| list.len() as u64);
        if let (Some(count), Some(max)) = (count, expect.max_tool_calls)
            && count > max
        {
            let message = format!("'calls' has {count} calls, more than the maximum of {max}");
            self.add(Rule::Contradiction, "/expect/maxToolCalls", message);
        }
    }

    /// Finds conditions on the arguments of any call that different calls can meet.
    fn separate_params(&mut self) {
        let assertions = self.case.expect.tool_params.as_deref().unwrap_or_default();
        let of_any_call = |assertion: &&ParamAssertion| assertion.call == CallSelector::Any;
        for (index, assertion) in assertions.iter().enumerate().filter(|(_, assertion)| of_any_call(assertion)) {
            let is_same_call = |other: &ParamAssertion| {
                other.call == CallSelector::Any
                    && other.tool == assertion.tool
                    && other.param_name != assertion.param_name
            };
            if assertions[..index].iter().any(is_same_call) {
                let message = "this and the other 'toolParams' of any call can hold for different calls: use 'calls' to \
                               check the arguments of one call together";
                self.add(Rule::SeparateParams, format!("/expect/toolParams/{index}"), message);
            }
        }
    }

    /// Finds expected texts that no response can start or end with.
    fn response_text(&mut self) {
        let expect = &self.case.expect;
        let starts_blank =
            |text: &Option<String>| text.as_ref().is_some_and(|text| text.starts_with(char::is_whitespace));
        let ends_blank = |text: &Option<String>| text.as_ref().is_some_and(|text| text.ends_with(char::is_whitespace));
        let texts = [
            ("responseEquals", starts_blank(&expect.response_equals) || ends_blank(&expect.response_equals)),
            ("responseStartsWith", starts_blank(&expect.response_starts_with)),
            ("responseEndsWith", ends_blank(&expect.response_ends_with)),
        ];
        for (key, _) in texts.into_iter().filter(|(_, is_blank)| *is_blank) {
            let message = "no response can pass, since whitespace at the ends of the response is not compared";
            self.add(Rule::Contradiction, format!("/expect/{key}"), message);
        }
        let patterns = expect.response_not_matches.iter().flatten();
        if let Some(index) = patterns.clone().position(String::is_empty) {
            let message = "an empty pattern matches every response, so no response can pass";
            self.add(Rule::Contradiction, format!("/expect/responseNotMatches/{index}"), message);
        }
    }

    /// Finds assertions about tools that are not called.
    fn unused_params(&mut self) {
        let expect = &self.case.expect;
        let sets = expect.tools_acceptable.iter().flatten();
        let listed = sets.chain(&expect.tools_called).flatten().map(String::as_str).filter(|tool| *tool != NO_TOOL);
        let named: BTreeSet<&str> = listed.chain(expect.calls.iter().flat_map(ExpectedCalls::tools)).collect();
        let lists_tools = expect.tools_acceptable.is_some() || lists_all_calls(expect);
        let is_forbidden = |tool: &str| expect.tools_not_called.iter().flatten().any(|other| other == tool);
        let is_called = |tool: &str| !is_forbidden(tool) && (!lists_tools || named.contains(tool));
        for (index, assertion) in expect.tool_params.iter().flatten().enumerate() {
            if !is_called(&assertion.tool) {
                let message = format!("'{}' is not called, so this is never checked", shorten(&assertion.tool, 80));
                self.add(Rule::UnusedAssertion, format!("/expect/toolParams/{index}/tool"), message);
            }
        }
        for (index, (before, after)) in expect.tool_order.iter().flatten().enumerate() {
            let pointer = format!("/expect/toolOrder/{index}");
            if before == after {
                self.add(Rule::Contradiction, pointer, "a tool cannot be called before itself");
            } else if let Some(tool) = [before, after].into_iter().find(|tool| !is_called(tool)) {
                let message = format!("'{}' is not called, so this order cannot hold", shorten(tool, 80));
                self.add(Rule::Contradiction, pointer, message);
            }
        }
    }

    fn numbers(&mut self) {
        let expect = &self.case.expect;
        if let (Some(min), Some(max)) = (expect.min_tool_calls, expect.max_tool_calls)
            && min > max
        {
            let message = format!("the minimum of {min} calls exceeds the maximum of {max}");
            self.add(Rule::Contradiction, "/expect/minToolCalls", message);
        }
        let called = expect.tools_called.as_ref().map(|tools| tools.len() as u64);
        if let (Some(called), Some(max)) = (called, expect.max_tool_calls)
            && called > max
        {
            let message = format!("'toolsCalled' has {called} calls, more than the maximum of {max}");
            self.add(Rule::Contradiction, "/expect/maxToolCalls", message);
        }
        if let (Some(min), Some(max)) = (expect.min_steps, expect.max_steps)
            && min > max
        {
            let message = format!("the minimum of {min} model calls exceeds the maximum of {max}");
            self.add(Rule::Contradiction, "/expect/minSteps", message);
        }
        if let (Some(min), Some(max)) = (expect.min_length, expect.max_length)
            && min > max
        {
            let message = format!("the minimum of {min} characters exceeds the maximum of {max}");
            self.add(Rule::Contradiction, "/expect/minLength", message);
        }
    }

    fn forbidden_texts(&mut self) {
        let expect = &self.case.expect;
        let value = |text: &String| self.resolved(text);
        let forbidden: Vec<String> = expect.response_not_contains.iter().flatten().map(value).collect();
        let forbidden_part = |text: &String| {
            let text = value(text);
            forbidden.iter().find(|part| text.contains(part.as_str())).cloned()
        };
        let required = expect.response_contains.iter().flatten().enumerate();
        let required: Vec<_> =
            required.filter_map(|(index, text)| Some((index, text, forbidden_part(text)?))).collect();
        let groups = expect.response_contains_any.iter().flatten().enumerate();
        let groups: Vec<(usize, usize, Vec<usize>)> = groups
            .map(|(index, group)| {
                (index, group.len(), (0..group.len()).filter(|at| forbidden_part(&group[*at]).is_some()).collect())
            })
            .collect();
        let empty = forbidden.iter().position(String::is_empty);
        if let Some(index) = empty {
            let message = "every response contains an empty string, so no response can pass";
            return self.add(Rule::Contradiction, format!("/expect/responseNotContains/{index}"), message);
        }
        for (index, text, part) in required {
            let (text, part) = (shorten(text, 40), shorten(&part, 40));
            let message =
                format!("'{text}' is expected in the response, but '{part}' in 'responseNotContains' forbids it");
            self.add(Rule::Contradiction, format!("/expect/responseContains/{index}"), message);
        }
        for (index, size, forbidden) in groups.into_iter().filter(|(_, _, forbidden)| !forbidden.is_empty()) {
            let pointer = format!("/expect/responseContainsAny/{index}");
            if forbidden.len() == size {
                let message = "'responseNotContains' forbids every string of this group";
                self.add(Rule::Contradiction, pointer, message);
            } else {
                let message = "'responseNotContains' forbids this string, so it never counts";
                self.add(Rule::UnusedAssertion, format!("{pointer}/{}", forbidden[0]), message);
            }
        }
    }
}
