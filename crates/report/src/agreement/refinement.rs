//! The output of `karat eval refine`.

use std::fmt::Write as _;

use karat_core::statistics::SIGNIFICANCE;
use karat_evals::agreement::{Candidate, Change, Direction, RatingCounts, Refinement, SetAgreement, SplitAgreement};
use karat_workflows::refine::EvalFile;

use super::{estimate, probability, verdict};
use crate::console::{ConsoleSettings, Verbosity};
use crate::terminal_text::{printable, wrap_truncated};
use crate::tools::counted;

/// Maximum number of changed verdicts of a candidate.
const MAX_CHANGES: usize = 5;

/// Renders the agreement of the current version and of the candidates on both parts, and what each candidate changes.
pub fn refinement_text(refinement: &Refinement, settings: ConsoleSettings) -> String {
    let (palette, symbols) = (settings.palette, settings.symbols);
    let mut out = String::new();
    let name = printable(&refinement.eval_id);
    let model = printable(&refinement.model);
    let _ = writeln!(out, "{} version {}, rewritten by {model}", palette.bold(name), refinement.version);
    let (training, held_out) = (refinement.training, refinement.held_out);
    let _ = writeln!(out, "  {} to train on, {}", traces(training), of_each(training));
    let _ = writeln!(out, "  {} held out, {}\n", traces(held_out), of_each(held_out));
    let _ = writeln!(out, "  {:<5}  {:<8} {:<24} {:<24} wrong errors", "code", "part", "accuracy", "kappa");
    write_parts("base", &refinement.current, settings, &mut out);
    for candidate in &refinement.candidates {
        write_parts(&candidate.number.to_string(), &candidate.agreement, settings, &mut out);
    }
    for candidate in &refinement.candidates {
        write_candidate(candidate, settings, &mut out);
    }
    if !refinement.refused.is_empty() {
        let count = refinement.refused.len();
        let _ = writeln!(out, "\n{}", palette.error(format!("{} rejected", counted(count, "function"))));
        for refused in &refinement.refused {
            let reasons = refused.reasons.join("; ");
            let columns = settings.columns.saturating_sub(2).max(20);
            let lines = wrap_truncated(&printable(&reasons), columns, symbols.ellipsis);
            let _ = writeln!(out, "  {}", lines.join("\n  "));
        }
    }
    out
}

fn traces(part: RatingCounts) -> String {
    counted(part.all(), "rated trace")
}

fn of_each(part: RatingCounts) -> String {
    format!("{} good and {} bad", part.positive, part.negative)
}

fn write_parts(label: &str, agreement: &SplitAgreement, settings: ConsoleSettings, out: &mut String) {
    let mut line = |label: &str, part: &str, agreed: &SetAgreement| {
        let dash = settings.symbols.dash;
        let _ = writeln!(
            out,
            "  {label:<5}  {part:<8} {} {} {:>5} {:>6}",
            estimate(agreed.accuracy, dash),
            estimate(agreed.kappa, dash),
            agreed.contradictions,
            agreed.counts.errored
        );
    };
    line(label, "training", &agreement.training);
    line("", "held out", &agreement.held_out);
}

fn write_candidate(candidate: &Candidate, settings: ConsoleSettings, out: &mut String) {
    let (palette, symbols) = (settings.palette, settings.symbols);
    let changes = &candidate.held_out_changes;
    let explanation = printable(&candidate.explanation);
    let lines = wrap_truncated(&explanation, settings.columns.saturating_sub(6).max(20), symbols.ellipsis);
    let _ = writeln!(out, "\n{}  {}", palette.bold(format!("{:>2}", candidate.number)), lines.join("\n    "));
    let summary = format!(
        "held out: {} better, {} worse than base ({})",
        changes.better,
        changes.worse,
        probability(changes.p_value)
    );
    let errors = [(Change::Lost, "lost to errors"), (Change::Gained, "gained from errors")];
    let errors = errors.map(|(change, label)| (changes.count(change), label));
    let errors: Vec<String> =
        errors.into_iter().filter(|(count, _)| *count > 0).map(|(count, label)| format!("{count} {label}")).collect();
    let summary = match changes.direction {
        Direction::Better => palette.success(format!("{summary}: better")),
        Direction::Worse => palette.failure(format!("{summary}: worse")),
        Direction::Unclear if changes.changed.is_empty() => "held out: no verdict changed".to_owned(),
        Direction::Unclear if changes.p_value < SIGNIFICANCE => {
            palette.warning(format!("{summary}: better, but errors more often"))
        }
        Direction::Unclear => palette.warning(format!("{summary}: not significant")),
    };
    let _ = writeln!(out, "    {summary}");
    if !errors.is_empty() {
        let _ = writeln!(out, "    {}", palette.error(errors.join(", ")));
    }
    let is_included =
        |change: Change| matches!(change, Change::Worse | Change::Lost) || settings.verbosity != Verbosity::Quiet;
    let included: Vec<_> = changes.changed.iter().filter(|changed| is_included(changed.change)).collect();
    for changed in included.iter().take(MAX_CHANGES) {
        let id = printable(&changed.trace_id);
        let rating = changed.rating.map_or("unrated", |rating| rating.label());
        let transition = format!("{} {} {}", verdict(changed.before), symbols.arrow, verdict(changed.now));
        let _ = writeln!(out, "      {:<6}  {id}  {transition}, {rating}", changed.change.name());
    }
    if included.len() > MAX_CHANGES {
        let _ = writeln!(out, "      and {} more (pass --format json to list all)", included.len() - MAX_CHANGES);
    }
    if let Some(file) = &candidate.file {
        let _ = writeln!(out, "    {}", palette.dim(printable(file)));
    }
}

/// Returns the next step for the best candidate if there is no terminal for a prompt.
pub fn suggestion_note(refinement: &Refinement) -> String {
    match refinement.suggested().and_then(|candidate| candidate.file.as_ref()) {
        Some(file) => format!("nothing was adopted; run 'karat eval add {file}' to add it as a version"),
        None => "nothing was adopted; no candidate is better than the current version".to_owned(),
    }
}

/// Returns the next steps after a candidate became a version of this eval.
pub fn adopted_notes(name: &str, file: &EvalFile) -> Vec<String> {
    let judge = format!("run 'karat eval run {name} --stored' to judge the stored traces with it");
    let code = match file {
        EvalFile::Missing => Some(format!("run 'karat eval show {name}' to print the new code")),
        EvalFile::Changed(file) => Some(unchanged_file_note(file)),
        EvalFile::Outdated(_) => None,
    };
    [judge].into_iter().chain(code).collect()
}

/// Returns the effect of a file that differs from the newest version.
pub fn unchanged_file_note(file: &str) -> String {
    format!("{file} is unchanged; 'karat eval add' would add its code as the newest version")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use karat_core::rating::Rating;
    use karat_evals::agreement::{RatedVerdict, RefusedCode};

    use super::*;
    use crate::style::{Palette, Symbols};
    use crate::terminal_text::width;

    /// Returns verdicts on twenty traces, every second rated positive; the first `wrong` are wrong and the last
    /// `errors` errored.
    fn verdicts(wrong: usize, errors: usize) -> Vec<RatedVerdict> {
        (0..20)
            .map(|at| {
                let rating = if at % 2 == 0 { Rating::Positive } else { Rating::Negative };
                let right = rating == Rating::Positive;
                let passed = if at < wrong { Some(!right) } else { Some(right) };
                let passed = if at >= 20 - errors { None } else { passed };
                RatedVerdict { trace_id: format!("trace-{at}"), passed, reason: "so".to_owned(), rating }
            })
            .collect()
    }

    fn refinement() -> Refinement {
        let current = verdicts(9, 0);
        let candidate = |number: u64, wrong: usize, errors: usize| {
            let parts = ("code".to_owned(), "hash".to_owned(), "looks at \u{1b}[31m the last answer only ".repeat(4));
            let now = verdicts(wrong, errors);
            Candidate { number, ..Candidate::measure("eval_refund", 2, parts, &now, (&current, &now)) }
        };
        let part = SetAgreement::of(&current);
        Refinement {
            eval_id: "eval_refund".to_owned(),
            version: 2,
            model: "openai:test-model".to_owned(),
            training: RatingCounts { positive: 10, negative: 10 },
            held_out: RatingCounts { positive: 10, negative: 10 },
            current: SplitAgreement { training: part, held_out: part },
            candidates: vec![candidate(1, 1, 0), candidate(2, 9, 2)],
            refused: vec![RefusedCode { code: "import os".to_owned(), reasons: vec!["import of 'os'".to_owned()] }],
        }
    }

    #[test]
    fn compares_candidates_with_the_current_version() {
        let palette = Palette { color: false };
        let settings = ConsoleSettings { columns: 80, symbols: Symbols::ASCII, palette, verbosity: Verbosity::Normal };
        let text = refinement_text(&refinement(), settings);
        assert!(text.is_ascii() && text.lines().all(|line| width(line) <= 80), "{text}");
        assert_snapshot!(text, @r"
        eval_refund version 2, rewritten by openai:test-model
          20 rated traces to train on, 10 good and 10 bad
          20 rated traces held out, 10 good and 10 bad

          code   part     accuracy                 kappa                    wrong errors
          base   training  0.550  [0.342, 0.742]    0.100  [-0.334, 0.534]      9      0
                 held out  0.550  [0.342, 0.742]    0.100  [-0.334, 0.534]      9      0
          1      training  0.950  [0.764, 0.991]    0.900  [0.710, 1.000]       1      0
                 held out  0.950  [0.764, 0.991]    0.900  [0.710, 1.000]       1      0
          2      training  0.450  [0.258, 0.658]    0.000  [-0.459, 0.459]      9      2
                 held out  0.450  [0.258, 0.658]    0.000  [-0.459, 0.459]      9      2

         1  looks at \u{1b}[31m the last answer only looks at \u{1b}[31m the last
            answer only looks at \u{1b}[31m the last answer only looks at \u{1b}[31m
            the last answer only
            held out: 8 better, 0 worse than base (p = 0.008): better
              better  trace-1  passed -> failed, bad
              better  trace-2  failed -> passed, good
              better  trace-3  passed -> failed, bad
              better  trace-4  failed -> passed, good
              better  trace-5  passed -> failed, bad
              and 3 more (pass --format json to list all)

         2  looks at \u{1b}[31m the last answer only looks at \u{1b}[31m the last
            answer only looks at \u{1b}[31m the last answer only looks at \u{1b}[31m
            the last answer only
            held out: 0 better, 2 worse than base (p = 0.500): not significant
            2 lost to errors
              lost    trace-18  passed -> errored, good
              lost    trace-19  failed -> errored, bad

        1 function rejected
          import of 'os'
        ");
    }
}
