//! `karat diff`: what changed between two results.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use karat_core::case::Tier;
use karat_core::diff::{CaseDiff, Change, Movement, Verdict, diff_cases, movement};
use karat_core::exit::ExitStatus;
use karat_core::registry::same_name;
use karat_core::result::{EarlierResult, Outcome};
use karat_core::trials::TrialCounts;
use karat_report::{cut, pad, printable, width};
use serde::Serialize;

use crate::args::{ConfigArgs, DiffArgs, OutputFormat};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use karat_project::{read_result, run_results};

pub(crate) fn run(args: &DiffArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    let config =
        ConfigArgs { config: args.config.clone(), output_dir: args.output_dir.clone(), ..ConfigArgs::default() };
    let settings = resolve_settings(&config, &[], environment, printer)?;
    let folder = settings.layout.output_dir.as_path();
    let here = &environment.process.current_dir;
    let before = results(&args.before, folder, here)?;
    let now = results(&args.now, folder, here)?;
    // Two files that a person names are meant for each other, whatever they are about.
    let are_files = here.join(&args.before).is_file() && here.join(&args.now).is_file();
    let diff = Diff::of(&before, &now, are_files);
    match args.format {
        OutputFormat::Json => printer.print_json(&diff)?,
        OutputFormat::Human => printer.print(&diff.text(printer))?,
    }
    Ok(diff.status())
}

/// Reads a result file, or all results of a run.
fn results(name: &str, folder: &Path, here: &Path) -> Result<Vec<EarlierResult>, Failure> {
    let path = here.join(name);
    if path.is_file() {
        return Ok(vec![read_result(&path, "the result")?]);
    }
    let found = run_results(folder, name)?;
    if found.is_empty() {
        return Err(Failure::invalid(format!("'{name}' is neither a result file nor a run in {}", folder.display())));
    }
    Ok(found)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Diff {
    before_run_id: String,
    now_run_id: String,
    regressions: usize,
    new_passes: usize,
    suites: Vec<SuiteDiff>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SuiteDiff {
    tool_name: String,
    tier: Tier,
    /// Who answered before and now, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    before_agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    now_agent: Option<String>,
    /// The eval file changed between the runs, so that a change may come from it.
    eval_file_changed: bool,
    /// Where the suite went as a whole.
    overall: Movement,
    cases: Vec<CaseDiff>,
}

impl SuiteDiff {
    /// Compares results of one suite, of which at least one is there.
    fn of(before: Option<&EarlierResult>, now: Option<&EarlierResult>) -> Option<Self> {
        let shown = now.or(before)?;
        let cases = |side: Option<&EarlierResult>| side.map_or_else(Vec::new, |side| side.cases.clone());
        let cases = diff_cases(&cases(before), &cases(now));
        let hashes = before.zip(now).map(|(old, new)| (&old.metadata.eval_file_hash, &new.metadata.eval_file_hash));
        Some(Self {
            tool_name: shown.tool_name.clone(),
            tier: shown.tier,
            before_agent: before.and_then(|result| result.agent_endpoint.clone()),
            now_agent: now.and_then(|result| result.agent_endpoint.clone()),
            eval_file_changed: hashes.is_some_and(|(old, new)| old != new),
            overall: movement(&cases),
            cases,
        })
    }

    fn agent(&self) -> Option<&String> {
        self.now_agent.as_ref().or(self.before_agent.as_ref())
    }
}

impl Diff {
    fn of(before: &[EarlierResult], now: &[EarlierResult], forced: bool) -> Self {
        let same_suite = |left: &EarlierResult, right: &EarlierResult| {
            left.tier == right.tier && same_name(&left.tool_name, &right.tool_name)
        };
        let same_file = |left: &EarlierResult, right: &EarlierResult| {
            let (left, right) = (&left.metadata.eval_file, &right.metadata.eval_file);
            left == right || left.is_empty() || right.is_empty()
        };
        let same = |left: &EarlierResult, right: &EarlierResult| same_suite(left, right) && same_file(left, right);
        let mut suites = Vec::new();
        let mut compared = vec![false; before.len()];
        for result in now {
            let matching = || before.iter().enumerate().filter(|(_, old)| forced || same(old, result));
            let is_of_agent = |old: &EarlierResult| old.agent_endpoint == result.agent_endpoint;
            let old = matching().find(|(_, old)| is_of_agent(old)).or_else(|| matching().next());
            if let Some((index, _)) = old {
                compared[index] = true;
            }
            suites.extend(SuiteDiff::of(old.map(|(_, old)| old), Some(result)));
        }
        let gone = before.iter().zip(compared).filter(|(_, compared)| !compared);
        suites.extend(gone.filter_map(|(old, _)| SuiteDiff::of(Some(old), None)));
        let count = |change| suites.iter().flat_map(|suite| &suite.cases).filter(|case| case.change == change).count();
        let id = |results: &[EarlierResult]| results.first().map(|result| result.run_id.clone()).unwrap_or_default();
        Self {
            before_run_id: id(before),
            now_run_id: id(now),
            regressions: count(Change::Regression),
            new_passes: count(Change::NewPass),
            suites,
        }
    }

    /// An error in the newer run hides whether something broke.
    fn status(&self) -> ExitStatus {
        let mut cases = self.suites.iter().flat_map(|suite| &suite.cases);
        if cases.any(|case| case.now == Some(Outcome::Errored)) {
            ExitStatus::Errored
        } else if self.regressions > 0 {
            ExitStatus::Failed
        } else {
            ExitStatus::Success
        }
    }

    fn text(&self, printer: &Printer) -> String {
        let mut out = String::new();
        let palette = printer.stdout_palette;
        let agents: BTreeSet<&String> = self.suites.iter().filter_map(SuiteDiff::agent).collect();
        for suite in &self.suites {
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
