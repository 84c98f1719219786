//! Expectations that no answer can fulfil, or that every answer does.

use std::collections::BTreeSet;

use super::{Linter, Rule};
use crate::assertion::can_fail;
use crate::case::{NO_TOOL, Tier};
use karat_json::text::shorten;

impl Linter<'_, '_> {
    pub(super) fn contradictions(&mut self) {
        self.forbidden_tools();
        self.foreign_params();
        self.numbers();
        self.forbidden_texts();
        // A case of a rubric file is scored, not judged.
        if self.file.tier != Tier::Rubric && !can_fail(self.case) {
            self.add(Rule::CannotFail, "/expect", "every answer fulfils this, so the case tests nothing");
        }
    }

    fn forbidden_tools(&mut self) {
        let expect = &self.case.expect;
        let forbidden: BTreeSet<&String> = expect.tools_not_called.iter().flatten().collect();
        for (index, tool) in
            expect.tools_called.iter().flatten().enumerate().filter(|(_, tool)| forbidden.contains(tool))
        {
            let what = format!("'{}' is to be called, but 'toolsNotCalled' forbids it", shorten(tool, 80));
            self.add(Rule::Contradiction, format!("/expect/toolsCalled/{index}"), what);
        }
        let sets = expect.tools_acceptable.as_deref().unwrap_or_default();
        let hit = |set: &Vec<String>| set.iter().any(|tool| forbidden.contains(tool));
        if !sets.is_empty() && sets.iter().all(hit) {
            let what = "each acceptable set holds a tool that 'toolsNotCalled' forbids";
            self.add(Rule::Contradiction, "/expect/toolsAcceptable", what);
        } else {
            for (index, _) in sets.iter().enumerate().filter(|(_, set)| hit(set)) {
                let what = "this set is never right, since it holds a tool that 'toolsNotCalled' forbids";
                self.add(Rule::UnusedAssertion, format!("/expect/toolsAcceptable/{index}"), what);
            }
        }
    }

    /// Finds assertions about tools that will not be called.
    fn foreign_params(&mut self) {
        let expect = &self.case.expect;
        let sets = expect.tools_acceptable.iter().flatten();
        let named: BTreeSet<&str> =
            sets.chain(&expect.tools_called).flatten().map(String::as_str).filter(|tool| *tool != NO_TOOL).collect();
        let is_said = expect.tools_acceptable.is_some() || self.lists_all_calls();
        let is_forbidden = |tool: &str| expect.tools_not_called.iter().flatten().any(|other| other == tool);
        let is_called = |tool: &str| !is_forbidden(tool) && (!is_said || named.contains(tool));
        for (index, assertion) in expect.tool_params.iter().flatten().enumerate() {
            if !is_called(&assertion.tool) {
                let what = format!("'{}' is not called, so that this is never judged", shorten(&assertion.tool, 80));
                self.add(Rule::UnusedAssertion, format!("/expect/toolParams/{index}/tool"), what);
            }
        }
        for (index, (before, after)) in expect.tool_order.iter().flatten().enumerate() {
            let pointer = format!("/expect/toolOrder/{index}");
            if before == after {
                self.add(Rule::Contradiction, pointer, "a tool cannot be called before itself");
            } else if let Some(tool) = [before, after].into_iter().find(|tool| !is_called(tool)) {
                let what = format!("'{}' is not called, so that there is no order", shorten(tool, 80));
                self.add(Rule::Contradiction, pointer, what);
            }
        }
    }

    fn numbers(&mut self) {
        let expect = &self.case.expect;
        if let (Some(least), Some(most)) = (expect.min_tool_calls, expect.max_tool_calls)
            && least > most
        {
            let what = format!("at least {least} calls cannot be at most {most}");
            self.add(Rule::Contradiction, "/expect/minToolCalls", what);
        }
        let called = expect.tools_called.as_ref().map(|tools| tools.len() as u64);
        if let (Some(called), Some(most)) = (called, expect.max_tool_calls)
            && called > most
        {
            let what = format!("'toolsCalled' has {called} calls, which are more than {most}");
            self.add(Rule::Contradiction, "/expect/maxToolCalls", what);
        }
        if let (Some(least), Some(most)) = (expect.min_length, expect.max_length)
            && least > most
        {
            let what = format!("at least {least} characters cannot be at most {most}");
            self.add(Rule::Contradiction, "/expect/minLength", what);
        }
    }

    fn forbidden_texts(&mut self) {
        let expect = &self.case.expect;
        let value = |text: &String| self.resolved(text);
        let forbidden: Vec<String> = expect.response_not_contains.iter().flatten().map(value).collect();
        let hit = |text: &String| {
            let text = value(text);
            forbidden.iter().find(|part| text.contains(part.as_str())).cloned()
        };
        let wanted = expect.response_contains.iter().flatten().enumerate();
        let wanted: Vec<_> = wanted.filter_map(|(index, text)| Some((index, text, hit(text)?))).collect();
        let groups = expect.response_contains_any.iter().flatten().enumerate();
        let groups: Vec<(usize, usize, Vec<usize>)> = groups
            .map(|(index, group)| {
                (index, group.len(), (0..group.len()).filter(|at| hit(&group[*at]).is_some()).collect())
            })
            .collect();
        let empty = forbidden.iter().position(String::is_empty);
        if let Some(index) = empty {
            let what = "an empty text stands in every response, so that no response will do";
            return self.add(Rule::Contradiction, format!("/expect/responseNotContains/{index}"), what);
        }
        for (index, text, part) in wanted {
            let (text, part) = (shorten(text, 40), shorten(&part, 40));
            let what = format!("'{text}' must stand in the response, but '{part}' in 'responseNotContains' forbids it");
            self.add(Rule::Contradiction, format!("/expect/responseContains/{index}"), what);
        }
        for (index, size, hits) in groups.into_iter().filter(|(_, _, hits)| !hits.is_empty()) {
            let pointer = format!("/expect/responseContainsAny/{index}");
            if hits.len() == size {
                let what = "'responseNotContains' forbids every text of this group";
                self.add(Rule::Contradiction, pointer, what);
            } else {
                let what = "'responseNotContains' forbids this text, so that it never counts";
                self.add(Rule::UnusedAssertion, format!("{pointer}/{}", hits[0]), what);
            }
        }
    }
}
