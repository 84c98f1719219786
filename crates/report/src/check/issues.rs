//! The findings of `karat check`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use karat_json::{Finding, Location, Position};
use karat_lints::{Rule, Severity};
use karat_workflows::check::{CheckIssue, CheckReport, INVALID};

use crate::console::{ConsoleSettings, Verbosity};
use crate::message::write_wrapped;
use crate::source_problem::SourceProblem;
use crate::terminal_text::printable;
use crate::tools::counted;

/// Maximum number of findings of one rule that are printed in full.
const MAX_CASE_FINDINGS: usize = 50;
/// Fewer than for cases, since findings in tools are often similar.
const MAX_TOOL_FINDINGS: usize = 10;

/// Maximum number of other tools with the same finding, listed below the first.
const MAX_OTHER_TOOLS: usize = 10;

/// Maximum number of omitted findings that are listed by name.
const MAX_OMITTED_NAMES: usize = 3;

/// Findings of a rule beyond the limit.
#[derive(Default)]
struct OmittedFindings<'r> {
    count: usize,
    names: Vec<&'r str>,
    has_more: bool,
}

impl<'r> OmittedFindings<'r> {
    fn add(&mut self, name: &'r str) {
        self.count += 1;
        if self.names.contains(&name) {
            return;
        }
        if self.names.len() < MAX_OMITTED_NAMES {
            self.names.push(name);
        } else {
            self.has_more = true;
        }
    }
}

/// Renders the findings with their source, the number of findings that are left out, and the totals. Quiet output has
/// no warnings, unless they fail the check.
pub fn check_text(report: &CheckReport, strict: bool, settings: ConsoleSettings) -> String {
    let mut out = String::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut omitted: BTreeMap<&str, OmittedFindings<'_>> = BTreeMap::new();
    let is_quiet = settings.verbosity == Verbosity::Quiet && !strict;
    let mut groups = group_tools(&report.issues);
    // Stable: the order of the files stays within each severity.
    groups.sort_by_key(|(issue, _)| match issue.severity {
        _ if issue.rule == INVALID => 0,
        Severity::Error => 1,
        Severity::Warning => 2,
    });
    for (issue, others) in groups {
        if is_quiet && issue.severity != Severity::Error {
            continue;
        }
        let limit =
            if issue.case_id.is_some() || issue.rule == INVALID { MAX_CASE_FINDINGS } else { MAX_TOOL_FINDINGS };
        let count = counts.entry(&issue.rule).or_default();
        if *count >= limit {
            let omitted = omitted.entry(&issue.rule).or_default();
            [issue].into_iter().chain(others).for_each(|issue| omitted.add(issue.subject().unwrap_or(&issue.file)));
            continue;
        }
        *count += 1;
        let _ = writeln!(out, "{}\n{}", source_problem(issue).text(settings), other_tools_line(&others, settings));
    }
    let omitted = omitted_lines(&omitted, settings);
    let gap = if omitted.is_empty() { "" } else { "\n" };
    let _ = writeln!(out, "{omitted}{gap}{}", totals(report, settings));
    out
}

/// Groups identical findings of several tools, and those about the same tool of which nothing is known: the first, and
/// the others.
fn group_tools(issues: &[CheckIssue]) -> Vec<(&CheckIssue, Vec<&CheckIssue>)> {
    let mut groups: Vec<(&CheckIssue, Vec<&CheckIssue>)> = Vec::new();
    for issue in issues {
        let is_grouped = |issue: &CheckIssue| issue.tool.is_some() || issue.rule == Rule::ToolNotKnown.name();
        let is_same = |(first, _): &&mut (&CheckIssue, Vec<&CheckIssue>)| {
            is_grouped(first)
                && (&first.rule, &first.message, &first.help) == (&issue.rule, &issue.message, &issue.help)
        };
        let same = if is_grouped(issue) { groups.iter_mut().find(is_same) } else { None };
        match same {
            Some((_, others)) => others.push(issue),
            None => groups.push((issue, Vec::new())),
        }
    }
    groups
}

/// Lists the other tools of a group with their locations.
fn other_tools_line(others: &[&CheckIssue], settings: ConsoleSettings) -> String {
    if others.is_empty() {
        return String::new();
    }
    let label = |issue: &&CheckIssue| {
        let line = issue.line.map(|line| format!(":{line}")).unwrap_or_default();
        format!("{} ({}{line})", printable(issue.subject().unwrap_or_default()), printable(&issue.file))
    };
    let mut labels: Vec<String> = others.iter().take(MAX_OTHER_TOOLS).map(label).collect();
    if others.len() > MAX_OTHER_TOOLS {
        labels.push(format!("and {} more", others.len() - MAX_OTHER_TOOLS));
    }
    let mut wrapped = String::new();
    write_wrapped("  also: ", "    ", &labels.join(", "), settings.columns, &mut wrapped);
    wrapped
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

fn omitted_lines(omitted: &BTreeMap<&str, OmittedFindings<'_>>, settings: ConsoleSettings) -> String {
    let ellipsis = settings.symbols.ellipsis;
    let line = |(rule, omitted): (&&str, &OmittedFindings<'_>)| {
        let names: Vec<_> = omitted.names.iter().map(|name| printable(name)).collect();
        let rest = if omitted.has_more { format!(", {ellipsis}") } else { String::new() };
        let line = format!("{ellipsis} and {} more of {rule}: {}{rest}", omitted.count, names.join(", "));
        let mut wrapped = String::new();
        write_wrapped("", "  ", &line, settings.columns, &mut wrapped);
        wrapped
    };
    let lines: String = omitted.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("{lines}pass --format json to list all\n") }
}

fn totals(report: &CheckReport, settings: ConsoleSettings) -> String {
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
    let palette = settings.palette;
    if invalid + errors > 0 {
        palette.failure(line)
    } else if warnings > 0 {
        palette.warning(line)
    } else {
        palette.success(line)
    }
}
