//! What all reports gather that are written when a run has ended.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;

use karat_core::event::{RunEvent, RunTotals, SuiteHeader};
use karat_core::result::{CaseResult, Outcome, SuiteResult};
use karat_core::rubric::RubricSuite;
use karat_core::staleness::Staleness;

use crate::terminal_text::printable;

/// A run as its events told it, for reports that are written when it has ended.
#[derive(Debug, Clone, Default)]
pub struct RunRecord {
    pub run_id: String,
    /// In the order in which they are reported.
    pub suites: Vec<SuiteRecord>,
    /// In the order in which they are reported, after all suites.
    pub rubrics: Vec<Arc<RubricSuite>>,
    pub totals: RunTotals,
}

impl RunRecord {
    /// Takes an event in; returns whether it was the run's last.
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

    /// Returns all cases that ran, suite by suite in the files' order.
    pub fn cases(&self) -> impl Iterator<Item = CaseRecord<'_>> {
        self.suites.iter().flat_map(SuiteRecord::cases)
    }
}

/// One suite of a run.
#[derive(Debug, Clone)]
pub struct SuiteRecord {
    pub header: Arc<SuiteHeader>,
    /// Absent when the run ended before the suite did.
    pub result: Option<Arc<SuiteResult>>,
    /// By id, for cases that a report points at: a result does not say which of the selected cases ran.
    lines: HashMap<String, usize>,
    /// By id, the place of each case among those selected; only where several agents are compared by it.
    places: HashMap<String, usize>,
}

impl SuiteRecord {
    fn new(header: &Arc<SuiteHeader>) -> Self {
        Self { header: Arc::clone(header), result: None, lines: HashMap::new(), places: HashMap::new() }
    }

    fn observe_case(&mut self, index: usize, case: &CaseResult) {
        if self.header.agent.is_some() {
            self.places.insert(case.id.clone(), index);
        }
        let is_plain = case.outcome == Outcome::Passed && !case.vacuous;
        if let Some(line) = self.header.lines.get(index)
            && !is_plain
        {
            self.lines.insert(case.id.clone(), *line);
        }
    }

    /// Returns the cases that ran, in the file's order.
    pub fn cases(&self) -> impl Iterator<Item = CaseRecord<'_>> {
        let result = self.result.as_deref();
        let regressions: HashSet<&str> =
            result.iter().flat_map(|result| &result.regressions).map(String::as_str).collect();
        result.into_iter().flat_map(|result| &result.cases).map(move |case| CaseRecord {
            suite: self,
            result: case,
            is_regression: regressions.contains(case.id.as_str()),
        })
    }

    /// Returns a text about the suite, with its agent where a run asks several.
    pub(crate) fn with_agent(&self, text: &str) -> String {
        match &self.header.agent {
            Some(agent) => format!("{text} ({agent})"),
            None => text.to_owned(),
        }
    }

    /// Returns what is known of the suite being out of date.
    pub(crate) fn staleness(&self) -> Vec<String> {
        match &self.result {
            Some(result) => result.staleness_warnings.clone(),
            None => self.header.staleness.iter().map(Staleness::warning).collect(),
        }
    }

    /// Tells whether the suite is known to be out of date.
    pub(crate) fn is_stale(&self) -> bool {
        match &self.result {
            Some(result) => result.stale,
            None => self.header.staleness.iter().any(Staleness::is_stale),
        }
    }

    /// Returns what else a person should know.
    pub(crate) fn warnings(&self) -> &[String] {
        self.result.as_ref().map_or(&[], |result| &result.warnings)
    }

    /// Returns how many selected cases have no result.
    pub(crate) fn not_run(&self) -> usize {
        self.result.as_ref().map_or(self.header.selected, |result| result.summary.not_run)
    }
}

/// What a report does with a case.
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
    /// The baseline's comparison lists it.
    pub is_regression: bool,
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

    /// Tells whether the case passed without a check.
    pub(crate) fn shows_nothing(&self) -> bool {
        self.result.vacuous && self.kind() == Kind::Passed
    }

    /// Returns the line in the eval file, known for cases that did not plainly pass.
    pub(crate) fn line(&self) -> Option<usize> {
        self.suite.lines.get(&self.result.id).copied()
    }

    /// Returns the case's place among those selected, known where several agents are compared.
    pub(crate) fn place(&self) -> Option<usize> {
        self.suite.places.get(&self.result.id).copied()
    }

    /// Returns the file and, where it is known, the line.
    pub(crate) fn location(&self) -> String {
        let path = &self.suite.header.path;
        self.line().map_or_else(|| path.clone(), |line| format!("{path}:{line}"))
    }

    /// Returns why the case did not pass, in one text.
    pub(crate) fn reason(&self) -> String {
        let messages: Vec<&str> = self.reasons().into_iter().map(|(message, _)| message).collect();
        messages.join("\n")
    }

    /// Returns every failure with its place in the case, or why there is no verdict.
    pub(crate) fn reasons(&self) -> Vec<(&str, Option<&str>)> {
        if self.kind() == Kind::Errored {
            return vec![(self.result.error.as_deref().unwrap_or("no verdict could be reached"), None)];
        }
        let reasons = self.result.reasons();
        if reasons.is_empty() { vec![("failed without a reason", None)] } else { reasons }
    }
}

/// Spells out the characters that steer a terminal, turn text around, end a line unseen or are forbidden in XML; only
/// line ends and tabs stay.
pub(crate) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\n' | '\t' => out.push(character),
            '\r' if characters.peek() == Some(&'\n') => {}
            '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}' => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
            }
            _ => out.push_str(&printable(character.encode_utf8(&mut [0; 4]))),
        }
    }
    out
}
