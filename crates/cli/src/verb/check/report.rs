//! What was found, as people and programs read it.

use std::collections::BTreeMap;

use karat_core::exit::ExitStatus;
use karat_core::lint::Severity;
use karat_json::{Finding, Place, Position};
use karat_report::{counted, printable};
use schemars::JsonSchema;
use serde::Serialize;

use super::issue::Issue;
use crate::args::OutputFormat;
use crate::diagnostic::{SourceProblem, render};
use crate::failure::Failure;
use crate::printer::Printer;

/// The rule under which invalid places are listed.
pub(super) const INVALID: &str = "invalid";

/// How many findings of one rule are shown in full: of eval files, and of tools, which are many and often all alike.
const MOST_IN_FILES: usize = 50;
const MOST_OF_TOOLS: usize = 10;

/// How many of the others are named.
const MOST_NAMED: usize = 3;

/// What `karat check --format json` prints.
#[derive(Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat check report")]
pub(crate) struct CheckReport {
    /// How many eval files were read.
    files: usize,
    /// How many cases the valid ones have.
    cases: usize,
    /// How many tools are known; null without a registry.
    tools: Option<usize>,
    /// How many findings about tools the configuration silences.
    silenced: usize,
    /// The rules that could not be judged, since not all eval files were checked or valid.
    not_judged: Vec<String>,
    /// What was found, in the order of tools, eval files and overlap map.
    issues: Vec<CheckIssue>,
}

/// Something that is invalid or likely wrong.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CheckIssue {
    /// The file, or the server or flag, that it is in.
    file: String,
    /// From 1; null where there is no text to point at.
    line: Option<usize>,
    /// From 1, in characters.
    column: Option<usize>,
    severity: Severity,
    /// The rule's name; `invalid` for what makes a file unusable.
    rule: String,
    case_id: Option<String>,
    tool: Option<String>,
    /// Where in a JSON file, as a JSON pointer.
    pointer: Option<String>,
    message: String,
    help: Option<String>,
}

/// Shows issues as they come, and keeps what programs read.
pub(super) struct Reporter<'p> {
    format: OutputFormat,
    printer: &'p Printer,
    report: CheckReport,
    /// For each rule, how many were shown in full, and whom the others are about.
    shown: BTreeMap<String, usize>,
    left_out: BTreeMap<String, LeftOut>,
}

/// Findings that are only counted.
#[derive(Default)]
struct LeftOut {
    count: usize,
    named: Vec<String>,
    has_more: bool,
}

impl LeftOut {
    fn add(&mut self, name: &str) {
        self.count += 1;
        if self.named.iter().any(|named| named == name) {
            return;
        }
        if self.named.len() < MOST_NAMED {
            self.named.push(name.to_owned());
        } else {
            self.has_more = true;
        }
    }
}

impl<'p> Reporter<'p> {
    pub(super) fn new(format: OutputFormat, printer: &'p Printer) -> Self {
        let report = CheckReport::default();
        Self { format, printer, report, shown: BTreeMap::new(), left_out: BTreeMap::new() }
    }

    pub(super) fn tools(&mut self, count: usize) {
        self.report.tools = Some(count);
    }

    pub(super) fn file(&mut self, cases: usize) {
        self.report.files += 1;
        self.report.cases += cases;
    }

    pub(super) fn add(&mut self, issues: Vec<Issue>) -> Result<(), Failure> {
        for issue in issues {
            if self.format == OutputFormat::Human {
                self.show(&issue)?;
            }
            self.report.issues.push(CheckIssue::of(issue));
        }
        Ok(())
    }

    /// Says that a rule was not judged, which is not the same as kept.
    pub(super) fn not_judged(&mut self, rule: &str, why: &str) {
        self.printer.note(&format!("{rule} was not judged: {why}"));
        self.report.not_judged.push(rule.to_owned());
    }

    fn show(&mut self, issue: &Issue) -> Result<(), Failure> {
        let most = if issue.case_id.is_some() || issue.rule == INVALID { MOST_IN_FILES } else { MOST_OF_TOOLS };
        let shown = self.shown.entry(issue.rule.clone()).or_default();
        if *shown >= most {
            let left_out = self.left_out.entry(issue.rule.clone()).or_default();
            left_out.add(issue.subject().unwrap_or(&issue.file));
            return Ok(());
        }
        *shown += 1;
        let finding = |place| Finding {
            place,
            pointer: issue.pointer.clone(),
            case_id: issue.subject().map(str::to_owned),
            message: issue.message.clone(),
            help: issue.help.clone(),
        };
        let rule = Some(issue.rule.clone());
        let problem = if let Some((text, place)) = &issue.place {
            SourceProblem::new(&issue.file, text, finding(place.clone()), issue.severity, rule)
        } else {
            let nowhere = Place { range: 0..0, position: Position { line: 1, column: 1 } };
            SourceProblem::without_source(&issue.file, finding(nowhere), issue.severity, rule)
        };
        self.printer.print(&format!("{}\n\n", render(problem, self.printer, self.printer.stdout_palette)))
    }

    /// Prints the end, and returns what is left to say to the caller.
    pub(super) fn end(mut self, silenced: usize, strict: bool) -> Result<ExitStatus, Failure> {
        self.report.silenced = silenced;
        match self.format {
            OutputFormat::Json => self.printer.print_json(&self.report)?,
            OutputFormat::Human => {
                let left_out = self.left_out_lines();
                let gap = if left_out.is_empty() { "" } else { "\n" };
                self.printer.print(&format!("{left_out}{gap}{}\n", self.totals()))?;
            }
        }
        Ok(self.report.status(strict))
    }

    fn left_out_lines(&self) -> String {
        let ellipsis = self.printer.symbols.ellipsis;
        let line = |(rule, left_out): (&String, &LeftOut)| {
            let named: Vec<String> = left_out.named.iter().map(|name| printable(name).into_owned()).collect();
            let rest = if left_out.has_more { format!(", {ellipsis}") } else { String::new() };
            let line = format!("{ellipsis} and {} more of {rule}: {}{rest}", left_out.count, named.join(", "));
            let options = textwrap::Options::new(self.printer.columns)
                .subsequent_indent("  ")
                .break_words(false)
                .word_splitter(textwrap::WordSplitter::NoHyphenation)
                .word_separator(textwrap::WordSeparator::AsciiSpace);
            textwrap::fill(&line, options) + "\n"
        };
        let lines: String = self.left_out.iter().map(line).collect();
        if lines.is_empty() { lines } else { format!("{lines}--format json lists all\n") }
    }

    fn totals(&self) -> String {
        let CheckReport { files, cases, tools, silenced, issues, .. } = &self.report;
        let count = |test: &dyn Fn(&CheckIssue) -> bool| issues.iter().filter(|issue| test(issue)).count();
        let invalid = count(&|issue| issue.rule == INVALID);
        let errors = count(&|issue| issue.severity == Severity::Error) - invalid;
        let warnings = count(&|issue| issue.severity == Severity::Warning);
        let tools = tools.map(|tools| format!("{}, ", counted(tools, "tool"))).unwrap_or_default();
        let silenced = if *silenced > 0 { format!(", {silenced} silenced") } else { String::new() };
        let line = format!(
            "{tools}{}, {}: {invalid} invalid, {}, {}{silenced}",
            counted(*files, "file"),
            counted(*cases, "case"),
            counted(errors, "error"),
            counted(warnings, "warning"),
        );
        let palette = self.printer.stdout_palette;
        if invalid + errors > 0 {
            palette.bad(line)
        } else if warnings > 0 {
            palette.doubtful(line)
        } else {
            palette.good(line)
        }
    }
}

impl CheckIssue {
    fn of(issue: Issue) -> Self {
        let position = issue.place.map(|(_, place)| place.position);
        Self {
            file: issue.file,
            line: position.map(|position| position.line),
            column: position.map(|position| position.column),
            severity: issue.severity,
            rule: issue.rule,
            case_id: issue.case_id,
            tool: issue.tool,
            pointer: issue.pointer,
            message: issue.message,
            help: issue.help,
        }
    }
}

impl CheckReport {
    fn status(&self, strict: bool) -> ExitStatus {
        let any = |test: &dyn Fn(&CheckIssue) -> bool| self.issues.iter().any(test);
        if any(&|issue| issue.rule == INVALID) {
            ExitStatus::Invalid
        } else if any(&|issue| issue.severity == Severity::Error || strict) {
            ExitStatus::Failed
        } else {
            ExitStatus::Success
        }
    }
}
