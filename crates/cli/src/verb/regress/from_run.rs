//! A case that failed in a run, as the beginning of a regression case.

use karat_core::case::SuiteFile;
use karat_core::result::{EarlierCase, EarlierResult, Outcome};
use karat_json::{nearest, parse};
use serde_json::Value;

use crate::failure::Failure;
use crate::printer::Printer;
use karat_json::without_bom;
use karat_project::{EvalPath, discover};
use karat_project::{Results, run_results};
use karat_project::{parse_suite_file, read_bytes};
use karat_workflows::settings::Settings;

use super::basis::Basis;
use super::named_file;

/// The newest run, whichever it is.
const LATEST: &str = "latest";

impl Basis {
    /// Finds a case of a run, and reads it from its eval file.
    pub(super) fn of_run(
        run: &str,
        id: &str,
        even_if_passed: bool,
        settings: &Settings,
        printer: &Printer,
    ) -> Result<Self, Failure> {
        let results = if run == LATEST { latest(settings)? } else { run_results(&settings.layout.output_dir, run)? };
        let Some(run_id) = results.first().map(|result| result.run_id.clone()) else {
            return Err(Failure::invalid(format!(
                "there is no run '{run}' in {}",
                settings.layout.output_dir.display()
            ))
            .hint("a run's id is in its result files' names; 'latest' is the newest"));
        };
        let (result, case) = one_of(&results, id, &run_id)?;
        match case.outcome {
            Outcome::Failed => {}
            Outcome::Passed if even_if_passed => {}
            Outcome::Passed => {
                return Err(Failure::invalid(format!("'{id}' passed in the run {run_id}, so it shows no bug"))
                    .hint("--even-if-passed takes it nevertheless"));
            }
            Outcome::Errored => {
                let why = case.error.as_deref().unwrap_or_default();
                printer.warn(&format!("'{id}' has no verdict in that run: {why}"));
            }
        }
        let path = eval_file(result, settings)?;
        let bytes = read_bytes(&path)?;
        let hash = &result.metadata.eval_file_hash;
        let tool = match parse_suite_file(&path, &bytes) {
            Ok(SuiteFile::Eval(file)) => {
                if !hash.is_empty() && *hash != file.hash {
                    printer.warn(&format!("{} changed since that run; the case is taken as it is now", path.shown));
                }
                file.tool_name
            }
            _ => {
                return Err(Failure::invalid(format!("{} is no valid eval file any more", path.shown))
                    .hint("'karat check' shows why"));
            }
        };
        let text = String::from_utf8_lossy(without_bom(&bytes)).into_owned();
        let tree = parse(&text).unwrap_or_default();
        let cases = tree.get("cases").unwrap_or(&tree).as_array().cloned().unwrap_or_default();
        let Some(raw) = cases.into_iter().find(|case| case.get("id").and_then(Value::as_str) == Some(id)) else {
            return Err(Failure::invalid(format!("{} holds no case '{id}' any more", path.shown)));
        };
        Ok(Self {
            tool,
            message: raw.pointer("/input/message").and_then(Value::as_str).unwrap_or_default().to_owned(),
            expect: raw.get("expect").and_then(Value::as_object).cloned().unwrap_or_default(),
            stubs: raw.get("stubs").cloned(),
            max_turns: raw.get("maxTurns").cloned(),
            said: case.error.clone().or_else(|| Some(case.description.clone())).filter(|text| !text.is_empty()),
            trace: None,
        })
    }
}

/// Runs are compared with a baseline; a case is taken from a run.
fn without_baseline(failure: Failure) -> Failure {
    let hint = "run the eval files with 'karat run', or give --message and the expectation instead of --from-run";
    Failure { hints: vec![hint.to_owned()], ..failure }
}

fn latest(settings: &Settings) -> Result<Vec<EarlierResult>, Failure> {
    let mut suites = Results::newest(&settings.layout).map_err(|error| without_baseline(error.into()))?.suites;
    let newest = suites.first().map(|result| result.run_id.clone());
    suites.retain(|result| Some(&result.run_id) == newest.as_ref());
    Ok(suites)
}

/// Finds the result of a case; where several agents were asked, one with which it failed.
fn one_of<'r>(
    results: &'r [EarlierResult],
    id: &str,
    run_id: &str,
) -> Result<(&'r EarlierResult, &'r EarlierCase), Failure> {
    let found = |result: &'r EarlierResult| Some((result, result.cases.iter().find(|case| case.id == id)?));
    let mut all: Vec<(&EarlierResult, &EarlierCase)> = results.iter().filter_map(found).collect();
    all.sort_by_key(|(_, case)| match case.outcome {
        Outcome::Failed => 0,
        Outcome::Errored => 1,
        Outcome::Passed => 2,
    });
    let Some(&(result, case)) = all.first() else {
        let ids: Vec<&str> = results.iter().flat_map(|result| &result.cases).map(|case| case.id.as_str()).collect();
        let failure = Failure::invalid(format!("the run {run_id} has no case '{id}'"));
        return Err(match nearest(id, &ids) {
            Some(near) => failure.hint(format!("did you mean '{near}'?")),
            None => failure,
        });
    };
    let is_other = |other: &EarlierResult| other.metadata.eval_file != result.metadata.eval_file;
    if let Some((other, _)) = all.iter().find(|(other, one)| one.outcome == case.outcome && is_other(other)) {
        let (left, right) = (&result.metadata.eval_file, &other.metadata.eval_file);
        return Err(Failure::invalid(format!("the id '{id}' is in {left} and in {right}"))
            .hint("give --message and the expectation instead of --from-run"));
    }
    Ok((result, case))
}

/// Finds the eval file of a result: where it says, or else by its tool and tier.
fn eval_file(result: &EarlierResult, settings: &Settings) -> Result<EvalPath, Failure> {
    let named = &result.metadata.eval_file;
    let path = settings.layout.root.join(named);
    if !named.is_empty() && path.is_file() {
        let shown = path.strip_prefix(&settings.layout.here).unwrap_or(&path).to_path_buf();
        return Ok(EvalPath { path, ..named_file(&shown, settings) });
    }
    let of_suite = |path: &EvalPath| {
        let bytes = read_bytes(path).ok()?;
        match parse_suite_file(path, &bytes) {
            Ok(SuiteFile::Eval(file)) => {
                let is_same =
                    file.tier == result.tier && karat_core::registry::same_name(&file.tool_name, &result.tool_name);
                is_same.then_some(())
            }
            _ => None,
        }
    };
    let all = discover(&[], &settings.layout, &settings.layout.here)?;
    all.into_iter().find(|path| of_suite(path).is_some()).ok_or_else(|| {
        let what =
            if named.is_empty() { format!("the {} evals of {}", result.tier, result.tool_name) } else { named.clone() };
        Failure::invalid(format!("the eval file of that run is gone: {what}"))
            .hint("give --message and the expectation instead of --from-run")
    })
}
