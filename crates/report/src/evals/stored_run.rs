//! The summary of `karat eval run --stored`.

use std::fmt::Write as _;

use karat_evals::report::{StoredEvalRunSummary, StoredEvalSummary};

use super::run::{exceptions, not_applicable_text, speed, write_function};
use crate::console::{ConsoleSettings, Verbosity};
use crate::terminal_text::{printable, wrap};
use crate::tools::counted;

/// Renders the new verdicts of each eval, and the number of traces judged earlier. Without new verdicts, this is one
/// line.
pub fn stored_eval_run_text(summary: &StoredEvalRunSummary, settings: ConsoleSettings) -> String {
    let mut out = String::new();
    let is_quiet = settings.verbosity == Verbosity::Quiet;
    for eval in &summary.evals {
        let all_passed = eval.now.failed + eval.now.errored == 0;
        if summary.judged > 0 && !(is_quiet && all_passed) {
            write_eval(eval, settings, &mut out);
            out.push('\n');
        }
    }
    let _ = writeln!(out, "{}", total(summary, settings));
    out
}

fn write_eval(eval: &StoredEvalSummary, settings: ConsoleSettings, out: &mut String) {
    let title = format!("{} version {}", printable(&eval.now.eval_id), eval.eval_version);
    if eval.now.passed + eval.now.failed + eval.now.not_applicable + eval.now.errored > 0 {
        write_function(&title, &eval.now, settings, out);
    } else {
        let _ = writeln!(out, "{}", settings.palette.bold(title));
    }
    if eval.judged_before > 0 {
        let before = format!("{} already judged", counted(eval.judged_before, "trace"));
        let _ = writeln!(out, "  {}", settings.palette.dim(before));
    }
}

fn total(summary: &StoredEvalRunSummary, settings: ConsoleSettings) -> String {
    let (palette, is_quiet) = (settings.palette, settings.verbosity == Verbosity::Quiet);
    let scope = format!("{}, {}", counted(summary.traces, "trace"), counted(summary.evals.len(), "eval"));
    let StoredEvalRunSummary { passed, failed, not_applicable, errored, .. } = summary;
    let not_applicable = not_applicable_text(*not_applicable);
    let errors = if *errored > 0 { format!(", {errored} errored") } else { String::new() };
    let counts = format!("{scope}: {passed} passed, {failed} failed{not_applicable}{errors}");
    let mut text = match (failed, errored) {
        _ if summary.judged == 0 => format!("{scope}: nothing new to judge"),
        (_, 1..) => palette.error(counts),
        (1.., _) => palette.failure(counts),
        _ => palette.success(counts),
    };
    if !is_quiet && summary.judged > 0 {
        let _ = write!(text, "\n{}", palette.dim(speed(summary.judged, summary.elapsed_ms)));
    }
    let exceptions = exceptions(summary.evals.iter().map(|eval| &eval.now));
    if !is_quiet && let Some(trace) = exceptions.flat_map(|group| &group.traces).next() {
        // The same command again has nothing to judge.
        let hint = format!("for tracebacks: karat trace show {}", printable(trace));
        let _ = write!(text, "\n{}", palette.dim(hint));
    }
    if summary.interrupted {
        let interrupted = "interrupted: verdicts so far are stored; run the same command again to continue";
        let _ = write!(text, "\n{}", wrap(interrupted, settings.columns).join("\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use karat_evals::tally::FunctionSummary;

    use super::*;
    use crate::style::{Palette, Symbols};
    use crate::terminal_text::width;

    fn settings() -> ConsoleSettings {
        let palette = Palette { color: false };
        ConsoleSettings { columns: 80, symbols: Symbols::ASCII, palette, verbosity: Verbosity::Normal }
    }

    #[test]
    fn shows_earlier_verdicts_separately() {
        let function = |name: &str, passed, failed| FunctionSummary {
            eval_id: name.to_owned(),
            code_hash: String::new(),
            passed,
            failed,
            not_applicable: 0,
            errored: 0,
            fails: Vec::new(),
            other_fails: 0,
            errors: Vec::new(),
            p50_ms: None,
            p99_ms: None,
        };
        let mut summary = StoredEvalRunSummary::new(8);
        summary.evals.push(StoredEvalSummary { eval_version: 2, judged_before: 5, now: function("eval_a", 2, 1) });
        summary.evals.push(StoredEvalSummary {
            eval_version: 1,
            judged_before: 8,
            now: function("eval_\u{1b}b", 0, 0),
        });
        (summary.judged, summary.judged_before, summary.passed, summary.failed) = (3, 13, 2, 1);
        (summary.interrupted, summary.elapsed_ms) = (true, 1000);
        let text = stored_eval_run_text(&summary, settings());
        insta::assert_snapshot!(text, @r"
        eval_a version 2
          2 passed (66.7%), 1 failed (33.3%)
          5 traces already judged

        eval_\u{1b}b version 1
          8 traces already judged

        8 traces, 2 evals: 2 passed, 1 failed
        1.0 s, 3 traces/s
        interrupted: verdicts so far are stored; run the same command again to continue
        ");
        assert!(text.lines().all(|line| width(line) <= 80), "{text}");
    }
}
