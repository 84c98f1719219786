//! The comparison of two runs.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use karat_core::diff::{CaseDiff, Change, SuiteChange, Verdict};
use karat_core::result::Outcome;
use karat_core::trials::TrialCounts;
use karat_workflows::compare_runs::{RunComparison, SuiteDiff};

use crate::agreement::probability;
use crate::console::ConsoleSettings;
use crate::security::security_line;
use crate::terminal_text::{pad, printable, width, wrap};

/// Renders the changed cases of each suite, worst first, and whether the suite changed significantly.
pub fn run_comparison_text(comparison: &RunComparison, settings: ConsoleSettings) -> String {
    let mut out = String::new();
    let palette = settings.palette;
    let [before, now] = [&comparison.before_run_id, &comparison.now_run_id].map(|id| printable(id));
    let runs = format!("{before} {} {now}", settings.symbols.arrow);
    let _ = writeln!(out, "{}", palette.dim(runs));
    let incomplete = [(before, &comparison.before_incomplete), (now, &comparison.now_incomplete)];
    for (run_id, incomplete) in incomplete {
        let Some(incomplete) = incomplete else { continue };
        let indent = 1 + width(settings.symbols.warning);
        let lines =
            wrap(&format!("run {run_id} is incomplete: {incomplete}"), settings.columns.saturating_sub(indent).max(20));
        let lines = lines.join(&format!("\n{}", " ".repeat(indent)));
        let _ = writeln!(out, "{} {lines}", palette.warning(settings.symbols.warning));
    }
    out.push('\n');
    let agents: BTreeSet<&String> =
        comparison.suites.iter().flat_map(|suite| [&suite.before_agent, &suite.now_agent]).flatten().collect();
    for suite in &comparison.suites {
        let dash = settings.symbols.dash;
        let agent_text = if agents.len() > 1 { agent_text(suite, settings) } else { String::new() };
        let title = format!("{} {dash} {}{agent_text}", printable(&suite.tool_name), suite.tier.evals());
        let _ = writeln!(out, "{}", palette.bold(title));
        for group in GROUPS {
            let cases: Vec<&CaseDiff> = suite.cases.iter().filter(|case| group.contains(case)).collect();
            if !cases.is_empty() {
                section(group.change, &group.title(cases.len()), &cases, settings, &mut out);
            }
        }
        if suite.overall.verdict != Verdict::NothingToCompare {
            let passing = suite.cases.iter().filter(|case| case.change == Change::StillPasses).count();
            let _ = writeln!(out, "  {passing} still passing");
        }
        let _ = writeln!(out, "  {}", overall_text(&suite.overall, settings));
        let security = [("before", &suite.before_security), ("now", &suite.now_security)];
        for (name, security) in security {
            if let Some(security) = security {
                let _ = writeln!(out, "  {name}: {}", security_line(security));
            }
        }
        if suite.eval_file_changed {
            let warning = palette.warning(settings.symbols.warning);
            let _ = writeln!(out, "  {warning} the eval file changed between the runs");
        }
        out.push('\n');
    }
    out
}

/// Names the agent of a suite, or both if they differ.
fn agent_text(suite: &SuiteDiff, settings: ConsoleSettings) -> String {
    match (&suite.before_agent, &suite.now_agent) {
        (Some(before), Some(now)) if before != now => {
            format!(" of {} {} {}", printable(before), settings.symbols.arrow, printable(now))
        }
        (Some(agent), _) | (_, Some(agent)) => format!(" of {}", printable(agent)),
        (None, None) => String::new(),
    }
}

/// Cases that are listed together, under one title.
struct Group {
    change: Change,
    /// The outcome now, if it matters.
    now: Option<Outcome>,
    not_run: bool,
    singular: &'static str,
    plural: &'static str,
}

/// The groups in display order.
const GROUPS: [Group; 12] = [
    Group { plural: "regressions", ..Group::of(Change::Regression, "regression") },
    Group { plural: "new passes", ..Group::of(Change::NewPass, "new pass") },
    Group { now: Some(Outcome::Errored), ..Group::of(Change::NoVerdict, "without a verdict") },
    Group { now: Some(Outcome::Failed), ..Group::of(Change::NoVerdict, "failed now, no verdict before") },
    Group { now: Some(Outcome::Passed), ..Group::of(Change::NoVerdict, "passed now, no verdict before") },
    Group::of(Change::StillFails, "still failing"),
    Group::of(Change::Flaky, "flaky"),
    Group::of(Change::NotEnoughData, "without enough data"),
    Group::of(Change::Added, "added"),
    Group { not_run: true, ..Group::of(Change::Added, "not run before") },
    Group { not_run: true, ..Group::of(Change::Removed, "not run now") },
    Group::of(Change::Removed, "removed"),
];

impl Group {
    const fn of(change: Change, title: &'static str) -> Self {
        Self { change, now: None, not_run: false, singular: title, plural: title }
    }

    fn contains(&self, case: &CaseDiff) -> bool {
        case.change == self.change && case.not_run == self.not_run && self.now.is_none_or(|now| case.now == Some(now))
    }

    fn title(&self, count: usize) -> String {
        format!("{count} {}", if count == 1 { self.singular } else { self.plural })
    }
}

/// Describes the change of the whole suite: how many cases changed, and whether that is more than chance.
fn overall_text(change: &SuiteChange, settings: ConsoleSettings) -> String {
    let palette = settings.palette;
    let verdict = match change.verdict {
        Verdict::Unchanged => return "overall: unchanged".to_owned(),
        Verdict::NothingToCompare => return "overall: nothing to compare".to_owned(),
        Verdict::Regression => palette.alert("significantly worse"),
        Verdict::Improvement => palette.success("significantly better"),
        Verdict::Flaky => palette.warning("no significant trend"),
        Verdict::NotEnoughData => palette.warning("too few changes to tell a trend from chance"),
    };
    let SuiteChange { worse, better, p_value, .. } = change;
    format!("overall: {worse} worse, {better} better: {verdict} ({})", probability(*p_value))
}

fn section(change: Change, title: &str, cases: &[&CaseDiff], settings: ConsoleSettings, out: &mut String) {
    let palette = settings.palette;
    let title = match change {
        Change::Regression => palette.alert(title),
        Change::NewPass => palette.success(title),
        Change::NoVerdict => palette.error(title),
        Change::StillFails => palette.failure(title),
        Change::Flaky | Change::NotEnoughData => palette.warning(title),
        _ => title.to_owned(),
    };
    let _ = writeln!(out, "  {title}");
    let id_width = cases.iter().map(|case| width(&printable(&case.id))).max().unwrap_or_default();
    let trials: Vec<String> = cases.iter().map(|case| trials_text(case, settings)).collect();
    let trials_width = trials.iter().map(|text| width(text)).max().unwrap_or_default();
    let trials_width = if trials_width > 0 { trials_width + 2 } else { 0 };
    for (case, trials) in cases.iter().zip(&trials) {
        let id = pad(&printable(&case.id), id_width);
        let id = if change == Change::Regression { palette.bold(id) } else { id };
        let trials = if trials_width > 0 { pad(trials, trials_width) } else { String::new() };
        let text = printable(case.error.as_deref().unwrap_or(&case.description));
        // Long ids leave no space next to them.
        let indent = (id_width + trials_width + 6).min(settings.columns / 2);
        let mut lines = wrap(&text, settings.columns.saturating_sub(indent).max(20)).into_iter();
        let first = if indent < id_width + trials_width + 6 { String::new() } else { lines.next().unwrap_or_default() };
        let _ = writeln!(out, "{}", format!("    {id}  {trials}{first}").trim_end());
        for line in lines {
            let _ = writeln!(out, "{}{line}", " ".repeat(indent));
        }
    }
}

/// Returns how many trials passed before and now, and the p-value of the difference.
fn trials_text(case: &CaseDiff, settings: ConsoleSettings) -> String {
    let side = |counts: Option<TrialCounts>| counts.map(|counts| format!("{}/{}", counts.passed, counts.total()));
    let p_value = case.p_value.map(|p_value| format!(" {}", probability(p_value))).unwrap_or_default();
    match (side(case.before_trials), side(case.now_trials)) {
        (Some(before), Some(now)) => format!("{before} {} {now}{p_value}", settings.symbols.arrow),
        (before, now) => before.or(now).unwrap_or_default(),
    }
}
