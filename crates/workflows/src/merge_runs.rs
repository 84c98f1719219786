//! Merges the results of shards into one run.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use karat_core::diff::{ComparisonCounts, compare_with_baseline};
use karat_core::event::{Reporter, RunEvent, RunTotals, SuiteHeader};
use karat_core::gate::{GateMetrics, GateResult, check};
use karat_core::result::{EarlierResult, MergeError, ShardPart, SuiteResult, merge_shards};
use karat_json::text::display_width;
use karat_project::{EarlierResults, ResultFileReporter, SuiteName, read_suite_result, result_paths_in_tree};
use karat_runner::Reporters;

use crate::baseline_missing::{cases_of_missing_suites, removed_cases};
use crate::context::Context;
use crate::error::Error;
use crate::eval_file_ids::unchanged_ids;
use crate::run_name::{find_run, load_baseline, no_baseline_warning};
use crate::run_suites::Outcome;

pub struct Request {
    /// Result files, folders of result files, or names of runs in the output folder.
    pub shards: Vec<String>,
}

/// Merges the results, writes result files and reports the run. `reporters` takes the number of cases.
pub fn merge_runs(
    request: &Request,
    context: &Context<'_>,
    reporters: impl FnOnce(usize) -> Result<Vec<Box<dyn Reporter>>, Error>,
) -> Result<Outcome, Error> {
    let run_id = context.ids.run_id();
    let shards = read_shards(request, context)?;
    let baseline = load_merge_baseline(&shards, context)?;
    let mut suites = merge(shards, &run_id)?;
    let mut totals = RunTotals::default();
    if let Some(baseline) = &baseline {
        let mut compared = Vec::new();
        for suite in &mut suites {
            compared.extend(suite.compare(baseline, context));
        }
        totals.add_missing(&cases_of_missing_suites(baseline, &compared, None, &context.settings));
    }
    let agents: Vec<String> = suites.iter().fold(Vec::new(), |mut agents, suite| {
        if !agents.contains(&suite.result.agent_endpoint) {
            agents.push(suite.result.agent_endpoint.clone());
        }
        agents
    });
    let headers: Vec<Arc<SuiteHeader>> = suites.iter().map(|suite| Arc::new(suite.header(agents.len() > 1))).collect();
    let mut metrics: BTreeMap<&str, GateMetrics> = BTreeMap::new();
    for MergedSuite { result, compared, .. } in &suites {
        totals.add(result);
        totals.wall_clock_ms = totals.wall_clock_ms.max(result.wall_clock_ms);
        metrics.entry(&result.agent_endpoint).or_default().add(result, *compared);
    }
    totals.gates = check_gates(&agents, &metrics, context);
    let mut all = Reporters::default();
    all.add(Box::new(ResultFileReporter::new(context.settings.layout.output_dir.clone())));
    reporters(totals.cases)?.into_iter().for_each(|reporter| all.add(reporter));
    let results = suites.into_iter().map(|suite| suite.result).collect();
    report(&mut all, &run_id, headers, results, &totals);
    let (report_errors, not_stored) = (all.into_errors(), Vec::new());
    Ok(Outcome { run_id, totals, report_errors, not_stored, store_error: None, recordings: None, hook_error: None })
}

fn check_gates(agents: &[String], metrics: &BTreeMap<&str, GateMetrics>, context: &Context<'_>) -> Vec<GateResult> {
    let Some(gates) = &context.settings.gates else {
        return Vec::new();
    };
    let name = |agent: &String| (agents.len() > 1).then(|| agent.clone());
    let of_agent = |agent: &String| Some(check(gates, name(agent).as_deref(), metrics.get(agent.as_str())?));
    agents.iter().filter_map(of_agent).flatten().collect()
}

fn report(
    reporters: &mut Reporters,
    run_id: &str,
    headers: Vec<Arc<SuiteHeader>>,
    suites: Vec<SuiteResult>,
    totals: &RunTotals,
) {
    let run_id = run_id.to_owned();
    reporters.report(&RunEvent::RunStarted { run_id: run_id.clone(), suites: headers, total_cases: totals.cases });
    for (suite, result) in suites.into_iter().enumerate() {
        for (index, case) in result.cases.iter().enumerate() {
            reporters.report(&RunEvent::CaseFinished { suite, index, result: Arc::clone(case) });
        }
        reporters.report(&RunEvent::SuiteFinished { suite, result: Arc::new(result) });
    }
    // The console prints on flush, before reports that are written at the end of the run.
    reporters.flush();
    reporters.report(&RunEvent::RunFinished { run_id, totals: totals.clone() });
    reporters.flush();
}

/// A result and the path it was read from.
struct ShardResult {
    path: PathBuf,
    result: SuiteResult,
}

fn read_shards(request: &Request, context: &Context<'_>) -> Result<Vec<ShardResult>, Error> {
    let layout = &context.settings.layout;
    let mut shards = Vec::new();
    for name in &request.shards {
        let path = layout.current_dir.join(name);
        let before = shards.len();
        if path.is_file() {
            shards.push(ShardResult { result: read_suite_result(&path)?, path });
        } else if path.is_dir() {
            // A folder may also contain results of complete runs.
            let results = read_each(result_paths_in_tree(&path));
            shards.extend(results.filter(|shard| shard.result.shard.is_some()));
        } else {
            shards.extend(read_each(find_run(name, layout)?.paths));
        }
        if shards.len() == before {
            return Err(Error::not_found(format!("no results of shards in '{name}'"))
                .hint("pass result files of 'karat run --shard', their folders, or names of runs"));
        }
    }
    Ok(shards)
}

/// Reads the result files among the paths, skipping other files.
fn read_each(paths: Vec<PathBuf>) -> impl Iterator<Item = ShardResult> {
    paths.into_iter().filter_map(|path| Some(ShardResult { result: read_suite_result(&path).ok()?, path }))
}

/// Reads the baseline of the merged run. Fails if it is one of the shards, which `latest` may be.
fn load_merge_baseline(shards: &[ShardResult], context: &Context<'_>) -> Result<Option<EarlierResults>, Error> {
    let Some(baseline) = &context.settings.baseline else { return Ok(None) };
    let results = load_baseline(baseline, context)?;
    let is_shard = |run_id: &str| shards.iter().any(|shard| shard.result.run_id == run_id);
    match results.suites.iter().find(|suite| is_shard(&suite.run_id)) {
        None => Ok(Some(results)),
        Some(shard) => Err(Error::invalid(format!("the baseline {} is one of the shards", shard.run_id))
            .hint("pass an earlier run with --baseline")),
    }
}

/// The shards of a suite, merged.
struct MergedSuite {
    result: SuiteResult,
    compared: ComparisonCounts,
    /// The line of each case in the eval file.
    lines: Vec<usize>,
}

/// Merges the shards of each suite. Returns the suites in the order of the run.
fn merge(shards: Vec<ShardResult>, run_id: &str) -> Result<Vec<MergedSuite>, Error> {
    let mut suites = 0;
    let mut by_suite: BTreeMap<usize, Vec<ShardResult>> = BTreeMap::new();
    for shard in shards {
        let Some(part) = &shard.result.shard else {
            return Err(merge_error(&shard.path, &MergeError::NotAShard));
        };
        suites = suites.max(part.suites);
        by_suite.entry(part.suite).or_default().push(shard);
    }
    if let Some(missing) = (1..=suites).find(|suite| !by_suite.contains_key(suite)) {
        return Err(Error::invalid(format!("cannot merge: no result of suite {missing} of {suites}")));
    }
    let mut merged = Vec::with_capacity(by_suite.len());
    for shards in by_suite.into_values() {
        let path = shards.first().map(|shard| shard.result.metadata.eval_file.clone()).unwrap_or_default();
        let results: Vec<SuiteResult> = shards.into_iter().map(|shard| shard.result).collect();
        let parts = || results.iter().filter_map(|result| result.shard.as_ref());
        let compared = ComparisonCounts {
            cases: parts().map(|part| part.compared).sum(),
            inconclusive: parts().map(|part| part.inconclusive).sum(),
        };
        let line_of = |part: &ShardPart| part.cases.iter().cloned().zip(part.lines.iter().copied()).collect();
        let line_of: HashMap<String, usize> = parts().next().map(line_of).unwrap_or_default();
        let result = merge_shards(results, run_id).map_err(|error| merge_error(Path::new(&path), &error))?;
        // Results of earlier builds have no lines.
        let lines = result.cases.iter().map_while(|case| line_of.get(&case.id).copied()).collect();
        merged.push(MergedSuite { result, compared, lines });
    }
    Ok(merged)
}

fn merge_error(path: &Path, error: &MergeError) -> Error {
    let message = format!("cannot merge the results of {}: {error}", path.display());
    match error {
        MergeError::Duplicate { .. } => Error::invalid(message)
            .hint("a shard was run twice: pass the results of each shard once, or delete those of one run"),
        _ => Error::invalid(message),
    }
}

impl MergedSuite {
    /// Compares the suite with its result in the baseline, and returns that result.
    fn compare<'b>(&mut self, baseline: &'b EarlierResults, context: &Context<'_>) -> Option<&'b EarlierResult> {
        let SuiteResult { tool_name, tier, metadata, agent_endpoint, .. } = &self.result;
        let suite = SuiteName { tool_name, tier: *tier, eval_file: &metadata.eval_file };
        let Some(earlier) = baseline.find(suite, agent_endpoint) else {
            context.notices.warn(&no_baseline_warning(&metadata.eval_file));
            return None;
        };
        let ids = unchanged_ids(&metadata.eval_file, &metadata.eval_file_hash, &context.settings);
        let removed = ids.map(|ids| removed_cases(earlier, &ids)).unwrap_or_default();
        self.compared = compare_with_baseline(&mut self.result, &earlier.run_id, &earlier.cases, &removed);
        Some(earlier)
    }

    fn header(&self, has_several_agents: bool) -> SuiteHeader {
        let suite = &self.result;
        SuiteHeader {
            path: suite.metadata.eval_file.clone(),
            tool_name: suite.tool_name.clone(),
            tier: suite.tier,
            agent: has_several_agents.then(|| suite.agent_endpoint.clone()),
            selected: suite.cases.len(),
            trials: suite.summary.trials.as_ref().map_or(1, |trials| trials.per_case),
            // Known only during a run; the result contains the warnings.
            timeout_ms: None,
            lines: self.lines.clone(),
            staleness: Vec::new(),
            has_baseline: suite.baseline_run_id.is_some(),
            id_columns: max_width(suite.cases.iter().map(|case| case.id.as_str())),
            description_columns: max_width(suite.cases.iter().map(|case| case.description.as_str())),
        }
    }
}

fn max_width<'t>(texts: impl Iterator<Item = &'t str>) -> usize {
    texts.map(display_width).max().unwrap_or(0)
}
