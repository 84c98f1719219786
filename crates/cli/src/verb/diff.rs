//! `karat diff`: what changed between two results.

use std::fmt::Write as _;
use std::path::Path;

use karat_core::case::Tier;
use karat_core::diff::{CaseDiff, Change, diff_cases};
use karat_core::exit::ExitStatus;
use karat_core::registry::same_name;
use karat_core::result::{EarlierResult, Outcome};
use karat_report::{cut, pad, printable, width};
use serde::Serialize;

use crate::args::{ConfigArgs, DiffArgs, OutputFormat};
use crate::baseline::{read_result, run_results};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::Settings;

pub(crate) fn run(args: &DiffArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    let config =
        ConfigArgs { config: args.config.clone(), output_dir: args.output_dir.clone(), ..ConfigArgs::default() };
    let settings = Settings::resolve(&config, &[], environment, printer)?;
    let folder = settings.output_dir.as_path();
    let here = &environment.current_dir;
    let before = results(&args.before, folder, here)?;
    let now = results(&args.now, folder, here)?;
    // Two files that a person names are meant for each other, whatever they are about.
    let are_files = here.join(&args.before).is_file() && here.join(&args.now).is_file();
    let diff = Diff::of(&before, &now, are_files);
    let text = match args.format {
        OutputFormat::Json => {
            serde_json::to_string_pretty(&diff).map_err(|error| Failure::errored(error.to_string()))? + "\n"
        }
        OutputFormat::Human => diff.text(printer),
    };
    printer.out(&text).map_err(|error| Failure::errored(error.to_string()))?;
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
    /// The eval file changed between the runs, so that a change may come from it.
    eval_file_changed: bool,
    cases: Vec<CaseDiff>,
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
        for result in now {
            let old = before.iter().find(|old| forced || same(old, result));
            suites.push(SuiteDiff {
                tool_name: result.tool_name.clone(),
                tier: result.tier,
                eval_file_changed: old.is_some_and(|old| old.metadata.eval_file_hash != result.metadata.eval_file_hash),
                cases: diff_cases(old.map_or(&[][..], |old| &old.cases), &result.cases),
            });
        }
        let gone = before.iter().filter(|old| !forced && !now.iter().any(|result| same(old, result)));
        suites.extend(gone.map(|old| SuiteDiff {
            tool_name: old.tool_name.clone(),
            tier: old.tier,
            eval_file_changed: false,
            cases: diff_cases(&old.cases, &[]),
        }));
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
        for suite in &self.suites {
            let dash = printer.symbols.dash;
            let title = format!("{} {dash} {} evals", printable(&suite.tool_name), suite.tier);
            let _ = writeln!(out, "{}", palette.bold(title));
            let count = |change| suite.cases.iter().filter(|case| case.change == change).count();
            let parts = [
                (Change::Regression, if count(Change::Regression) == 1 { "regression" } else { "regressions" }),
                (Change::NewPass, if count(Change::NewPass) == 1 { "new pass" } else { "new passes" }),
                (Change::NoVerdict, "without a verdict"),
                (Change::StillFails, "still failing"),
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
            if suite.eval_file_changed {
                let warning = palette.doubtful(printer.symbols.warning);
                let _ = writeln!(out, "  {warning} the eval file changed between the runs");
            }
            out.push('\n');
        }
        out
    }
}

fn section(change: Change, title: &str, cases: &[&CaseDiff], printer: &Printer, out: &mut String) {
    let palette = printer.stdout_palette;
    let title = match change {
        Change::Regression => palette.alarm(title),
        Change::NewPass => palette.good(title),
        Change::NoVerdict => palette.broken(title),
        Change::StillFails => palette.bad(title),
        _ => title.to_owned(),
    };
    let _ = writeln!(out, "  {title}");
    let widest = cases.iter().map(|case| width(&printable(&case.id))).max().unwrap_or_default();
    for case in cases {
        let id = pad(&printable(&case.id), widest);
        let id = if change == Change::Regression { palette.bold(id) } else { id };
        let text = case.error.as_deref().unwrap_or(&case.description);
        let room = printer.columns.saturating_sub(widest + 6).max(20);
        let _ = writeln!(out, "    {id}  {}", cut(&printable(text), room, printer.symbols.ellipsis));
    }
}
