//! The output of `karat eval agreement`.

use std::fmt::Write as _;

use karat_evals::agreement::{
    AgreementReport, Estimate, EvalAgreement, LatestWeek, RaterAgreement, ThresholdCheck, Trend, VersionAgreement,
};

use super::{digits, estimate, probability};
use crate::console::{ConsoleSettings, Verbosity};
use crate::terminal_text::{printable, truncate, wrap};
use crate::tools::counted;

/// Width of the names of figures.
const NAME_WIDTH: usize = 18;

/// Maximum width of a rater's name.
const MAX_AUTHOR_WIDTH: usize = 24;

/// Renders each eval with its confusion matrix, figures with intervals, versions, weeks and thresholds, and the
/// agreement between raters.
pub fn agreement_text(report: &AgreementReport, settings: ConsoleSettings) -> String {
    let is_quiet = settings.verbosity == Verbosity::Quiet;
    let mut page = Page { out: String::new(), settings };
    for eval in &report.evals {
        let is_fine = eval.alerts().count() == 0;
        if !(is_quiet && is_fine) {
            page.eval(eval, report.thresholds.at_least);
            page.out.push('\n');
        }
    }
    if let Some(raters) = report.raters.as_ref().filter(|_| !is_quiet) {
        page.raters(raters);
        page.out.push('\n');
    }
    page.total(report);
    page.out
}

/// Returns the next steps: contradictions to list, traces to judge or to rate.
pub fn agreement_notes(report: &AgreementReport) -> Vec<String> {
    let contradicted = report.evals.iter().filter(|eval| eval.counts.contradictions() > 0);
    // Contradictions are listed for the newest version only.
    let names: Vec<&str> =
        contradicted.filter(|eval| eval.version == eval.newest_version).map(|eval| eval.eval_id.as_str()).collect();
    let mut notes = match names.as_slice() {
        [] => Vec::new(),
        [only] => vec![format!("run 'karat contradictions {only}' to list contradictions")],
        _ => vec!["run 'karat contradictions' to list contradictions".to_owned()],
    };
    if report.evals.iter().any(|eval| eval.counts.executions() == 0) {
        notes.push("run 'karat eval run NAME --stored' to judge the stored traces".to_owned());
    } else if report.evals.iter().any(|eval| eval.compared == 0) {
        notes.push("run 'karat review' or 'karat feedback add' to rate traces".to_owned());
    }
    notes
}

struct Page {
    out: String,
    settings: ConsoleSettings,
}

impl Page {
    fn line(&mut self, line: impl AsRef<str>) {
        let _ = writeln!(self.out, "{}", line.as_ref().trim_end());
    }

    /// Writes wrapped text.
    fn wrapped(&mut self, text: &str) {
        for line in wrap(text, self.settings.columns.saturating_sub(2)) {
            self.line(format!("  {line}"));
        }
    }

    fn eval(&mut self, eval: &EvalAgreement, at_least: u64) {
        let palette = self.settings.palette;
        let counts = &eval.counts;
        let name = wrap(&printable(&eval.eval_id), self.settings.columns.saturating_sub(20).max(20)).join("\n");
        let age =
            if eval.version == eval.newest_version { String::new() } else { format!(" of {}", eval.newest_version) };
        self.line(format!("{} version {}{age}", palette.bold(name), eval.version));
        let mut parts = vec![
            format!("{} compared with ratings", eval.compared),
            format!("{} neutral", counts.neutral),
            format!("{} unrated", counts.unrated),
            format!("{} errored", counts.errored),
        ];
        if counts.not_applicable > 0 {
            parts.push(format!("{} not applicable", counts.not_applicable));
        }
        let traces = counted(counts.executions(), "trace");
        self.wrapped(&format!("{traces}: {}", parts.join(", ")));
        if eval.compared == 0 {
            self.wrapped("nothing to compare: no judged trace is rated good or bad");
        } else {
            self.matrix(eval);
        }
        if eval.compared > 0 || counts.errored > 0 {
            self.figures(eval);
        }
        if eval.versions.len() > 1 && self.settings.verbosity != Verbosity::Quiet {
            self.versions(&eval.versions);
        }
        if self.settings.verbosity != Verbosity::Quiet {
            self.trend(&eval.trend);
        }
        self.checks(&eval.checks, at_least);
    }

    fn matrix(&mut self, eval: &EvalAgreement) {
        let counts = &eval.counts;
        self.line("");
        self.line(format!("  {:<NAME_WIDTH$}  {:>8}  {:>8}", "rating", "good", "bad"));
        let mut row = |name: &str, positive: u64, negative: u64| {
            self.line(format!("  {name:<NAME_WIDTH$}  {positive:>8}  {negative:>8}"));
        };
        row("eval passed", counts.passed_positive, counts.passed_negative);
        row("eval failed", counts.failed_positive, counts.failed_negative);
    }

    fn figures(&mut self, eval: &EvalAgreement) {
        let (counts, figures) = (&eval.counts, &eval.figures);
        let (compared, wrong) = (eval.compared, counts.contradictions());
        let (passed, positive) =
            (counts.passed_positive + counts.passed_negative, counts.passed_positive + counts.failed_positive);
        let right = counts.passed_positive;
        self.line("");
        self.line(format!("  {:<NAME_WIDTH$}  {:>6}  95% interval", "", "figure"));
        self.figure("accuracy", figures.accuracy, &format!("{} of {compared}", compared - wrong));
        self.figure("precision", figures.precision, &format!("{right} of {passed} that passed"));
        self.figure("recall", figures.recall, &format!("{right} of {positive} good"));
        self.figure("F1", figures.f1, "");
        self.coefficient("Cohen's kappa", figures.kappa);
        self.figure("contradiction rate", figures.contradiction_rate, &format!("{wrong} of {compared}"));
        self.figure("error rate", figures.error_rate, &format!("{} of {}", counts.errored, counts.executions()));
    }

    fn figure(&mut self, name: &str, figure: Option<Estimate>, by: &str) {
        let by = if figure.is_some() { by } else { "no data" };
        let by = if by.is_empty() { String::new() } else { self.settings.palette.dim(by) };
        self.line(format!("  {name:<NAME_WIDTH$}  {}  {by}", estimate(figure, self.settings.symbols.dash)));
    }

    /// Writes a coefficient of agreement, with a note on how to read it.
    fn coefficient(&mut self, name: &str, figure: Option<Estimate>) {
        let is_perfect = figure.is_some_and(|figure| figure.value >= 1.0);
        // Without variation, the standard error is zero even for few values.
        let by = if is_perfect { "interval not meaningful at 1" } else { "0 means chance agreement" };
        self.figure(name, figure, by);
    }

    fn versions(&mut self, versions: &[VersionAgreement]) {
        let dash = self.settings.symbols.dash;
        self.line("");
        let (accuracy, kappa) = ("accuracy", "kappa");
        self.line(format!("  {:<7}  {:>8}  {accuracy:<24}  {kappa:<24}  errors", "version", "compared"));
        for line in versions {
            let (accuracy, kappa) = (estimate(line.figures.accuracy, dash), estimate(line.figures.kappa, dash));
            let errors = line.counts.errored;
            self.line(format!("  {:<7}  {:>8}  {accuracy}  {kappa}  {errors:>6}", line.version, line.compared));
        }
    }

    fn trend(&mut self, trend: &Trend) {
        if trend.weeks.len() < 2 {
            return;
        }
        let dash = self.settings.symbols.dash;
        self.line("");
        self.line(format!("  {:<9}  {:>8}  {:<24}  contradictions", "week", "compared", "accuracy"));
        for week in &trend.weeks {
            let accuracy = estimate(week.accuracy, dash);
            self.line(format!("  {:<9}  {:>8}  {accuracy}  {:>14}", week.week, week.compared, week.contradictions));
        }
        if let Some(latest) = trend.latest {
            let line = latest_week(latest);
            let line = if latest.significant { self.settings.palette.warning(line) } else { line };
            self.line(format!("  {line}"));
        }
    }

    fn checks(&mut self, checks: &[ThresholdCheck], at_least: u64) {
        let (palette, symbols) = (self.settings.palette, self.settings.symbols);
        self.line("");
        for check in checks {
            let line = threshold(check, at_least);
            let line = match check.held {
                Some(true) => format!("{} {line}", palette.success(symbols.passed)),
                Some(false) => palette.failure(format!("{} {line}", symbols.failed)),
                None => palette.warning(format!("{} {line}", symbols.warning)),
            };
            self.line(format!("  {line}"));
        }
    }

    fn raters(&mut self, raters: &RaterAgreement) {
        let ellipsis = self.settings.symbols.ellipsis;
        let display_name = |author: &str| truncate(&printable(author), MAX_AUTHOR_WIDTH, ellipsis).into_owned();
        let authors: Vec<String> = raters
            .raters
            .iter()
            .map(|rater| format!("{} ({})", display_name(&rater.author), rater.common_traces))
            .collect();
        self.line(self.settings.palette.bold("agreement between raters"));
        let summary = format!(
            "{} on {} with several ratings: {}",
            counted(raters.raters.len(), "rater"),
            counted(raters.common_traces, "trace"),
            authors.join(", ")
        );
        self.wrapped(&summary);
        self.line("");
        self.figure("unanimous", raters.observed, &format!("{} of {}", raters.unanimous, raters.common_traces));
        if raters.raters.len() == 2 {
            self.coefficient("Cohen's kappa", raters.kappa);
        } else {
            self.coefficient("Krippendorff alpha", raters.alpha);
        }
    }

    fn total(&mut self, report: &AgreementReport) {
        let palette = self.settings.palette;
        let evals = counted(report.evals.len(), "eval");
        let unknown = report.evals.iter().filter(|eval| eval.checks.iter().any(|check| check.held.is_none())).count();
        let line = match report.alerts {
            0 if unknown > 0 => palette.warning(format!("{evals}: no alerts; too little data for {unknown}")),
            0 => palette.success(format!("{evals}: no alerts")),
            1 => palette.failure(format!("{evals}: 1 alert")),
            more => palette.failure(format!("{evals}: {more} alerts")),
        };
        self.line(line);
    }
}

fn latest_week(latest: LatestWeek) -> String {
    let (now, before) = (digits(latest.now), digits(latest.before));
    let p_value = probability(latest.p_value);
    let change = match (latest.significant, latest.now < latest.before) {
        (false, _) => "not significant",
        (true, true) => "significantly worse",
        (true, false) => "significantly better",
    };
    format!("newest week {now}, earlier weeks {before}: {change} ({p_value})")
}

/// Compares a figure with its threshold.
fn threshold(check: &ThresholdCheck, at_least: u64) -> String {
    let (name, limit) = (check.figure.name(), check.threshold);
    let bound = if check.figure.is_minimum() { "must be at least" } else { "must be at most" };
    let Some(actual) = check.actual else {
        return format!("{name}: no data ({bound} {limit})");
    };
    let short = digits(actual);
    // A value that rounds to the threshold is shown in full: it may be beyond it.
    let actual = if short == digits(limit) { trimmed(actual) } else { short };
    if check.held.is_none() {
        let by = check.measured_by;
        return format!("{name} {actual} ({bound} {limit}); too little data: {by} of {at_least}");
    }
    format!("{name} {actual} ({bound} {limit})")
}

/// Formats a number with up to six decimals.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use karat_core::rating::Rating;
    use karat_evals::agreement::Thresholds;
    use karat_evals::agreement::{AgreementCounts, AgreementDay, RatingPattern};

    use super::*;
    use crate::style::{Palette, Symbols};
    use crate::terminal_text::width;

    fn settings(symbols: Symbols) -> ConsoleSettings {
        ConsoleSettings { columns: 80, symbols, palette: Palette { color: false }, verbosity: Verbosity::Normal }
    }

    fn counts(cells: [u64; 7]) -> AgreementCounts {
        let [passed_positive, passed_negative, failed_positive, failed_negative, neutral, unrated, errored] = cells;
        AgreementCounts {
            passed_positive,
            passed_negative,
            failed_positive,
            failed_negative,
            neutral,
            unrated,
            not_applicable: 0,
            errored,
        }
    }

    fn version(number: u64, cells: [u64; 7]) -> VersionAgreement {
        VersionAgreement::new(number, "2026-11-16T12:00:00Z".parse().expect("a time"), counts(cells))
    }

    /// Returns ratings of Ada and Bob for a number of traces.
    fn pattern(ada: Rating, bob: Rating, traces: u64) -> RatingPattern {
        RatingPattern { ratings: [("ada".to_owned(), ada), ("bob".to_owned(), bob)].into(), traces }
    }

    fn report() -> AgreementReport {
        let thresholds = Thresholds::default();
        let days = [
            AgreementDay { day: "2026-11-02".parse().expect("a day"), counts: counts([30, 2, 1, 30, 0, 0, 0]) },
            AgreementDay { day: "2026-11-09".parse().expect("a day"), counts: counts([31, 22, 22, 46, 3, 10, 6]) },
        ];
        let versions = vec![version(1, [50, 35, 34, 65, 3, 10, 0]), version(2, [61, 24, 23, 76, 3, 10, 6])];
        let first = EvalAgreement::new("eval_books_a_flight", 2, versions, Trend::of(&days), &thresholds);
        let few = vec![version(1, [3, 0, 1, 4, 0, 190, 0])];
        let second = EvalAgreement::new("eval_is_polite", 1, few, Trend::default(), &thresholds);
        let patterns = [
            pattern(Rating::Positive, Rating::Positive, 9),
            pattern(Rating::Negative, Rating::Positive, 2),
            pattern(Rating::Negative, Rating::Negative, 9),
        ];
        AgreementReport::new(first.into_iter().chain(second).collect(), RaterAgreement::of(&patterns), thresholds)
    }

    #[test]
    fn renders_two_evals() {
        let text = agreement_text(&report(), settings(Symbols::UNICODE));
        assert!(text.lines().all(|line| width(line) <= 80), "{text}");
        assert_snapshot!(text, @"
        eval_books_a_flight version 2
          203 traces: 184 compared with ratings, 3 neutral, 10 unrated, 6 errored

          rating                  good       bad
          eval passed               61        24
          eval failed               23        76

                              figure  95% interval
          accuracy             0.745  [0.677, 0.802]    137 of 184
          precision            0.718  [0.614, 0.802]    61 of 85 that passed
          recall               0.726  [0.623, 0.810]    61 of 84 good
          F1                   0.722  [0.640, 0.791]
          Cohen's kappa        0.486  [0.359, 0.612]    0 means chance agreement
          contradiction rate   0.255  [0.198, 0.323]    47 of 184
          error rate           0.030  [0.014, 0.063]    6 of 203

          version  compared  accuracy                  kappa                     errors
          1             184   0.625  [0.553, 0.692]     0.245  [0.105, 0.385]         0
          2             184   0.745  [0.677, 0.802]     0.486  [0.359, 0.612]         6

          week       compared  accuracy                  contradictions
          2026-W45         63   0.952  [0.869, 0.984]                 3
          2026-W46        121   0.636  [0.548, 0.717]                44
          newest week 0.636, earlier weeks 0.952: significantly worse (p < 0.001)

          ✗ accuracy 0.745 (must be at least 0.8)
          ✓ error rate 0.030 (must be at most 0.1)

        eval_is_polite version 1
          198 traces: 8 compared with ratings, 0 neutral, 190 unrated, 0 errored

          rating                  good       bad
          eval passed                3         0
          eval failed                1         4

                              figure  95% interval
          accuracy             0.875  [0.529, 0.978]    7 of 8
          precision            1.000  [0.439, 1.000]    3 of 3 that passed
          recall               0.750  [0.301, 0.954]    3 of 4 good
          F1                   0.857  [0.462, 0.977]
          Cohen's kappa        0.750  [0.306, 1.000]    0 means chance agreement
          contradiction rate   0.125  [0.022, 0.471]    1 of 8
          error rate           0.000  [0.000, 0.019]    0 of 198

          ⚠ accuracy 0.875 (must be at least 0.8); too little data: 8 of 20
          ✓ error rate 0.000 (must be at most 0.1)

        agreement between raters
          2 raters on 20 traces with several ratings: ada (20), bob (20)

          unanimous            0.900  [0.699, 0.972]    18 of 20
          Cohen's kappa        0.802  [0.547, 1.000]    0 means chance agreement

        2 evals: 1 alert
        ");
    }

    #[test]
    fn quiet_shows_only_alerts() {
        let quiet = ConsoleSettings { verbosity: Verbosity::Quiet, ..settings(Symbols::ASCII) };
        let text = agreement_text(&report(), quiet);
        assert!(text.is_ascii() && !text.contains("eval_is_polite") && !text.contains("week"), "{text}");
        assert!(text.ends_with("2 evals: 1 alert\n"), "{text}");
    }

    #[test]
    fn escapes_and_truncates_names() {
        let mut report = report();
        report.evals[1].counts = counts([1_000_000; 7]);
        report.evals[1].compared = 4_000_000;
        report.evals[0].eval_id = "eval_\u{1b}[31m".repeat(40);
        if let Some(raters) = &mut report.raters {
            raters.raters[0].author = "\u{202e}ada ".repeat(90);
        }
        let text = agreement_text(&report, settings(Symbols::ASCII));
        assert!(text.is_ascii() && text.lines().all(|line| width(line) <= 80), "{text}");
    }

    #[test]
    fn a_figure_near_its_threshold_is_shown_in_full() {
        let cells = counts([7999, 2001, 0, 0, 0, 0, 0]);
        let thresholds = Thresholds { contradiction_rate: Some(0.15), ..Thresholds::default() };
        let checks = thresholds.check(&cells, &karat_evals::agreement::Figures::of(&cells));
        assert_eq!(threshold(&checks[0], 20), "accuracy 0.7999 (must be at least 0.8)");
        assert_eq!(threshold(&checks[1], 20), "contradiction rate 0.200 (must be at most 0.15)");
    }
}
