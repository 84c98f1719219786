//! Lists the runs in the output folder, and deletes old ones.

use std::path::{Path, PathBuf};

use karat_cases::Tier;
use karat_core::result::{Incomplete, RunList, RunSummary, SavedResult};
use karat_project::{Run, list_runs};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;
use crate::error::Error;
use crate::hint::Hint;
use crate::run_name::{find_baseline, short_ids};

#[derive(Debug)]
pub struct RunListing {
    pub list: RunList,
    /// Prefixes of the listed ids that are unique among all runs.
    pub short_ids: Vec<String>,
}

/// Lists runs, newest first.
pub fn list(limit: Option<usize>, context: &Context<'_>) -> Result<RunListing, Error> {
    let runs = require_runs(context)?;
    let count = limit.unwrap_or(runs.len()).min(runs.len());
    let mut short_ids = short_ids(&runs);
    short_ids.truncate(count);
    let summaries = runs[..count].iter().enumerate().map(|(age, run)| summarize(age, run)).collect();
    Ok(RunListing { list: RunList { total: runs.len(), runs: summaries }, short_ids })
}

fn require_runs(context: &Context<'_>) -> Result<Vec<Run>, Error> {
    let layout = &context.settings.layout;
    let runs = list_runs(&layout.output_dir);
    if runs.is_empty() {
        let folder = layout.display_path(&layout.output_dir);
        return Err(Error::nothing_selected(format!("no runs in {folder}")).hint(Hint::RunEvals));
    }
    Ok(runs)
}

fn summarize(age: usize, run: &Run) -> RunSummary {
    let mut summary = RunSummary {
        run_id: run.run_id.clone(),
        name: if age == 0 { "latest".to_owned() } else { format!("latest~{age}") },
        timestamp: run.timestamp.clone(),
        ..RunSummary::default()
    };
    let mut results: Vec<SavedResult> = Vec::new();
    for result in &run.results {
        if result.head.tier == Some(Tier::Rubric) {
            summary.rubric_suites += 1;
            summary.agents.extend(result.head.agent.clone().filter(|agent| !summary.agents.contains(agent)));
            continue;
        }
        match read_saved_result(&result.path) {
            Some(result) => {
                summary.add(&result);
                // Only the numbers are needed for the rest.
                results.push(SavedResult { cases: Vec::new(), ..result });
            }
            None => summary.unreadable += 1,
        }
    }
    summary.incomplete = Incomplete::find(&results, summary.unreadable);
    // Results are sorted by path.
    summary.agents.sort();
    summary
}

/// Reads a result in full.
pub(crate) fn read_saved_result(path: &Path) -> Option<SavedResult> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

#[derive(Debug, Clone)]
pub struct PruneRequest {
    /// Number of runs to keep.
    pub keep: usize,
    /// Report which runs would be deleted, but keep them.
    pub dry_run: bool,
}

/// The runs whose result files were deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat runs prune")]
pub struct PruneReport {
    /// The ids, newest first.
    pub deleted: Vec<String>,
    /// Number of deleted files.
    pub files: usize,
    /// Number of runs that remain.
    pub kept: usize,
    /// Whether the files were only listed and not deleted.
    pub dry_run: bool,
}

/// Deletes the result files of all but the newest runs and the configured baseline. The store is not changed.
pub fn prune(request: &PruneRequest, context: &Context<'_>) -> Result<PruneReport, Error> {
    let settings = &context.settings;
    let runs = require_runs(context)?;
    let baseline = settings.baseline.as_ref().and_then(|baseline| find_baseline(baseline, &settings.layout).ok());
    let is_baseline = |run: &Run| baseline.as_ref().is_some_and(|baseline| baseline.run_id == run.run_id);
    let is_old = |(age, run): &(usize, &Run)| *age >= request.keep && !is_baseline(run);
    let old: Vec<&Run> = runs.iter().enumerate().filter(is_old).map(|(_, run)| run).collect();
    let files: Vec<&PathBuf> = old.iter().flat_map(|run| &run.results).map(|result| &result.path).collect();
    if !request.dry_run {
        for path in &files {
            delete(path)?;
        }
    }
    Ok(PruneReport {
        deleted: old.iter().map(|run| run.run_id.clone()).collect(),
        files: files.len(),
        kept: runs.len() - old.len(),
        dry_run: request.dry_run,
    })
}

fn delete(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        // Another process deleted it.
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::unavailable(format!("cannot delete {}: {error}", path.display())))
        }
        _ => Ok(()),
    }
}
