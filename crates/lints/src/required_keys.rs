//! Rules for the keys that a tier requires. Missing keys are never errors, since files of other runners may lack them.

use jiff::Timestamp;
use jiff::civil::Date;

use super::{Linter, Rule};
use karat_cases::regression::is_regression;
use karat_cases::{Difficulty, Tier};
use karat_json::text::shorten;

impl Linter<'_, '_> {
    pub(super) fn required_keys(&mut self) {
        match self.file.tier {
            Tier::Golden => self.golden_keys(),
            Tier::Labeled if self.case.difficulty != Some(Difficulty::Regression) => self.labeled_keys(),
            _ if is_regression(self.file, self.case) => self.regression_keys(),
            _ => {}
        }
        if let Some(time) = &self.case.created_at
            && time.parse::<Timestamp>().is_err()
            && time.parse::<Date>().is_err()
        {
            let message = format!("'{}' is not an ISO 8601 time, such as 2026-01-15T09:00:00Z", shorten(time, 40));
            self.add(Rule::CreatedAt, "/createdAt", message);
        }
    }

    fn golden_keys(&mut self) {
        // Neither assertion can fail without a final response and tool results.
        if self.is_routing_only() {
            return;
        }
        let expect = self.total;
        let needs_tool_check = expect.no_tool_errors.is_none() && !self.expects_no_call_yet();
        // A required string implies a non-empty response.
        let requires_text = expect.response_contains.as_ref().is_some_and(|texts| !texts.is_empty());
        let missing = missing_keys([
            ("noToolErrors", needs_tool_check),
            ("responseNonEmpty", expect.response_non_empty.is_none() && !requires_text),
        ]);
        if let Some(missing) = missing {
            self.add_for_total(Rule::MissingKey, "/expect", format!("this golden case lacks {missing}"));
        }
    }

    /// Checks cases without a difficulty; other rules check the tools for each difficulty. Drafts have the difficulty of
    /// their slot.
    fn labeled_keys(&mut self) {
        if self.case.difficulty.is_some() || self.is_draft() {
            return;
        }
        let message = "this labeled case lacks 'difficulty': straightforward, ambiguous or edge";
        self.add(Rule::MissingKey, "/id", message);
        let expect = self.total;
        let has_routing = expect.tools_called.is_some()
            || expect.calls.is_some()
            || expect.tools_acceptable.is_some()
            || expect.tools_not_called.is_some()
            || expect.tool_order.is_some()
            || expect.min_tool_calls.is_some()
            || expect.max_tool_calls.is_some();
        if !has_routing {
            let message = "this labeled case lacks the tools that may be called: 'toolsCalled', 'toolsAcceptable' or \
                           'toolsNotCalled'";
            self.add_for_total(Rule::MissingKey, "/expect", message);
        }
    }

    fn regression_keys(&mut self) {
        let case = self.case;
        let hashes = self.file.metadata.as_ref().and_then(|metadata| metadata.case_hashes.as_ref());
        // A sealed case must not be edited any more.
        if hashes.is_some_and(|hashes| hashes.contains_key(&case.id)) {
            return;
        }
        let missing = missing_keys([
            ("difficulty", case.difficulty.is_none()),
            ("createdAt", case.created_at.is_none()),
            ("bugRef", case.bug_ref.is_none()),
        ]);
        if let Some(missing) = missing {
            let message = format!("this regression case lacks {missing}, which 'karat regress add' writes");
            self.add(Rule::MissingKey, "/id", message);
        }
    }
}

/// Joins the names of the missing keys.
fn missing_keys<const N: usize>(keys: [(&str, bool); N]) -> Option<String> {
    let missing = keys.into_iter().filter(|(_, is_missing)| *is_missing).map(|(key, _)| format!("'{key}'"));
    let missing: Vec<String> = missing.collect();
    (!missing.is_empty()).then(|| missing.join(", "))
}
