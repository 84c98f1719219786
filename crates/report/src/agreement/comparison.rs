//! What `karat eval compare` tells.

use std::fmt::Write as _;

use karat_core::statistics::SIGNIFICANCE;
use karat_evals::agreement::{Change, ChangedVerdict, Direction, VersionComparison, VersionFigures};

use super::{digits, estimate, probability, verdict};
use crate::console::{ConsoleSettings, Verbosity};
use crate::terminal_text::{cut, cut_middle, printable};
use crate::tools::counted;

/// How long an id is shown.
const LONGEST_ID: usize = 40;

/// Lays out the two versions' accuracy, what changed, the worst first, and whether chance explains it. At most `limit`
/// verdicts of each kind of change are shown.
pub fn version_comparison_text(comparison: &VersionComparison, limit: usize, settings: ConsoleSettings) -> String {
    let (palette, symbols) = (settings.palette, settings.symbols);
    let mut out = String::new();
    let name = printable(&comparison.eval_id);
    let name = palette.bold(cut(&name, 50, symbols.ellipsis));
    let (before, now) = (&comparison.before, &comparison.now);
    let _ = writeln!(out, "{name} version {} {} {}", version(before), symbols.arrow, version(now));
    let _ = writeln!(
        out,
        "  {} judged by both, {} of them rated (where an error counts as wrong)\n",
        counted(size(comparison.common_traces), "trace"),
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
        Change::Worse => palette.bad(title),
        Change::Lost => palette.broken(title),
        Change::Better | Change::Gained => palette.good(title),
        Change::Unrated => title,
    };
    let _ = writeln!(out, "\n{title}");
    for changed in comparison.changed.iter().filter(|changed| changed.change == change).take(limit) {
        write_change(changed, settings, out);
    }
    if count > limit {
        let _ = writeln!(out, "  and {} more (--limit shows them)", count - limit);
    }
}

fn title(change: Change) -> &'static str {
    match change {
        Change::Worse => "for the worse: people agreed with the verdict before",
        Change::Lost => "lost: there was a verdict, and now there is an error",
        Change::Better => "for the better: people agree with the verdict now",
        Change::Gained => "gained: there was an error, and now there is a verdict",
        Change::Unrated => "changed on traces that are neutral or unrated",
    }
}

fn write_change(changed: &ChangedVerdict, settings: ConsoleSettings, out: &mut String) {
    let (palette, symbols) = (settings.palette, settings.symbols);
    let id = printable(&changed.trace_id);
    let id = cut_middle(&id, LONGEST_ID, symbols.ellipsis);
    let rating = changed.rating.map_or("unrated", |rating| rating.name());
    let movement = format!("{} {} {}", verdict(changed.before), symbols.arrow, verdict(changed.now));
    let _ = writeln!(out, "  {}  {movement}, {rating}", palette.bold(id));
    let sides = [("before", changed.before, &changed.before_reason), ("now", changed.now, &changed.now_reason)];
    for (label, said, reason) in sides {
        let reason = reason.as_deref().map(|reason| in_one_line(reason, said.is_none())).unwrap_or_default();
        if !reason.is_empty() {
            let reason = printable(&reason);
            let reason = cut(&reason, settings.columns.saturating_sub(12).max(20), symbols.ellipsis);
            let _ = writeln!(out, "    {label:<6}  {}", palette.dim(reason));
        }
    }
}

/// Puts a reason into one line. Of an error the last line says what happened; those before it say where.
fn in_one_line(reason: &str, is_error: bool) -> String {
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
        Direction::Better => {
            palette.good(format!("version {now} is better: chance does not explain what changed{lost}"))
        }
        Direction::Worse => palette.bad(format!("version {now} is worse: chance does not explain what changed{lost}")),
        Direction::Unclear if comparison.compared == 0 => {
            palette.doubtful(format!("nothing to compare: no trace that both versions judged is rated{lost}"))
        }
        Direction::Unclear if comparison.changed.is_empty() => "no verdict changed".to_owned(),
        Direction::Unclear if comparison.p_value < SIGNIFICANCE => {
            palette.doubtful(format!("version {now} agrees more with people, and breaks more often{lost}"))
        }
        Direction::Unclear => {
            palette.doubtful(format!("neither is better, as far as one can tell: chance explains what changed{lost}"))
        }
    }
}

fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
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
        pairs.push(pair(&"long".repeat(40), no, yes, None, "fine"));
        pairs.extend((10..20).map(|id| pair(&format!("t-{id}"), yes, yes, good, "fine")));
        VersionComparison::of("eval_refund", 1, 2, pairs)
    }

    fn settings(symbols: Symbols, verbosity: Verbosity) -> ConsoleSettings {
        ConsoleSettings { columns: 80, symbols, palette: Palette { color: false }, verbosity }
    }

    #[test]
    fn what_became_worse_stands_first() {
        let text = version_comparison_text(&comparison(), 2, settings(Symbols::UNICODE, Verbosity::Normal));
        assert!(text.lines().all(|line| width(line) <= 80), "{text}");
        assert_snapshot!(text, @r"
        eval_refund version 1 → 2
          21 traces judged by both, 20 of them rated (where an error counts as wrong)

          version    accuracy                  errors
          1           0.600  [0.387, 0.781]         0
          2           0.900  [0.699, 0.972]         1
          change     +0.300  8 better, 2 worse (p = 0.109)

        1 for the worse: people agreed with the verdict before
          t-8  passed → failed, positive
            before  as it was
            now     \u{1b}[31ma long reason a long reason a long reason a long reason a…

        1 lost: there was a verdict, and now there is an error
          t-9  passed → errored, positive
            before  as it was

        8 for the better: people agree with the verdict now
          t-0  passed → failed, negative
            before  as it was
            now     no refund was made
          t-1  passed → failed, negative
            before  as it was
            now     no refund was made
          and 6 more (--limit shows them)

        1 changed on traces that are neutral or unrated
          longlonglonglonglong…onglonglonglonglong  failed → passed, unrated
            before  as it was
            now     fine

        neither is better, as far as one can tell: chance explains what changed
        1 verdict lost to errors
        ");
    }

    #[test]
    fn a_version_that_breaks_is_not_called_better() {
        let verdict = |id: usize| (id < 10).then_some(false);
        let rating = |id: usize| (id < 10).then_some(Rating::Negative);
        let pairs = (0..100).map(|id| pair(&format!("t-{id}"), Some(true), verdict(id), rating(id), "no"));
        let comparison = VersionComparison::of("eval_refund", 1, 2, pairs.collect());
        let text = version_comparison_text(&comparison, 1, settings(Symbols::ASCII, Verbosity::Normal));
        let said = "version 2 agrees more with people, and breaks more often\n90 verdicts lost to errors\n";
        assert!(text.ends_with(said), "{text}");
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
    fn quiet_shows_what_is_bad() {
        let text = version_comparison_text(&comparison(), 9, settings(Symbols::ASCII, Verbosity::Quiet));
        assert!(text.is_ascii() && text.contains("1 for the worse") && !text.contains("for the better"), "{text}");
        let none = VersionComparison::of("eval_refund", 1, 2, Vec::new());
        let text = version_comparison_text(&none, 9, settings(Symbols::ASCII, Verbosity::Quiet));
        assert!(text.ends_with("nothing to compare: no trace that both versions judged is rated\n"), "{text}");
    }
}
