//! `karat diff`: what changed between two results.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use karat_core::diff::{CaseDiff, Change, Movement, Verdict};
use karat_core::exit::ExitStatus;
use karat_core::result::Outcome;
use karat_core::trials::TrialCounts;
use karat_report::{cut, pad, printable, width};
use karat_workflows::compare_runs::{Request, RunComparison, SuiteDiff, compare_runs};

use crate::args::{ConfigArgs, DiffArgs, OutputFormat};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::surface::Surface;

pub(crate) fn run(args: &DiffArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let config =
        ConfigArgs { config: args.config.clone(), output_dir: args.output_dir.clone(), ..ConfigArgs::default() };
    let context = surface.context(&config, &[])?;
    let request = Request { before: args.before.clone(), now: args.now.clone() };
    let comparison = compare_runs(&request, &context)?;
    let printer = surface.printer;
    match args.format {
        OutputFormat::Json => printer.print_json(&comparison)?,
        OutputFormat::Human => printer.print(&text(&comparison, printer))?,
    }
    Ok(status(&comparison))
}

/// An error in the newer run hides whether something broke.
fn status(comparison: &RunComparison) -> ExitStatus {
    let mut cases = comparison.suites.iter().flat_map(|suite| &suite.cases);
    if cases.any(|case| case.now == Some(Outcome::Errored)) {
        ExitStatus::Errored
    } else if comparison.regressions > 0 {
        ExitStatus::Failed
    } else {
        ExitStatus::Success
    }
}

fn text(comparison: &RunComparison, printer: &Printer) -> String {
    let mut out = String::new();
    let palette = printer.stdout_palette;
    let agents: BTreeSet<&String> = comparison.suites.iter().filter_map(SuiteDiff::agent).collect();
    for suite in &comparison.suites {
        let dash = printer.symbols.dash;
        let agent = suite.agent().filter(|_| agents.len() > 1);
        let of = agent.map(|agent| format!(" of {}", printable(agent))).unwrap_or_default();
        let title = format!("{} {dash} {} evals{of}", printable(&suite.tool_name), suite.tier);
        let _ = writeln!(out, "{}", palette.bold(title));
        let count = |change| suite.cases.iter().filter(|case| case.change == change).count();
        let parts = [
            (Change::Regression, if count(Change::Regression) == 1 { "regression" } else { "regressions" }),
            (Change::NewPass, if count(Change::NewPass) == 1 { "new pass" } else { "new passes" }),
            (Change::NoVerdict, "without a verdict"),
            (Change::StillFails, "still failing"),
            (Change::Flaky, "flaky"),
            (Change::NotEnoughData, "without enough data"),
            (Change::Added, "added"),
            (Change::Removed, "removed"),
        ];
        for (change, title) in parts {
            let cases: Vec<&CaseDiff> = suite.cases.iter().filter(|case| case.change == change).collect();
            if !cases.is_empty() {
                section(change, &format!("{} {title}", cases.len()), &cases, printer, &mut out);
            }
        }
        let _ = writeln!(out, "  {} still passing", count(Change::StillPasses));
        let _ = writeln!(out, "  {}", overall(&suite.overall, printer));
        if suite.eval_file_changed {
            let warning = palette.doubtful(printer.symbols.warning);
            let _ = writeln!(out, "  {warning} the eval file changed between the runs");
        }
        out.push('\n');
    }
    out
}

/// Says where the suite went as a whole, and what that rests on.
fn overall(movement: &Movement, printer: &Printer) -> String {
    let palette = printer.stdout_palette;
    let word = match movement.verdict {
        Verdict::Unchanged => return "overall: unchanged".to_owned(),
        Verdict::Regression => palette.alarm("regression"),
        Verdict::Improvement => palette.good("improvement"),
        Verdict::Flaky => palette.doubtful("flaky"),
        Verdict::NotEnoughData => palette.doubtful("not enough data"),
    };
    let Movement { worse, better, p_value, .. } = movement;
    format!("overall: {word} ({worse} worse, {better} better, {})", chance(*p_value))
}

fn section(change: Change, title: &str, cases: &[&CaseDiff], printer: &Printer, out: &mut String) {
    let palette = printer.stdout_palette;
    let title = match change {
        Change::Regression => palette.alarm(title),
        Change::NewPass => palette.good(title),
        Change::NoVerdict => palette.broken(title),
        Change::StillFails => palette.bad(title),
        Change::Flaky | Change::NotEnoughData => palette.doubtful(title),
        _ => title.to_owned(),
    };
    let _ = writeln!(out, "  {title}");
    let widest = cases.iter().map(|case| width(&printable(&case.id))).max().unwrap_or_default();
    let tries: Vec<String> = cases.iter().map(|case| tries(case, printer)).collect();
    let widest_tries = tries.iter().map(|text| width(text)).max().unwrap_or_default();
    let taken = if widest_tries > 0 { widest_tries + 2 } else { 0 };
    for (case, tries) in cases.iter().zip(&tries) {
        let id = pad(&printable(&case.id), widest);
        let id = if change == Change::Regression { palette.bold(id) } else { id };
        let tries = if widest_tries > 0 { pad(tries, taken) } else { String::new() };
        let text = case.error.as_deref().unwrap_or(&case.description);
        let room = printer.columns.saturating_sub(widest + taken + 6).max(20);
        let text = printable(text);
        let line = format!("    {id}  {tries}{}", cut(&text, room, printer.symbols.ellipsis));
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// Returns how many tries passed before and now, and how likely chance alone shows that.
fn tries(case: &CaseDiff, printer: &Printer) -> String {
    let side = |counts: Option<TrialCounts>| counts.map(|counts| format!("{}/{}", counts.passed, counts.total()));
    let p_value = case.p_value.map(|p_value| format!(" {}", chance(p_value))).unwrap_or_default();
    match (side(case.before_trials), side(case.now_trials)) {
        (Some(before), Some(now)) => format!("{before} {} {now}{p_value}", printer.symbols.arrow),
        (one, other) => one.or(other).unwrap_or_default(),
    }
}

fn chance(p_value: f64) -> String {
    if p_value < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p_value:.3}") }
}
