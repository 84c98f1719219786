//! Compares two results or runs.

use std::path::Path;

use karat_core::case::Tier;
use karat_core::diff::{CaseDiff, Change, SuiteChange, diff_cases, suite_change};
use karat_core::registry::same_name;
use karat_core::result::EarlierResult;
use karat_project::{read_result, read_run_results};
use serde::Serialize;

use crate::context::Context;
use crate::error::Error;

pub struct Request {
    /// A result file, or the id of a run.
    pub before: String,
    /// A result file, or the id of a run.
    pub now: String,
}

pub fn compare_runs(request: &Request, context: &Context<'_>) -> Result<RunComparison, Error> {
    let layout = &context.settings.layout;
    let before = results(&request.before, &layout.output_dir, &layout.current_dir)?;
    let now = results(&request.now, &layout.output_dir, &layout.current_dir)?;
    // Two explicitly named files are compared even if their suites differ.
    let are_files =
        layout.current_dir.join(&request.before).is_file() && layout.current_dir.join(&request.now).is_file();
    Ok(RunComparison::of(&before, &now, are_files))
}

/// Reads a result file, or all results of a run.
fn results(name: &str, folder: &Path, current_dir: &Path) -> Result<Vec<EarlierResult>, Error> {
    let path = current_dir.join(name);
    if path.is_file() {
        return Ok(vec![read_result(&path, "the result")?]);
    }
    let found = read_run_results(folder, name)?;
    if found.is_empty() {
        let folder = folder.display();
        return Err(Error::not_found(format!("'{name}' is neither a result file nor a run in {folder}")));
    }
    Ok(found)
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunComparison {
    pub before_run_id: String,
    pub now_run_id: String,
    pub regressions: usize,
    pub new_passes: usize,
    pub suites: Vec<SuiteDiff>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SuiteDiff {
    pub tool_name: String,
    pub tier: Tier,
    /// The agents of both runs, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now_agent: Option<String>,
    /// The eval file changed between the runs, which may explain a difference.
    pub eval_file_changed: bool,
    /// The change of the suite as a whole.
    pub overall: SuiteChange,
    pub cases: Vec<CaseDiff>,
}

impl SuiteDiff {
    /// Compares two results of one suite. Returns `None` if both are missing.
    fn of(before: Option<&EarlierResult>, now: Option<&EarlierResult>) -> Option<Self> {
        let result = now.or(before)?;
        let cases = |side: Option<&EarlierResult>| side.map_or_else(Vec::new, |side| side.cases.clone());
        let cases = diff_cases(&cases(before), &cases(now));
        let hashes = before.zip(now).map(|(old, new)| (&old.metadata.eval_file_hash, &new.metadata.eval_file_hash));
        Some(Self {
            tool_name: result.tool_name.clone(),
            tier: result.tier,
            before_agent: before.and_then(|result| result.agent_endpoint.clone()),
            now_agent: now.and_then(|result| result.agent_endpoint.clone()),
            eval_file_changed: hashes.is_some_and(|(old, new)| old != new),
            overall: suite_change(&cases),
            cases,
        })
    }

    /// Returns the newer agent, if known.
    pub fn agent(&self) -> Option<&String> {
        self.now_agent.as_ref().or(self.before_agent.as_ref())
    }
}

impl RunComparison {
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
        let removed = before.iter().zip(compared).filter(|(_, compared)| !compared);
        suites.extend(removed.filter_map(|(old, _)| SuiteDiff::of(Some(old), None)));
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
}
