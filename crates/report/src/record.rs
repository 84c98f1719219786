//! Collects the events of a run for reports that are written at its end.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;

use karat_core::assertion::NearMiss;
use karat_core::event::{RunEvent, RunTotals, SuiteHeader, UnreachableAgent};
use karat_core::result::{CaseResult, Cause, MissingCases, Outcome, SuiteResult};
use karat_core::rubric::RubricSuite;
use karat_core::staleness::Staleness;

use crate::terminal_text::printable;

/// A run, built from its events.
#[derive(Debug, Clone, Default)]
pub struct RunRecord {
    pub run_id: String,
    /// In report order.
    pub suites: Vec<SuiteRecord>,
    /// In report order, after all suites.
    pub rubrics: Vec<Arc<RubricSuite>>,
    pub totals: RunTotals,
}

impl RunRecord {
    /// Records an event. Returns whether it was the last of the run.
    pub fn observe(&mut self, event: &RunEvent) -> bool {
        match event {
            RunEvent::RunStarted { run_id, suites, .. } => {
                self.run_id.clone_from(run_id);
                self.suites = suites.iter().map(SuiteRecord::new).collect();
            }
            RunEvent::CaseFinished { suite, index, result } => {
                if let Some(suite) = self.suites.get_mut(*suite) {
                    suite.observe_case(*index, result);
                }
            }
            RunEvent::SuiteFinished { suite, result } => {
                if let Some(suite) = self.suites.get_mut(*suite) {
                    suite.result = Some(Arc::clone(result));
                }
            }
            RunEvent::RubricFinished { suite } => self.rubrics.push(Arc::clone(suite)),
            RunEvent::RunFinished { totals, .. } => {
                self.totals = totals.clone();
                return true;
            }
        }
        false
    }

    /// Returns all cases that ran, by suite and in file order.
    pub fn cases(&self) -> impl Iterator<Item = CaseRecord<'_>> {
        self.suites.iter().flat_map(SuiteRecord::cases)
    }
}

/// One suite of a run.
#[derive(Debug, Clone)]
pub struct SuiteRecord {
    pub header: Arc<SuiteHeader>,
    /// `None` if the run ended before the suite finished.
    pub result: Option<Arc<SuiteResult>>,
    /// The lines of cases that a report points to, by id.
    lines: HashMap<String, usize>,
    /// The index of each case among those selected, by id; only with several agents.
    indexes: HashMap<String, usize>,
}

impl SuiteRecord {
    fn new(header: &Arc<SuiteHeader>) -> Self {
        Self { header: Arc::clone(header), result: None, lines: HashMap::new(), indexes: HashMap::new() }
    }

    fn observe_case(&mut self, index: usize, case: &CaseResult) {
        if self.header.agent.is_some() {
            self.indexes.insert(case.id.clone(), index);
        }
        if let Some(line) = self.header.lines.get(index)
            && (!case.is_plain_pass() || case.has_near_miss())
        {
            self.lines.insert(case.id.clone(), *line);
        }
    }

    /// Returns the cases that ran, in file order.
    pub fn cases(&self) -> impl Iterator<Item = CaseRecord<'_>> {
        let result = self.result.as_deref();
        let regressions: HashSet<&str> =
            result.iter().flat_map(|result| &result.regressions).map(String::as_str).collect();
        let still_failing: HashSet<&str> =
            result.iter().flat_map(|result| &result.still_failing).map(String::as_str).collect();
        result.into_iter().flat_map(|result| &result.cases).map(move |case| CaseRecord {
            suite: self,
            result: case,
            is_regression: regressions.contains(case.id.as_str()),
            is_still_failing: still_failing.contains(case.id.as_str()),
        })
    }

    /// Appends the agent to text, if the run has several.
    pub(crate) fn with_agent(&self, text: &str) -> String {
        match &self.header.agent {
            Some(agent) => format!("{text} ({agent})"),
            None => text.to_owned(),
        }
    }

    /// Returns the staleness warnings of the suite.
    pub(crate) fn staleness(&self) -> Vec<String> {
        match &self.result {
            Some(result) => result.staleness_warnings.clone(),
            None => self.header.staleness.iter().map(Staleness::warning).collect(),
        }
    }

    /// Whether the suite is known to be stale.
    pub(crate) fn is_stale(&self) -> bool {
        match &self.result {
            Some(result) => result.stale,
            None => self.header.staleness.iter().any(Staleness::is_stale),
        }
    }

    /// Returns the other warnings of the suite.
    pub(crate) fn warnings(&self) -> &[String] {
        self.result.as_ref().map_or(&[], |result| &result.warnings)
    }

    /// Returns the number of selected cases without a result.
    pub(crate) fn not_run(&self) -> usize {
        self.result.as_ref().map_or(self.header.selected, |result| result.summary.not_run)
    }
}

/// The category of a case in reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Passed,
    /// Passed in the baseline and fails now.
    Regressed,
    Failed,
    Errored,
}

/// One case of a run.
#[derive(Debug, Clone, Copy)]
pub struct CaseRecord<'r> {
    pub suite: &'r SuiteRecord,
    pub result: &'r CaseResult,
    /// Whether it is a regression since the baseline.
    pub is_regression: bool,
    /// Whether it failed in the baseline too.
    pub is_still_failing: bool,
}

impl CaseRecord<'_> {
    pub(crate) fn kind(&self) -> Kind {
        match self.result.outcome {
            Outcome::Passed => Kind::Passed,
            Outcome::Failed if self.is_regression => Kind::Regressed,
            Outcome::Failed => Kind::Failed,
            Outcome::Errored => Kind::Errored,
        }
    }

    /// Whether the case passed without any assertion.
    pub(crate) fn is_vacuous_pass(&self) -> bool {
        self.result.is_vacuous_pass()
    }

    /// Returns the warnings about near misses, without duplicates.
    pub(crate) fn near_misses(&self) -> BTreeSet<String> {
        self.result.all_details().flat_map(|details| &details.near_misses).map(NearMiss::message).collect()
    }

    /// Returns the line in the eval file; only known for cases with something to report.
    pub(crate) fn line(&self) -> Option<usize> {
        self.suite.lines.get(&self.result.id).copied()
    }

    /// Returns the index of the case among those selected; only known with several agents.
    pub(crate) fn index(&self) -> Option<usize> {
        self.suite.indexes.get(&self.result.id).copied()
    }

    /// Returns the file and, if known, the line.
    pub(crate) fn location(&self) -> String {
        let path = &self.suite.header.path;
        self.line().map_or_else(|| path.clone(), |line| format!("{path}:{line}"))
    }

    /// Returns the reasons why the case did not pass, one per line.
    pub(crate) fn reason(&self) -> String {
        let messages: Vec<Cow<'_, str>> = self.reasons().into_iter().map(|(message, _)| message).collect();
        messages.join("\n")
    }

    /// Returns every failure with its location in the case, or the reason for the missing verdict.
    pub(crate) fn reasons(&self) -> Vec<(Cow<'_, str>, Option<&str>)> {
        if self.kind() == Kind::Errored {
            return vec![(self.result.error.as_deref().unwrap_or("no verdict could be reached").into(), None)];
        }
        let reasons = case_reasons(self.result, &self.suite.header);
        if reasons.is_empty() { vec![("failed without a reason".into(), None)] } else { reasons }
    }
}

/// Returns why a case did not pass, each reason with its pointer into the case if it has one. A timeout names its limit.
pub(crate) fn case_reasons<'c>(case: &'c CaseResult, suite: &SuiteHeader) -> Vec<(Cow<'c, str>, Option<&'c str>)> {
    let mut reasons: Vec<_> =
        case.reasons().into_iter().map(|(text, pointer)| (Cow::Borrowed(text), pointer)).collect();
    if case.cause == Some(Cause::Timeout)
        && let Some(limit) = suite.timeout_ms
        && let Some((text, _)) = reasons.first_mut()
    {
        let _ = write!(text.to_mut(), ": no answer within {limit} ms ('timeoutMs')");
    }
    reasons
}

/// Returns a message with the number of cases that were not run because an agent is unreachable; `None` if all were run.
pub(crate) fn unreachable_text(agent: &UnreachableAgent) -> Option<String> {
    let cases = match agent.not_run {
        0 => return None,
        1 => "1 case was".to_owned(),
        count => format!("{count} cases were"),
    };
    Some(format!("the agent cannot be reached, so {cases} not run: {}", agent.error))
}

/// Returns a warning with the number of cases whose tool calls the agent does not report, and how to read the calls.
pub(crate) fn unreported_calls_text(totals: &RunTotals) -> Option<String> {
    let cases = match totals.calls_unreported {
        0 => return None,
        1 => "1 case".to_owned(),
        count => format!("{count} cases"),
    };
    Some(format!(
        "the agent does not report its tool calls, so assertions about calls were not judged in {cases}: \
         'karat agent try MESSAGE' shows what its replies report"
    ))
}

/// Maximum number of missing cases that are named.
const MAX_MISSING_IDS: usize = 5;

/// Lists the cases of the baseline that this run did not run, and those that are no longer in the eval files.
pub(crate) fn baseline_missing_texts(totals: &RunTotals) -> Vec<String> {
    let Some(MissingCases { not_run, removed }) = &totals.baseline_missing else { return Vec::new() };
    let text = |ids: &[String], one: &str, several: &str| {
        let named = ids.iter().take(MAX_MISSING_IDS).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = match ids.len().saturating_sub(MAX_MISSING_IDS) {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        match ids.len() {
            0 => None,
            1 => Some(format!("1 case of the baseline {one}: {named}")),
            count => Some(format!("{count} cases of the baseline {several}: {named}{more}")),
        }
    };
    let not_run = text(not_run, "was not run", "were not run");
    let removed = text(removed, "is no longer in the eval file", "are no longer in the eval files");
    not_run.into_iter().chain(removed).collect()
}

/// Groups cases with the same reason, in order of their first case.
pub(crate) fn group_by_reason<'r>(
    cases: impl Iterator<Item = CaseRecord<'r>>,
) -> Vec<(CaseRecord<'r>, Vec<CaseRecord<'r>>)> {
    let mut groups: Vec<(CaseRecord<'r>, Vec<CaseRecord<'r>>)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for case in cases {
        match known.entry(case.reason()) {
            Entry::Occupied(group) => groups[*group.get()].1.push(case),
            Entry::Vacant(group) => {
                group.insert(groups.len());
                groups.push((case, Vec::new()));
            }
        }
    }
    groups
}

/// Escapes control characters, bidirectional marks, invisible line separators and characters that XML forbids,
/// except line breaks and tabs.
pub(crate) fn escape_invisible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\n' | '\t' => out.push(character),
            '\r' if characters.peek() == Some(&'\n') => {}
            '\u{fffe}' | '\u{ffff}' => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
            }
            _ => out.push_str(&printable(character.encode_utf8(&mut [0; 4]))),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0, None)]
    #[case(1, Some("the agent cannot be reached, so 1 case was not run: refused"))]
    #[case(2, Some("the agent cannot be reached, so 2 cases were not run: refused"))]
    fn counts_cases_that_were_not_run(#[case] not_run: usize, #[case] expected: Option<&str>) {
        let agent = UnreachableAgent { agent: "a".to_owned(), error: "refused".to_owned(), not_run };
        assert_eq!(unreachable_text(&agent).as_deref(), expected);
    }

    #[test]
    fn names_some_missing_cases_of_the_baseline() {
        let ids = |count: usize| (1..=count).map(|number| format!("c{number}")).collect::<Vec<_>>();
        let texts = |not_run: usize, removed: usize| {
            let baseline_missing = Some(MissingCases { not_run: ids(not_run), removed: ids(removed) });
            baseline_missing_texts(&RunTotals { baseline_missing, ..RunTotals::default() })
        };
        assert_eq!(texts(1, 0), ["1 case of the baseline was not run: c1"]);
        assert_eq!(
            texts(7, 2),
            [
                "7 cases of the baseline were not run: c1, c2, c3, c4, c5 and 2 more",
                "2 cases of the baseline are no longer in the eval files: c1, c2",
            ]
        );
        assert!(baseline_missing_texts(&RunTotals::default()).is_empty());
    }
}
