//! The summary of `karat eval run`.

use std::fmt::Write as _;

use karat_core::judgement::{ErrorKind, RETURN_HELP};
use karat_evals::tally::{EvalRunSummary, FunctionSummary, ReasonGroup};

use crate::console::{ConsoleSettings, Verbosity};
use crate::duration::{duration_text, precise_duration_text};
use crate::message::write_wrapped;
use crate::terminal_text::{printable, width, wrap_truncated};
use crate::tools::counted;

/// Part of the errors about returns that the contract's form does not allow.
const CONTRACT_RETURN: &str = "(bool, str)";

/// Width of counts.
const COUNT_WIDTH: usize = 6;

/// Renders the counts of each function, the most frequent reasons of failures, errors by kind, and times.
pub fn eval_run_text(summary: &EvalRunSummary, settings: ConsoleSettings) -> String {
    let mut out = String::new();
    let is_quiet = settings.verbosity == Verbosity::Quiet;
    for function in &summary.functions {
        let all_passed = function.failed + function.errored == 0;
        if !(is_quiet && all_passed) {
            write_function(&printable(&function.eval_id), function, settings, &mut out);
            out.push('\n');
        }
    }
    let _ = writeln!(out, "{}", total(summary, settings));
    out
}

pub(super) fn write_function(title: &str, function: &FunctionSummary, settings: ConsoleSettings, out: &mut String) {
    let palette = settings.palette;
    let _ = writeln!(out, "{}", palette.bold(title));
    // Traces that the function does not apply to are left out.
    let all = function.passed + function.failed + function.errored;
    let share = |count: u64, word: &str| format!("{count} {word} ({})", percent(count, all));
    let mut counts = vec![palette.success(share(function.passed, "passed"))];
    let failed = share(function.failed, "failed");
    counts.push(if function.failed > 0 { palette.failure(failed) } else { failed });
    if function.errored > 0 {
        counts.push(palette.error(share(function.errored, "errored")));
    }
    if function.not_applicable > 0 {
        counts.push(palette.dim(format!("{} not applicable", function.not_applicable)));
    }
    let _ = writeln!(out, "  {}", counts.join(", "));
    write_groups(&palette.failure("failed"), &function.fails, function.other_fails, settings, out);
    for errors in &function.errors {
        let title = palette.error(format!("errored: {}", errors.kind));
        write_groups(&title, &errors.groups, errors.others, settings, out);
        let is_contract = |group: &ReasonGroup| group.text.contains(CONTRACT_RETURN);
        if errors.kind == ErrorKind::Return && errors.groups.iter().any(is_contract) {
            let mut hint = String::new();
            write_wrapped("  hint: ", "    ", RETURN_HELP, settings.columns, &mut hint);
            out.push_str(&hint);
        }
    }
    let groups = function.errors.iter().flat_map(|errors| &errors.groups).chain(&function.fails);
    if groups.into_iter().any(|group| group.count > 1 && group.text.contains('#')) {
        let _ = writeln!(out, "  {}", palette.dim("# stands for numbers that differ"));
    }
    if settings.verbosity != Verbosity::Quiet
        && let (Some(p50), Some(p99)) = (function.p50_ms, function.p99_ms)
    {
        let (p50, p99) = (precise_duration_text(p50), precise_duration_text(p99));
        let times = format!("time per trace: p50 {p50}, p99 {p99}");
        let _ = writeln!(out, "  {}", palette.dim(times));
    }
}

fn write_groups(title: &str, groups: &[ReasonGroup], others: u64, settings: ConsoleSettings, out: &mut String) {
    if groups.is_empty() {
        return;
    }
    let _ = writeln!(out, "  {title}");
    let ellipsis = settings.symbols.ellipsis;
    let available = settings.columns.saturating_sub(COUNT_WIDTH + 4).max(20);
    for group in groups {
        let text = printable(&group.text);
        let text = if text.is_empty() { "(no reason)".into() } else { text };
        let location = group.line.map(|line| format!(" (line {line})")).unwrap_or_default();
        let lines = wrap_truncated(&format!("{text}{location}"), available, ellipsis);
        let lines = lines.join(&format!("\n  {:COUNT_WIDTH$}  ", ""));
        let _ = writeln!(out, "  {:>COUNT_WIDTH$}  {lines}", group.count);
        let traces = trace_list(group, available, ellipsis);
        let _ = writeln!(out, "  {:>COUNT_WIDTH$}  {}", "", settings.palette.dim(traces));
    }
    if others > 0 {
        let _ = writeln!(out, "  {others:>COUNT_WIDTH$}  with other reasons");
    }
}

/// Lists the first traces of a group, as many as fit.
fn trace_list(group: &ReasonGroup, available: usize, ellipsis: &str) -> String {
    let mut line = "in ".to_owned();
    let mut named = 0;
    for trace in &group.traces {
        let trace = printable(trace);
        let more = format!(", {ellipsis}");
        if named > 0 && width(&line) + 2 + width(&trace) + width(&more) > available {
            break;
        }
        if named > 0 {
            line.push_str(", ");
        }
        line.push_str(&trace);
        named += 1;
    }
    if named < group.count {
        let _ = write!(line, ", {ellipsis}");
    }
    line
}

/// Returns the number of executions in which a function was not applicable, if there are any.
pub(super) fn not_applicable_text(count: u64) -> String {
    if count > 0 { format!(", {count} not applicable") } else { String::new() }
}

fn total(summary: &EvalRunSummary, settings: ConsoleSettings) -> String {
    let mut line = judged(summary);
    let EvalRunSummary { passed, failed, not_applicable, errored, .. } = summary;
    let _ = write!(line, ": {passed} passed, {failed} failed{}", not_applicable_text(*not_applicable));
    if *errored > 0 {
        let _ = write!(line, ", {errored} errored");
    }
    let line = match (failed, errored) {
        (_, 1..) => settings.palette.error(line),
        (1.., _) => settings.palette.failure(line),
        _ if summary.traces == 0 => line,
        _ => settings.palette.success(line),
    };
    let mut line = line;
    let traces = summary.traces.saturating_sub(summary.without_trace);
    if settings.verbosity != Verbosity::Quiet && traces > 0 {
        line.push('\n');
        line.push_str(&settings.palette.dim(speed(traces, summary.elapsed_ms)));
    }
    if settings.verbosity != Verbosity::Quiet && exceptions(&summary.functions).next().is_some() {
        line.push('\n');
        line.push_str(&settings.palette.dim("pass --format jsonl for tracebacks"));
    }
    if summary.interrupted {
        line.push_str("\ninterrupted: the other traces were not judged");
    }
    line
}

/// Formats the duration and the rate.
pub(super) fn speed(traces: u64, elapsed_ms: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a rate for a person")]
    let rate = traces as f64 * 1000.0 / elapsed_ms.max(1) as f64;
    format!("{}, {rate:.0} traces/s", duration_text(elapsed_ms))
}

/// Returns the exceptions that functions raised.
pub(super) fn exceptions<'s>(
    functions: impl IntoIterator<Item = &'s FunctionSummary>,
) -> impl Iterator<Item = &'s ReasonGroup> {
    let errors = functions.into_iter().flat_map(|function| &function.errors);
    errors.filter(|error| error.kind == ErrorKind::Exception).flat_map(|error| &error.groups)
}

/// Counts the judged traces, and the lines that are not traces.
fn judged(summary: &EvalRunSummary) -> String {
    let traces = summary.traces.saturating_sub(summary.without_trace);
    let by = format!("{} judged by {}", counted(traces, "trace"), counted(summary.functions.len(), "function"));
    match (traces, summary.without_trace) {
        (_, 0) => by,
        (0, lines) => counted(lines, "invalid line"),
        (_, lines) => format!("{by}, {}", counted(lines, "invalid line")),
    }
}

/// Formats a share with one decimal; only exact values are shown as 0% or 100%.
fn percent(count: u64, all: u64) -> String {
    if all == 0 {
        return "0%".to_owned();
    }
    let tenths = (u128::from(count) * 1000 + u128::from(all) / 2) / u128::from(all);
    let tenths = match tenths {
        0 if count > 0 => 1,
        1000 if count < all => 999,
        tenths => tenths,
    };
    if tenths.is_multiple_of(10) { format!("{}%", tenths / 10) } else { format!("{}.{}%", tenths / 10, tenths % 10) }
}

#[cfg(test)]
mod tests {
    use karat_evals::tally::ErrorSummary;
    use rstest::rstest;

    use super::*;
    use crate::style::{Palette, Symbols};

    #[rstest]
    #[case(0, 3, "0%")]
    #[case(1, 3, "33.3%")]
    #[case(3, 3, "100%")]
    #[case(1, 1_000_000, "0.1%")]
    #[case(999_999, 1_000_000, "99.9%")]
    #[case(0, 0, "0%")]
    fn only_exact_shares_are_0_or_100_percent(#[case] count: u64, #[case] all: u64, #[case] expected: &str) {
        assert_eq!(percent(count, all), expected);
    }

    #[rstest]
    #[case(7, 0, "7 traces judged by 0 functions")]
    #[case(1, 1, "1 invalid line")]
    #[case(47, 47, "47 invalid lines")]
    #[case(5, 2, "3 traces judged by 0 functions, 2 invalid lines")]
    fn a_line_without_a_trace_is_not_judged(#[case] traces: u64, #[case] without_trace: u64, #[case] expected: &str) {
        let summary = EvalRunSummary {
            traces,
            without_trace,
            passed: 0,
            failed: 0,
            not_applicable: 0,
            errored: 0,
            interrupted: false,
            elapsed_ms: 0,
            functions: Vec::new(),
        };
        assert_eq!(judged(&summary), expected);
    }

    fn settings(columns: usize) -> ConsoleSettings {
        ConsoleSettings {
            columns,
            symbols: Symbols::ASCII,
            palette: Palette { color: false },
            verbosity: Verbosity::Normal,
        }
    }

    #[test]
    fn escapes_and_wraps_reasons() {
        let reason = format!("\u{1b}[31m{}\u{202e}but got nothing", "word ".repeat(60));
        let group =
            |traces: &[String]| ReasonGroup { text: reason.clone(), line: Some(7), count: 9, traces: traces.to_vec() };
        let traces = ["\u{1b}]0;x".to_owned(), "t".repeat(300), "u".repeat(300)];
        let summary = EvalRunSummary {
            traces: 18,
            without_trace: 0,
            passed: 0,
            failed: 9,
            not_applicable: 0,
            errored: 9,
            interrupted: true,
            elapsed_ms: 0,
            functions: vec![FunctionSummary {
                eval_id: "eval_x".to_owned(),
                code_hash: String::new(),
                passed: 0,
                failed: 9,
                not_applicable: 0,
                errored: 9,
                fails: vec![group(&traces)],
                other_fails: 2,
                errors: vec![ErrorSummary { kind: ErrorKind::Timeout, groups: vec![group(&traces)], others: 0 }],
                p50_ms: Some(0.04),
                p99_ms: Some(5000.0),
            }],
        };
        let text = eval_run_text(&summary, settings(80));
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
        assert!(text.lines().all(|line| width(line) <= 80), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("but got nothing (line 7)"), "the end of a reason is shown: {text}");
        assert!(text.contains("errored: timeout") && text.contains("interrupted"), "{text}");
    }
}
