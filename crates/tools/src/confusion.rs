//! Confusion counts: which tool was called where another was expected.

mod measured;

use std::collections::{BTreeMap, BTreeSet};

use karat_cases::{Expectation, ExpectedCall, ExpectedCalls, NO_TOOL, ToolsCalledMatch};

pub use measured::{ExcludedCounts, MeasuredConfusion};

/// Counts of expected tool × called tool; [`NO_TOOL`] stands for none on either side.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confusion {
    counts: BTreeMap<(String, String), u64>,
    /// Number of answers that expected each tool.
    expected: BTreeMap<String, u64>,
    answers: u64,
}

impl Confusion {
    /// Counts one answer, and returns whether the case expects anything of the tools.
    ///
    /// A tool that was expected and called counts for itself. If expected tools were not called and others were, each
    /// missing one counts against each extra one. Of several acceptable sets, the nearest to the calls is used, or the
    /// first of equally near ones.
    pub fn add(&mut self, expect: &Expectation, called: &[String]) -> bool {
        let called: BTreeSet<&str> = called.iter().map(String::as_str).collect();
        let Some((expected, extras_allowed)) = expected_set(expect, &called) else {
            return false;
        };
        self.answers += 1;
        if expected.is_empty() && specifies_calls(expect) {
            *self.expected.entry(NO_TOOL.to_owned()).or_default() += 1;
        }
        for tool in &expected {
            *self.expected.entry((*tool).to_owned()).or_default() += 1;
        }
        let missing: Vec<&str> = expected.difference(&called).copied().collect();
        let mut extra: Vec<&str> = called.difference(&expected).copied().collect();
        if extras_allowed && missing.is_empty() {
            let forbidden = expect.tools_not_called.as_deref().unwrap_or_default();
            extra.retain(|tool| forbidden.iter().any(|name| name == tool));
        }
        for tool in expected.intersection(&called) {
            self.count(tool, tool);
        }
        match (missing.is_empty(), extra.is_empty()) {
            (true, true) if expected.is_empty() && specifies_calls(expect) => self.count(NO_TOOL, NO_TOOL),
            (true, _) => extra.iter().for_each(|tool| self.count(NO_TOOL, tool)),
            (false, true) => missing.iter().for_each(|tool| self.count(tool, NO_TOOL)),
            (false, false) => {
                for tool in missing {
                    for other in &extra {
                        self.count(tool, other);
                    }
                }
            }
        }
        true
    }

    fn count(&mut self, expected: &str, called: &str) {
        *self.counts.entry((expected.to_owned(), called.to_owned())).or_default() += 1;
    }

    /// Returns how often `called` was called where `expected` was expected.
    pub fn of(&self, expected: &str, called: &str) -> u64 {
        self.counts.get(&(expected.to_owned(), called.to_owned())).copied().unwrap_or_default()
    }

    /// Returns the number of counted answers.
    pub fn answers(&self) -> u64 {
        self.answers
    }

    /// Returns the number of answers that expected a tool; for [`NO_TOOL`], of all answers.
    pub fn answers_of(&self, expected: &str) -> u64 {
        if expected == NO_TOOL { self.answers } else { self.expected.get(expected).copied().unwrap_or_default() }
    }

    /// Lists the expected tools with the number of answers that expected each.
    pub fn expected(&self) -> impl Iterator<Item = (&str, u64)> {
        self.expected.iter().map(|(tool, answers)| (tool.as_str(), *answers))
    }

    /// Returns the share of the answers expecting `expected` in which `called` was called.
    pub fn rate(&self, expected: &str, called: &str) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "answer counts are far below 2^52")]
        let share = |part: u64, whole: u64| part as f64 / whole as f64;
        let answers = self.answers_of(expected);
        (answers > 0).then(|| share(self.of(expected, called), answers))
    }

    /// Lists all counts, by expected and then by called tool.
    pub fn counts(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        self.counts.iter().map(|((expected, called), count)| (expected.as_str(), called.as_str(), *count))
    }

    /// Lists calls in place of another tool, most frequent first.
    pub fn worst(&self) -> Vec<(&str, &str, u64)> {
        let mut pairs: Vec<_> = self.counts().filter(|(expected, called, _)| expected != called).collect();
        // The sort is stable: ties stay ordered by name.
        pairs.sort_by_key(|(_, _, count)| std::cmp::Reverse(*count));
        pairs
    }
}

/// Returns the tools that should have been called, and whether extra calls are allowed.
fn expected_set<'e>(expect: &'e Expectation, called: &BTreeSet<&str>) -> Option<(BTreeSet<&'e str>, bool)> {
    if let Some(tools) = &expect.tools_called {
        let matching = expect.tools_called_match.unwrap_or_default();
        let extras_allowed = matches!(matching, ToolsCalledMatch::InOrder | ToolsCalledMatch::Includes);
        return Some((tools.iter().map(String::as_str).collect(), extras_allowed));
    }
    if let Some((calls, list)) = listed_calls(expect) {
        let mut tools: BTreeSet<&str> = list.iter().map(|entry| entry.tool.as_str()).collect();
        if !calls.mode().needs_every_entry() {
            tools.retain(|tool| called.contains(tool));
        }
        return Some((tools, !calls.mode().needs_every_call()));
    }
    let Some(sets) = &expect.tools_acceptable else {
        // No expected tools, but a forbidden call counts as called in place of none.
        return expect.tools_not_called.is_some().then(|| (BTreeSet::new(), true));
    };
    let set = |set: &'e Vec<String>| -> BTreeSet<&'e str> {
        set.iter().map(String::as_str).filter(|tool| *tool != NO_TOOL).collect()
    };
    let nearest = sets.iter().map(set).min_by_key(|set| set.symmetric_difference(called).count())?;
    Some((nearest, false))
}

/// Returns `calls` with its list, unless it has alternatives or only forbids calls.
fn listed_calls(expect: &Expectation) -> Option<(&ExpectedCalls, &[ExpectedCall])> {
    let calls = expect.calls.as_ref()?;
    Some((calls, calls.list.as_deref()?))
}

/// Whether a case specifies the calls, possibly none.
fn specifies_calls(expect: &Expectation) -> bool {
    expect.tools_called.is_some() || expect.tools_acceptable.is_some() || listed_calls(expect).is_some()
}

#[cfg(test)]
mod tests {
    use karat_cases::CallsMatch;
    use rstest::rstest;

    use super::*;

    fn sets(sets: &[&[&str]]) -> Expectation {
        let sets = sets.iter().map(|set| set.iter().map(|&tool| tool.to_owned()).collect()).collect();
        Expectation { tools_acceptable: Some(sets), ..Expectation::default() }
    }

    fn forbids(expect: Expectation) -> Expectation {
        Expectation { tools_not_called: Some(vec!["d".to_owned()]), ..expect }
    }

    fn exactly(tools: &[&str]) -> Expectation {
        let tools = tools.iter().map(|&tool| tool.to_owned()).collect();
        Expectation { tools_called: Some(tools), ..Expectation::default() }
    }

    fn lists(match_mode: CallsMatch, tools: &[&str]) -> Expectation {
        let entry = |tool: &&str| ExpectedCall { tool: (*tool).to_owned(), ..ExpectedCall::default() };
        let list = Some(tools.iter().map(entry).collect());
        let calls = ExpectedCalls { match_mode: Some(match_mode), list, ..ExpectedCalls::default() };
        Expectation { calls: Some(calls), ..Expectation::default() }
    }

    #[rstest]
    #[case(lists(CallsMatch::Exact, &["a", "b"]), &["b", "c"], &[("a", "c", 1), ("b", "b", 1)])]
    #[case(lists(CallsMatch::Includes, &["a"]), &["a", "b"], &[("a", "a", 1)])]
    #[case(lists(CallsMatch::Subset, &["a", "b"]), &["a"], &[("a", "a", 1)])]
    #[case(lists(CallsMatch::Exact, &[]), &["a"], &[(NO_TOOL, "a", 1)])]
    #[case(exactly(&["a"]), &["a", "a"], &[("a", "a", 1)])]
    #[case(exactly(&["a"]), &["b"], &[("a", "b", 1)])]
    #[case(exactly(&["a"]), &[], &[("a", NO_TOOL, 1)])]
    #[case(exactly(&["a"]), &["a", "b"], &[(NO_TOOL, "b", 1), ("a", "a", 1)])]
    #[case(exactly(&["a", "b"]), &["b", "c", "d"], &[("a", "c", 1), ("a", "d", 1), ("b", "b", 1)])]
    #[case(sets(&[&["a"], &["b", "c"]]), &["b"], &[("b", "b", 1), ("c", NO_TOOL, 1)])]
    #[case(sets(&[&[NO_TOOL]]), &[], &[(NO_TOOL, NO_TOOL, 1)])]
    #[case(forbids(exactly(&[])), &["d"], &[(NO_TOOL, "d", 1)])]
    #[case(forbids(Expectation::default()), &["a", "d"], &[(NO_TOOL, "d", 1)])]
    #[case(forbids(Expectation::default()), &["a"], &[])]
    #[case(sets(&[&[NO_TOOL], &["a"]]), &["b"], &[(NO_TOOL, "b", 1)])]
    fn counts_expected_and_called_tools(
        #[case] expect: Expectation,
        #[case] called: &[&str],
        #[case] counted: &[(&str, &str, u64)],
    ) {
        let called: Vec<String> = called.iter().map(|&tool| tool.to_owned()).collect();
        let mut confusion = Confusion::default();
        assert!(confusion.add(&expect, &called));
        assert_eq!(confusion.counts().collect::<Vec<_>>(), counted);
    }

    #[test]
    fn rates_are_relative_to_answers_expecting_the_tool() {
        let mut confusion = Confusion::default();
        let called = |tools: &[&str]| tools.iter().map(|&tool| tool.to_owned()).collect::<Vec<_>>();
        confusion.add(&exactly(&["a"]), &called(&["b", "c"]));
        confusion.add(&exactly(&["a"]), &called(&["a"]));
        confusion.add(&exactly(&["d"]), &called(&["d", "c"]));
        confusion.add(&exactly(&[]), &called(&["c"]));
        assert_eq!(confusion.answers(), 4);
        assert_eq!(confusion.rate("a", "b"), Some(0.5));
        assert_eq!(confusion.rate("a", "c"), Some(0.5));
        assert_eq!(confusion.rate(NO_TOOL, "c"), Some(0.5));
        assert_eq!(confusion.rate("x", "c"), None);
    }

    #[test]
    fn counts_extra_calls_only_if_not_allowed() {
        let mut confusion = Confusion::default();
        let expect = Expectation { tools_called_match: Some(ToolsCalledMatch::Includes), ..exactly(&["a"]) };
        confusion.add(&expect, &["a".to_owned(), "b".to_owned()]);
        assert_eq!(confusion.worst(), []);
        confusion.add(&expect, &["b".to_owned()]);
        assert_eq!(confusion.worst(), [("a", "b", 1)]);
        assert!(!confusion.add(&Expectation::default(), &[]));
    }
}
