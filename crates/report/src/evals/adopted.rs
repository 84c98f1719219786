//! The result of `karat eval adopt`.

use std::fmt::Write as _;

use karat_workflows::adopt_eval::{AdoptReport, Trial};

use crate::console::{ConsoleSettings, Verbosity};
use crate::terminal_text::{printable, wrap};

/// Renders the adopted evaluator, the differences from its framework, and the result on a trace.
pub fn adopted_text(report: &AdoptReport, settings: ConsoleSettings) -> String {
    let (palette, symbols) = (settings.palette, settings.symbols);
    let mut out = String::new();
    let title = format!("{} from {}, {}", report.evaluator, report.source, report.framework.title());
    let _ = writeln!(out, "{}", palette.bold(printable(&title)));
    let mut item = |mark: String, text: &str| {
        let lines = wrap(&printable(text), settings.columns.saturating_sub(6).max(20)).join("\n    ");
        let _ = writeln!(out, "  {mark} {lines}");
    };
    for obstacle in &report.obstacles {
        item(palette.failure(symbols.failed), obstacle);
    }
    if settings.verbosity != Verbosity::Quiet {
        for note in &report.notes {
            item(palette.dim(symbols.dash), note);
        }
    }
    if let Some(trial) = &report.trial {
        let (mark, text) = trial_text(trial, settings);
        item(mark, &text);
    }
    out.push('\n');
    if !report.obstacles.is_empty() {
        let _ = writeln!(out, "{}", palette.failure("not adopted"));
        return out;
    }
    if report.written {
        for file in &report.files {
            let _ = writeln!(out, "wrote {}", printable(file));
        }
    } else {
        out.push_str(&report.code);
        let files: Vec<&str> = report.files.iter().map(String::as_str).collect();
        let _ = writeln!(out, "\nnot written: {}", printable(&files.join(", ")));
    }
    if !report.missing_imports.is_empty() {
        let modules = serde_json::to_string(&report.missing_imports).unwrap_or_default();
        let warning = format!("before it can run, add to karat.json: \"evalImports\": {modules}");
        let _ = writeln!(out, "{}", palette.warning(warning));
    }
    let example = format!("{{\"name\": \"{}\", \"reference\": …, \"params\": {{…}}}}", report.eval_id);
    let _ = writeln!(out, "use it in a case: \"evals\": [{}]", printable(&example));
    out
}

fn trial_text(trial: &Trial, settings: ConsoleSettings) -> (String, String) {
    let (palette, symbols) = (settings.palette, settings.symbols);
    let score = trial.score.map(|score| format!(" with score {score}")).unwrap_or_default();
    let reason = trial.reason.as_deref().filter(|reason| !reason.is_empty());
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    match (&trial.error, trial.result) {
        (Some(error), _) => {
            let summary = error.lines().next().unwrap_or_default();
            let kind = trial.error_kind.map(|kind| format!(" ({kind})")).unwrap_or_default();
            (palette.error(symbols.errored), format!("test run: errored{kind}: {summary}"))
        }
        (None, Some(true)) => (palette.success(symbols.passed), format!("test run: passed{score}{reason}")),
        (None, Some(false)) => (palette.success(symbols.passed), format!("test run: failed{score}{reason}")),
        (None, None) => (palette.success(symbols.passed), format!("test run: not applicable{reason}")),
    }
}
