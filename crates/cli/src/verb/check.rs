//! `karat check`: what is invalid or likely wrong, without asking the agent.

use std::sync::Arc;

use karat_core::case::SuiteFile;
use karat_core::exit::ExitStatus;
use karat_core::lint::{Lint, LintContext, Severity, lint};
use karat_core::overlap::OverlapMap;
use karat_core::registry::Registry;
use karat_core::source::{Finding, Problem, Subject};
use karat_core::staleness::{CurrentTool, Staleness, check_staleness};
use serde::Serialize;
use serde_json::Value;

use crate::args::{CheckArgs, OutputFormat};
use crate::config::ToolExecutor;
use crate::diagnostic::{SourceProblem, render};
use crate::discover::{EvalPath, discover};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::end_when_asked;
use crate::load::{parse_suite_file, read_bytes, without_bom};
use crate::model::is_model;
use crate::overlap::read_overlap_map;
use crate::printer::Printer;
use crate::registry::read_tools;
use crate::regression::archived_ids;
use crate::settings::Settings;

/// The rule under which invalid places are listed.
const INVALID: &str = "invalid";
/// The rule under which out-of-date files are listed.
const STALE: &str = "stale";

pub(crate) fn run(args: &CheckArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    let mut settings = Settings::resolve(&args.config, &args.paths, environment, printer)?;
    let paths = discover(&args.paths, &settings, &environment.current_dir)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::errored(format!("cannot start: {error}")))?;
    end_when_asked(&runtime);
    let registry = runtime.block_on(read_tools(&mut settings, printer))?.registry;
    let overlaps = read_overlap_map(&settings.overlap_map, printer)?;
    let is_model = settings.agent_endpoints.iter().any(|endpoint| is_model(&endpoint.value, &settings));
    // Where tools really run, a model goes on to its final response.
    let routing_only = is_model && settings.live.executor != ToolExecutor::Mcp;
    let checker = Checker { registry: registry.as_ref(), overlaps: overlaps.as_ref(), routing_only };
    let mut report = Report::default();
    for path in &paths {
        let bytes = read_bytes(path)?;
        let text: Arc<str> = Arc::from(String::from_utf8_lossy(without_bom(&bytes)));
        let issues = checker.check(path, &bytes, &text, &mut report.cases);
        if args.format == OutputFormat::Human {
            for issue in &issues {
                let problem = SourceProblem::new(
                    &path.shown,
                    &text,
                    issue.finding.clone(),
                    issue.severity,
                    Some(issue.rule.clone()),
                );
                let shown = render(problem, printer, printer.stdout_palette);
                printer.out(&format!("{shown}\n\n")).map_err(|error| Failure::errored(error.to_string()))?;
            }
        }
        report.files += 1;
        report.issues.extend(issues.into_iter().map(|issue| issue.entry(path)));
    }
    report.print(args.format, printer)?;
    Ok(report.status(settings.strict))
}

struct Checker<'c> {
    registry: Option<&'c Registry>,
    #[expect(dead_code, reason = "the lints that look at it come next")]
    overlaps: Option<&'c OverlapMap>,
    routing_only: bool,
}

/// Something to tell of a file.
struct Issue {
    rule: String,
    severity: Severity,
    finding: Finding,
}

impl Checker<'_> {
    fn check(&self, path: &EvalPath, bytes: &[u8], text: &str, cases: &mut usize) -> Vec<Issue> {
        let file = match parse_suite_file(path, bytes) {
            Ok(SuiteFile::Eval(file)) => file,
            // What can be wrong with a message, a stub or a tool is wrong with it in any file.
            Ok(SuiteFile::Rubric(file)) => file.without_rubrics(),
            Err(findings) => {
                let issue = |finding| Issue { rule: INVALID.to_owned(), severity: Severity::Error, finding };
                return findings.into_iter().map(issue).collect();
            }
        };
        *cases += file.cases.len();
        let prefix = if text.trim_start().starts_with('[') { "" } else { "/cases" };
        // Only an immutable case must be compared as it was written.
        let is_hashed = file.metadata.as_ref().is_some_and(|metadata| metadata.case_hashes.is_some());
        let tree: Value = if is_hashed { serde_json::from_str(text).unwrap_or_default() } else { Value::Null };
        let raw_cases = tree.pointer(prefix).and_then(Value::as_array).map(Vec::as_slice);
        let archived = is_hashed.then(|| archived_ids(&path.path));
        let context = LintContext {
            registry: self.registry,
            routing_only: self.routing_only,
            raw_cases,
            archived: archived.as_ref(),
        };
        let stale = check_staleness(&file, &CurrentTool::of(&file, self.registry));
        let stale =
            stale.iter().filter(|staleness| staleness.is_stale() || self.registry.is_some()).map(from_staleness);
        let lints = lint(&file, context).into_iter().map(|lint| from_lint(prefix, lint));
        Finding::locate_marked(text, stale.chain(lints).collect())
            .into_iter()
            .map(|(finding, (rule, severity))| Issue { rule: rule.to_owned(), severity, finding })
            .collect()
    }
}

/// What is wrong, by which rule, and how much it matters.
type Marked = (Problem, (&'static str, Severity));

fn from_staleness(staleness: &Staleness) -> Marked {
    (problem("/metadata".to_owned(), None, staleness.warning()), (STALE, Severity::Warning))
}

fn from_lint(prefix: &str, lint: Lint) -> Marked {
    let pointer = lint.pointer_in_file(prefix);
    (problem(pointer, Some(lint.case_id), lint.message), (lint.rule.name(), lint.rule.severity()))
}

fn problem(pointer: String, case_id: Option<String>, message: String) -> Problem {
    Problem { pointer, subject: Subject::Key, case_id, message, help: None }
}

/// All issues, as programs read them.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    files: usize,
    cases: usize,
    issues: Vec<Entry>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    file: String,
    line: usize,
    column: usize,
    severity: Severity,
    rule: String,
    case_id: Option<String>,
    pointer: Option<String>,
    message: String,
    help: Option<String>,
}

impl Issue {
    fn entry(self, path: &EvalPath) -> Entry {
        Entry {
            file: path.shown.clone(),
            line: self.finding.place.position.line,
            column: self.finding.place.position.column,
            severity: self.severity,
            rule: self.rule,
            case_id: self.finding.case_id,
            pointer: self.finding.pointer,
            message: self.finding.message,
            help: self.finding.help,
        }
    }
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

impl Report {
    fn print(&self, format: OutputFormat, printer: &Printer) -> Result<(), Failure> {
        let text = match format {
            OutputFormat::Json => {
                serde_json::to_string_pretty(self).map_err(|error| Failure::errored(error.to_string()))?
            }
            OutputFormat::Human => self.totals(printer),
        };
        printer.out(&format!("{text}\n")).map_err(|error| Failure::errored(error.to_string()))
    }

    fn totals(&self, printer: &Printer) -> String {
        let count = |test: &dyn Fn(&Entry) -> bool| self.issues.iter().filter(|issue| test(issue)).count();
        let invalid = count(&|issue| issue.rule == INVALID);
        let errors = count(&|issue| issue.severity == Severity::Error) - invalid;
        let warnings = count(&|issue| issue.severity == Severity::Warning);
        let palette = printer.stdout_palette;
        let line = format!(
            "{}, {}: {invalid} invalid, {}, {}",
            counted(self.files, "file"),
            counted(self.cases, "case"),
            counted(errors, "error"),
            counted(warnings, "warning"),
        );
        if invalid + errors > 0 {
            palette.bad(line)
        } else if warnings > 0 {
            palette.doubtful(line)
        } else {
            palette.good(line)
        }
    }

    fn status(&self, strict: bool) -> ExitStatus {
        let any = |test: &dyn Fn(&Entry) -> bool| self.issues.iter().any(test);
        if any(&|issue| issue.rule == INVALID) {
            ExitStatus::Invalid
        } else if any(&|issue| issue.severity == Severity::Error || strict) {
            ExitStatus::Failed
        } else {
            ExitStatus::Success
        }
    }
}
