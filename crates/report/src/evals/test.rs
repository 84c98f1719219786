//! The summary of `karat eval test`.

use std::fmt::Write as _;

use karat_core::result::Outcome;
use karat_evals::function_test::{EvalTestReport, TestedCase, TestedFunction};

use crate::console::{ConsoleSettings, Verbosity};
use crate::terminal_text::{printable, truncate, width, wrap, wrap_truncated};
use crate::tools::counted;

/// Maximum number of lines of an error.
const MAX_ERROR_LINES: usize = 12;

/// Renders each function with the cases that did not pass.
pub fn eval_test_text(report: &EvalTestReport, settings: ConsoleSettings) -> String {
    let mut out = String::new();
    for function in &report.functions {
        write_function(function, settings, &mut out);
    }
    for file in &report.cases_without_function {
        let sign = settings.palette.warning(settings.symbols.warning);
        let _ = writeln!(out, "{sign} {}: no eval function of that name", printable(file));
    }
    if !out.is_empty() {
        out.push('\n');
    }
    let _ = writeln!(out, "{}", total(report, settings));
    out
}

fn write_function(function: &TestedFunction, settings: ConsoleSettings, out: &mut String) {
    let (symbols, palette) = (settings.symbols, settings.palette);
    let name = printable(&function.eval_id);
    if function.cases.is_empty() {
        let sign = palette.warning(symbols.warning);
        let reason = if function.has_cases_file { "has none" } else { "does not exist" };
        let _ = writeln!(out, "{sign} {name}: no cases ({} {reason})", printable(&function.cases_file));
        return;
    }
    let passed = function.cases.iter().filter(|case| case.outcome == Outcome::Passed).count();
    let all = function.cases.len();
    let has_errored = function.cases.iter().any(|case| case.outcome == Outcome::Errored);
    if passed == all && settings.verbosity == Verbosity::Quiet {
        return;
    }
    let sign = if passed == all {
        palette.success(symbols.passed)
    } else if has_errored {
        palette.error(symbols.errored)
    } else {
        palette.failure(symbols.failed)
    };
    let _ = writeln!(out, "{sign} {name}: {passed} of {} passed", counted(all, "case"));
    for case in function.cases.iter().filter(|case| case.outcome != Outcome::Passed) {
        write_case(case, &function.cases_file, settings, out);
    }
}

fn write_case(case: &TestedCase, file: &str, settings: ConsoleSettings, out: &mut String) {
    let palette = settings.palette;
    let ellipsis = settings.symbols.ellipsis;
    let available = settings.columns.saturating_sub(4).max(20);
    let location = format!("{}:{}", printable(file), case.line);
    let name = case.name.as_deref().map(printable).unwrap_or_default();
    let name = truncate(&name, available.saturating_sub(width(&location)), ellipsis);
    let _ = writeln!(out, "  {}", palette.bold(format!("{location} {name}").trim_end()));
    let expected = match (case.expected, case.expected_error) {
        (_, Some(kind)) => format!("error ({kind})"),
        (Some(passed), None) => verdict(passed).to_owned(),
        (None, None) if case.expected_not_applicable => "not applicable".to_owned(),
        (None, None) => String::new(),
    };
    let expected = format!("{expected}{}", expected_reason(case));
    for (index, line) in wrap(&expected, available.saturating_sub(9)).iter().enumerate() {
        let _ = writeln!(out, "    {:<8} {line}", if index == 0 { "expected" } else { "" });
    }
    match (case.result, case.error_kind) {
        (Some(passed), _) => {
            let actual = format!("{}: {}", verdict(passed), printable(case.reason.as_deref().unwrap_or_default()));
            for (index, line) in wrap_truncated(&actual, available.saturating_sub(9), ellipsis).iter().enumerate() {
                let label = if index == 0 { "actual" } else { "" };
                let _ = writeln!(out, "    {label:<8} {}", palette.failure(line));
            }
        }
        (None, _) if !case.applicable => {
            let reason = case.reason.as_deref().map(|reason| format!(": {}", printable(reason))).unwrap_or_default();
            let actual = format!("not applicable{reason}");
            let actual = truncate(&actual, available.saturating_sub(9), ellipsis);
            let _ = writeln!(out, "    actual   {}", palette.failure(actual));
        }
        (None, kind) => {
            let kind = kind.map(|kind| format!(" ({kind})")).unwrap_or_default();
            let _ = writeln!(out, "    actual   {}", palette.error(format!("error{kind}")));
        }
    }
    for line in case.error.iter().flat_map(|error| error.lines()).take(MAX_ERROR_LINES) {
        let lines = wrap_truncated(&printable(line), available.saturating_sub(2), ellipsis);
        let _ = writeln!(out, "      {}", lines.join("\n      "));
    }
}

fn expected_reason(case: &TestedCase) -> String {
    let part = case.expected_reason.as_deref().map(|reason| format!(", with '{}' in the reason", printable(reason)));
    part.unwrap_or_default()
}

fn verdict(passed: bool) -> &'static str {
    if passed { "pass" } else { "fail" }
}

fn total(report: &EvalTestReport, settings: ConsoleSettings) -> String {
    let summary = &report.summary;
    let cases = summary.passed + summary.failed + summary.errored;
    let mut line = format!(
        "{}, {}: {} passed, {} failed",
        counted(summary.functions, "function"),
        counted(cases, "case"),
        summary.passed,
        summary.failed
    );
    if summary.errored > 0 {
        let _ = write!(line, ", {} errored", summary.errored);
    }
    if summary.without_cases > 0 {
        let _ = write!(line, "; {} without cases", counted(summary.without_cases, "function"));
    }
    if !report.cases_without_function.is_empty() {
        let _ = write!(line, "; {} without a function", counted(report.cases_without_function.len(), "file"));
    }
    match (summary.failed, summary.errored) {
        (_, 1..) => settings.palette.error(line),
        (1.., _) => settings.palette.failure(line),
        _ if summary.passed == 0 || summary.without_cases > 0 || !report.cases_without_function.is_empty() => {
            settings.palette.warning(line)
        }
        _ => settings.palette.success(line),
    }
}
