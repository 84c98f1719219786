//! The output of `karat eval compare`.

use std::fmt::Write as _;

use karat_core::statistics::SIGNIFICANCE;
use karat_evals::agreement::{Change, ChangedVerdict, Direction, VersionComparison, VersionFigures};

use super::{digits, estimate, probability, verdict};
use crate::console::{ConsoleSettings, Verbosity};
use crate::terminal_text::{printable, wrap_truncated};
use crate::tools::counted;

/// Renders the accuracy of both versions, the changed verdicts, worst first, and whether the change is significant.
/// Shows up to `limit` verdicts of each kind of change.
pub fn version_comparison_text(comparison: &VersionComparison, limit: usize, settings: ConsoleSettings) -> String {
    let (palette, symbols) = (settings.palette, settings.symbols);
    let mut out = String::new();
    let name = printable(&comparison.eval_id);
    let name = palette.bold(name);
    let (before, now) = (&comparison.before, &comparison.now);
    let _ = writeln!(out, "{name} version {} {} {}", version(before), symbols.arrow, version(now));
    let _ = writeln!(
        out,
        "  {} judged by both, {} of them rated (errors count as wrong)\n",
        counted(comparison.common_traces, "trace"),
        comparison.compared
    );
    let _ = writeln!(out, "  {:<9}  {:<24}  errors", "version", "accuracy");
    for side in [before, now] {
        let _ = writeln!(out, "  {}", side_line(side, symbols.dash));
    }
    if let Some(net) = comparison.net_change {
        let sign = if net < 0.0 { "" } else { "+" };
        let (better, worse) = (comparison.better, comparison.worse);
        let chance = probability(comparison.p_value);
        let _ = writeln!(
            out,
            "  {:<9}  {:>6}  {better} better, {worse} worse ({chance})",
            "change",
            format!("{sign}{}", digits(net))
        );
    }
    for change in [Change::Worse, Change::Lost, Change::Better, Change::Gained, Change::Unrated] {
        let is_bad = matches!(change, Change::Worse | Change::Lost);
        if is_bad || settings.verbosity != Verbosity::Quiet {
            write_changes(comparison, change, limit, settings, &mut out);
        }
    }
    let _ = writeln!(out, "\n{}", conclusion(comparison, settings));
    out
}

fn version(side: &VersionFigures) -> String {
    side.version.map_or_else(|| "new".to_owned(), |version| version.to_string())
}

fn side_line(side: &VersionFigures, dash: &str) -> String {
    format!("{:<9}  {}  {:>6}", version(side), estimate(side.accuracy, dash), side.errored)
}

fn write_changes(
    comparison: &VersionComparison,
    change: Change,
    limit: usize,
    settings: ConsoleSettings,
    out: &mut String,
) {
    let count = comparison.count(change);
    if count == 0 {
        return;
    }
    let palette = settings.palette;
    let title = format!("{count} {}", title(change));
    let title = match change {
        Change::Worse => palette.failure(title),
        Change::Lost => palette.error(title),
        Change::Better | Change::Gained => palette.success(title),
        Change::Unrated => title,
    };
    let _ = writeln!(out, "\n{title}");
    for changed in comparison.changed.iter().filter(|changed| changed.change == change).take(limit) {
        write_change(changed, settings, out);
    }
    if count > limit {
        let _ = writeln!(out, "  and {} more (pass --limit 0 to show all)", count - limit);
    }
}

fn title(change: Change) -> &'static str {
    match change {
        Change::Worse => "worse: the verdict matched the rating before",
        Change::Lost => "lost: the verdict became an error",
        Change::Better => "better: the verdict matches the rating now",
        Change::Gained => "gained: the error became a verdict",
        Change::Unrated => "changed on neutral or unrated traces",
    }
}

fn write_change(changed: &ChangedVerdict, settings: ConsoleSettings, out: &mut String) {
    let (palette, symbols) = (settings.palette, settings.symbols);
    let id = printable(&changed.trace_id);
    let rating = changed.rating.map_or("unrated", |rating| rating.label());
    let transition = format!("{} {} {}", verdict(changed.before), symbols.arrow, verdict(changed.now));
    let _ = writeln!(out, "  {}  {transition}, {rating}", palette.bold(id));
    let sides = [("before", changed.before, &changed.before_reason), ("now", changed.now, &changed.now_reason)];
    for (label, verdict, reason) in sides {
        let reason = reason.as_deref().map(|reason| one_line(reason, verdict.is_none())).unwrap_or_default();
        if !reason.is_empty() {
            let reason = printable(&reason);
            let lines = wrap_truncated(&reason, settings.columns.saturating_sub(12).max(20), symbols.ellipsis);
            for (index, line) in lines.iter().enumerate() {
                let label = if index == 0 { label } else { "" };
                let _ = writeln!(out, "    {label:<6}  {}", palette.dim(line));
            }
        }
    }
}

/// Joins the lines of a reason. For an error, returns only the last line: the others are the traceback.
fn one_line(reason: &str, is_error: bool) -> String {
    let mut lines = reason.lines().map(str::trim).filter(|line| !line.is_empty());
    if is_error { lines.next_back().unwrap_or_default().to_owned() } else { lines.collect::<Vec<_>>().join(" ") }
}

fn conclusion(comparison: &VersionComparison, settings: ConsoleSettings) -> String {
    let palette = settings.palette;
    let now = version(&comparison.now);
    let lost = match comparison.count(Change::Lost) {
        0 => String::new(),
        lost => format!("\n{} lost to errors", counted(lost, "verdict")),
    };
    match comparison.direction {
        Direction::Better => palette.success(format!("version {now} is better: the change is significant{lost}")),
        Direction::Worse => palette.failure(format!("version {now} is worse: the change is significant{lost}")),
        Direction::Unclear if comparison.compared == 0 => {
            palette.warning(format!("nothing to compare: no rated trace was judged by both versions{lost}"))
        }
        Direction::Unclear if comparison.changed.is_empty() => "no verdict changed".to_owned(),
        Direction::Unclear if comparison.p_value < SIGNIFICANCE => {
            palette.warning(format!("version {now} agrees more with ratings, but errors more often{lost}"))
        }
        Direction::Unclear => palette.warning(format!("no significant difference{lost}")),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use karat_core::rating::Rating;
    use karat_evals::agreement::VerdictPair;

    use super::*;
    use crate::style::{Palette, Symbols};
    use crate::terminal_text::width;

    fn pair(id: &str, before: Option<bool>, now: Option<bool>, rating: Option<Rating>, reason: &str) -> VerdictPair {
        VerdictPair {
            trace_id: id.to_owned(),
            before,
            now,
            before_reason: before.map(|_| "as it was".to_owned()),
            now_reason: now.map(|_| reason.to_owned()),
            rating,
        }
    }

    fn comparison() -> VersionComparison {
        let (yes, no) = (Some(true), Some(false));
        let (good, bad) = (Some(Rating::Positive), Some(Rating::Negative));
        let mut pairs: Vec<VerdictPair> =
            (0..8).map(|id| pair(&format!("t-{id}"), yes, no, bad, "no refund was made")).collect();
        pairs.push(pair("t-8", yes, no, good, &format!("\u{1b}[31m{}", "a long reason ".repeat(20))));
        pairs.push(pair("t-9", yes, None, good, ""));
        pairs.push(pair(&"long".repeat(11), no, yes, None, "fine"));
        pairs.extend((10..20).map(|id| pair(&format!("t-{id}"), yes, yes, good, "fine")));
        VersionComparison::of("eval_refund", 1, 2, pairs)
    }

    fn settings(symbols: Symbols, verbosity: Verbosity) -> ConsoleSettings {
        ConsoleSettings { columns: 80, symbols, palette: Palette { color: false }, verbosity }
    }

    #[test]
    fn worse_verdicts_come_first() {
        let text = version_comparison_text(&comparison(), 2, settings(Symbols::UNICODE, Verbosity::Normal));
        assert!(text.lines().all(|line| width(line) <= 80), "{text}");
        assert_snapshot!(text, @r"
        eval_refund version 1 → 2
          21 traces judged by both, 20 of them rated (errors count as wrong)

          version    accuracy                  errors
          1           0.600  [0.387, 0.781]         0
          2           0.900  [0.699, 0.972]         1
          change     +0.300  8 better, 2 worse (p = 0.109)

        1 worse: the verdict matched the rating before
          t-8  passed → failed, good
            before  as it was
            now     \u{1b}[31ma long reason a long reason a long reason a long reason a
                    long reason a long reason a long reason a long reason a long reason
                    a long reason a long reason a long reason a long reason a long
                    reason a long reason a long reason a long reason a long reason a
                    long reason a long reason

        1 lost: the verdict became an error
          t-9  passed → errored, good
            before  as it was

        8 better: the verdict matches the rating now
          t-0  passed → failed, bad
            before  as it was
            now     no refund was made
          t-1  passed → failed, bad
            before  as it was
            now     no refund was made
          and 6 more (pass --limit 0 to show all)

        1 changed on neutral or unrated traces
          longlonglonglonglonglonglonglonglonglonglong  failed → passed, unrated
            before  as it was
            now     fine

        no significant difference
        1 verdict lost to errors
        ");
    }

    #[test]
    fn a_version_that_errors_more_is_not_better() {
        let verdict = |id: usize| (id < 10).then_some(false);
        let rating = |id: usize| (id < 10).then_some(Rating::Negative);
        let pairs = (0..100).map(|id| pair(&format!("t-{id}"), Some(true), verdict(id), rating(id), "no"));
        let comparison = VersionComparison::of("eval_refund", 1, 2, pairs.collect());
        let text = version_comparison_text(&comparison, 1, settings(Symbols::ASCII, Verbosity::Normal));
        let conclusion = "version 2 agrees more with ratings, but errors more often\n90 verdicts lost to errors\n";
        assert!(text.ends_with(conclusion), "{text}");
    }

    #[test]
    fn reasons_and_errors_take_one_line() {
        let mut broken = pair("t-1", Some(true), None, Some(Rating::Positive), "");
        broken.before_reason = Some("it was\nfine".to_owned());
        broken.now_reason = Some("Traceback (most recent call last):\n  line 3\nKeyError: 'city'\n".to_owned());
        let comparison = VersionComparison::of("eval_refund", 1, 2, vec![broken]);
        let text = version_comparison_text(&comparison, 1, settings(Symbols::ASCII, Verbosity::Normal));
        assert!(text.contains("    before  it was fine\n    now     KeyError: 'city'\n"), "{text}");
        assert!(!text.contains("Traceback"), "{text}");
    }

    #[test]
    fn quiet_shows_only_worse_and_lost_verdicts() {
        let text = version_comparison_text(&comparison(), 9, settings(Symbols::ASCII, Verbosity::Quiet));
        assert!(text.is_ascii() && text.contains("1 worse:") && !text.contains("better:"), "{text}");
        let none = VersionComparison::of("eval_refund", 1, 2, Vec::new());
        let text = version_comparison_text(&none, 9, settings(Symbols::ASCII, Verbosity::Quiet));
        assert!(text.ends_with("nothing to compare: no rated trace was judged by both versions\n"), "{text}");
    }
}
