//! Text output of findings.

use std::collections::BTreeMap;

use karat_core::lint::Severity;
use karat_json::{Finding, Location, Position};
use karat_report::{SourceProblem, counted, printable};
use karat_workflows::check::{CheckIssue, CheckReport, INVALID};

use crate::failure::Failure;
use crate::printer::Printer;

/// Findings of one rule that are shown in full.
const MAX_CASE_FINDINGS: usize = 50;
/// Fewer than for cases, since findings in tools are often alike.
const MAX_TOOL_FINDINGS: usize = 10;

/// Other tools that are named below the first with the same finding.
const MAX_ALSO: usize = 10;

/// Other findings that are named.
const MAX_NAMED: usize = 3;

/// Findings of a rule beyond the limit.
#[derive(Default)]
struct OmittedFindings<'r> {
    count: usize,
    named: Vec<&'r str>,
    has_more: bool,
}

impl<'r> OmittedFindings<'r> {
    fn add(&mut self, name: &'r str) {
        self.count += 1;
        if self.named.contains(&name) {
            return;
        }
        if self.named.len() < MAX_NAMED {
            self.named.push(name);
        } else {
            self.has_more = true;
        }
    }
}

pub(super) fn print_report(report: &CheckReport, printer: &Printer) -> Result<(), Failure> {
    let mut shown: BTreeMap<&str, usize> = BTreeMap::new();
    let mut omitted: BTreeMap<&str, OmittedFindings<'_>> = BTreeMap::new();
    for (issue, others) in group_tools(&report.issues) {
        let limit =
            if issue.case_id.is_some() || issue.rule == INVALID { MAX_CASE_FINDINGS } else { MAX_TOOL_FINDINGS };
        let shown = shown.entry(&issue.rule).or_default();
        if *shown >= limit {
            let omitted = omitted.entry(&issue.rule).or_default();
            [issue].into_iter().chain(others).for_each(|issue| omitted.add(issue.subject().unwrap_or(&issue.file)));
            continue;
        }
        *shown += 1;
        let problem = source_problem(issue).text(printer.console());
        printer.print(&format!("{problem}\n{}\n", also_line(&others, printer)))?;
    }
    let omitted = omitted_lines(&omitted, printer);
    let gap = if omitted.is_empty() { "" } else { "\n" };
    printer.print(&format!("{omitted}{gap}{}\n", totals(report, printer)))
}

/// Groups findings that say the same of several tools: the first, and the others.
fn group_tools(issues: &[CheckIssue]) -> Vec<(&CheckIssue, Vec<&CheckIssue>)> {
    let mut groups: Vec<(&CheckIssue, Vec<&CheckIssue>)> = Vec::new();
    for issue in issues {
        let is_same = |(first, _): &&mut (&CheckIssue, Vec<&CheckIssue>)| {
            first.tool.is_some()
                && (&first.rule, &first.message, &first.help) == (&issue.rule, &issue.message, &issue.help)
        };
        let same = if issue.tool.is_some() { groups.iter_mut().find(is_same) } else { None };
        match same {
            Some((_, others)) => others.push(issue),
            None => groups.push((issue, Vec::new())),
        }
    }
    groups
}

/// Names the other tools of a group with their places.
fn also_line(others: &[&CheckIssue], printer: &Printer) -> String {
    if others.is_empty() {
        return String::new();
    }
    let place = |issue: &&CheckIssue| {
        let line = issue.line.map(|line| format!(":{line}")).unwrap_or_default();
        let tool = issue.tool.as_deref().unwrap_or_default();
        format!("{} ({}{line})", printable(tool), printable(&issue.file))
    };
    let mut places: Vec<String> = others.iter().take(MAX_ALSO).map(place).collect();
    if others.len() > MAX_ALSO {
        places.push(format!("and {} more", others.len() - MAX_ALSO));
    }
    fill(&format!("  also: {}", places.join(", ")), "    ", printer.columns)
}

/// Wraps a line without breaking words.
fn fill(line: &str, indent: &str, columns: usize) -> String {
    let options = textwrap::Options::new(columns)
        .subsequent_indent(indent)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .word_separator(textwrap::WordSeparator::AsciiSpace);
    textwrap::fill(line, options) + "\n"
}

fn source_problem(issue: &CheckIssue) -> SourceProblem {
    let finding = |location| Finding {
        location,
        pointer: issue.pointer.clone(),
        case_id: issue.subject().map(str::to_owned),
        message: issue.message.clone(),
        help: issue.help.clone(),
    };
    let rule = Some(issue.rule.clone());
    if let Some((text, location)) = &issue.location {
        SourceProblem::new(&issue.file, text, finding(location.clone()), issue.severity, rule)
    } else {
        let start = Location { range: 0..0, position: Position { line: 1, column: 1 } };
        SourceProblem::without_source(&issue.file, finding(start), issue.severity, rule)
    }
}

fn omitted_lines(omitted: &BTreeMap<&str, OmittedFindings<'_>>, printer: &Printer) -> String {
    let ellipsis = printer.symbols.ellipsis;
    let line = |(rule, omitted): (&&str, &OmittedFindings<'_>)| {
        let named: Vec<_> = omitted.named.iter().map(|name| printable(name)).collect();
        let rest = if omitted.has_more { format!(", {ellipsis}") } else { String::new() };
        let line = format!("{ellipsis} and {} more of {rule}: {}{rest}", omitted.count, named.join(", "));
        fill(&line, "  ", printer.columns)
    };
    let lines: String = omitted.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("{lines}pass --format json to list all\n") }
}

fn totals(report: &CheckReport, printer: &Printer) -> String {
    let CheckReport { files, cases, tools, silenced, issues, .. } = report;
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
    let palette = printer.stdout_palette;
    if invalid + errors > 0 {
        palette.failure(line)
    } else if warnings > 0 {
        palette.warning(line)
    } else {
        palette.success(line)
    }
}
