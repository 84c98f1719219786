//! Compares two results or runs.

use karat_cases::Tier;
use karat_cases::registry::same_name;
use karat_core::diff::{CaseDiff, Change, SuiteChange, count_compared, diff_cases, suite_change};
use karat_core::result::{EarlierResult, Incomplete};
use karat_core::security::SecuritySummary;
use karat_project::{Layout, ResultFile, Run, list_runs};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;
use crate::error::Error;
use crate::eval_file_ids::{current_ids, unchanged_ids};
use crate::hint::Hint;
use crate::run_name::{NamedRun, RunSource, find_run_or_folder};
use crate::settings::Settings;

/// The runs to compare, by name.
pub struct Request {
    /// Default: the newest run before `now` of the same eval files and agent.
    pub before: Option<String>,
    /// Default: the newest run.
    pub now: Option<String>,
}

pub fn compare_runs(request: &Request, context: &Context<'_>) -> Result<RunComparison, Error> {
    let layout = &context.settings.layout;
    let now = find_run_or_folder(request.now.as_deref().unwrap_or("latest"), layout)?;
    let before = match &request.before {
        Some(name) => find_run_or_folder(name, layout)?,
        None => comparable_run(&now, layout)?,
    };
    // Two explicitly named files are compared even if their suites differ.
    let are_files = before.source == RunSource::File && now.source == RunSource::File;
    let (old, new) = (before.results()?, now.results()?);
    let comparison = RunComparison::of(&old, &new, are_files, &context.settings);
    Ok(RunComparison { before_incomplete: before.incomplete(&old), now_incomplete: now.incomplete(&new), ..comparison })
}

/// Finds the newest earlier run with an eval file and agent in common. A shard is compared only with the same shard of an
/// earlier run.
fn comparable_run(now: &NamedRun, layout: &Layout) -> Result<NamedRun, Error> {
    let mut runs = list_runs(&layout.output_dir).into_iter().skip_while(|run| run.run_id != now.run_id);
    let shared: Vec<ResultFile> = runs.next().map(|run| run.results).unwrap_or_default();
    let is_shared = |old: &ResultFile| {
        let is_same = |new: &ResultFile| {
            new.head.metadata.eval_file == old.head.metadata.eval_file
                && new.head.tier == old.head.tier
                && new.head.agent == old.head.agent
                && new.head.shard == old.head.shard
        };
        old.head.tier != Some(Tier::Rubric) && shared.iter().any(is_same)
    };
    let comparable = runs.find(|run: &Run| run.results.iter().any(is_shared));
    comparable.map(NamedRun::from).ok_or_else(|| {
        let message = format!("no run before {} has the same eval files and agent", now.run_id);
        let hint = "to compare other runs, pass both, for example 'latest~1' and 'latest'";
        Error::not_found(message).hint(hint).hint(Hint::ListRuns)
    })
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat diff")]
pub struct RunComparison {
    pub before_run_id: String,
    pub now_run_id: String,
    /// The missing results of the runs; absent if they are complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_incomplete: Option<Incomplete>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now_incomplete: Option<Incomplete>,
    /// Cases with a verdict in both runs.
    pub compared: usize,
    pub regressions: usize,
    pub new_passes: usize,
    pub suites: Vec<SuiteDiff>,
}

/// The comparison of a suite.
#[derive(Debug, Serialize, JsonSchema)]
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
    /// Utility and safety of both runs, if they have cases with injections or `safety`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_security: Option<SecuritySummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now_security: Option<SecuritySummary>,
    pub cases: Vec<CaseDiff>,
}

impl SuiteDiff {
    /// Compares two results of one suite. Returns `None` if both are missing.
    fn of(before: Option<&EarlierResult>, now: Option<&EarlierResult>, settings: &Settings) -> Option<Self> {
        let result = now.or(before)?;
        let cases = |side: Option<&EarlierResult>| side.map_or_else(Vec::new, |side| side.cases.clone());
        let mut cases = diff_cases(&cases(before), &cases(now));
        mark_not_run(&mut cases, before, now, settings);
        let hashes = before.zip(now).map(|(old, new)| (&old.metadata.eval_file_hash, &new.metadata.eval_file_hash));
        Some(Self {
            tool_name: result.tool_name.clone(),
            tier: result.tier,
            before_agent: before.and_then(|result| result.agent_endpoint.clone()),
            now_agent: now.and_then(|result| result.agent_endpoint.clone()),
            eval_file_changed: hashes.is_some_and(|(old, new)| old != new),
            overall: suite_change(&cases),
            before_security: before.and_then(|result| result.summary.security.clone()),
            now_security: now.and_then(|result| result.summary.security.clone()),
            cases,
        })
    }
}

/// Marks the added and removed cases that exist, but that one of the runs did not run.
fn mark_not_run(
    cases: &mut [CaseDiff],
    before: Option<&EarlierResult>,
    now: Option<&EarlierResult>,
    settings: &Settings,
) {
    let is_one_sided = |case: &CaseDiff| matches!(case.change, Change::Added | Change::Removed);
    if !cases.iter().any(is_one_sided) {
        return;
    }
    let hash = |side: Option<&EarlierResult>| side.map(|side| side.metadata.eval_file_hash.clone());
    let is_same_file = hash(before).is_some_and(|hash| !hash.is_empty()) && hash(before) == hash(now);
    let known_now = match (before, now) {
        (_, Some(now)) => unchanged_ids(&now.metadata.eval_file, &now.metadata.eval_file_hash, settings),
        (Some(before), None) => current_ids(&before.metadata.eval_file, settings),
        (None, None) => None,
    };
    for case in cases.iter_mut().filter(|case| is_one_sided(case)) {
        let is_listed = |side: Option<&EarlierResult>| side.is_some_and(|side| side.not_run.contains(&case.id));
        case.not_run = match case.change {
            Change::Added => is_same_file || is_listed(before),
            _ => is_same_file || is_listed(now) || known_now.as_ref().is_some_and(|ids| ids.contains(&case.id)),
        };
    }
}

/// Returns for each current result the index of the earlier one to compare it with.
///
/// A suite is compared with the result of the same agent. If it ran against a single agent in both runs, the agents may
/// differ.
fn pair_results(before: &[EarlierResult], now: &[EarlierResult], forced: bool) -> Vec<Option<usize>> {
    let same_suite = |left: &EarlierResult, right: &EarlierResult| {
        left.tier == right.tier && same_name(&left.tool_name, &right.tool_name)
    };
    let same_file = |left: &EarlierResult, right: &EarlierResult| {
        let (left, right) = (&left.metadata.eval_file, &right.metadata.eval_file);
        left == right || left.is_empty() || right.is_empty()
    };
    let is_same =
        |left: &EarlierResult, right: &EarlierResult| forced || same_suite(left, right) && same_file(left, right);
    let pair = |result: &EarlierResult| {
        let matching: Vec<usize> = (0..before.len()).filter(|index| is_same(&before[*index], result)).collect();
        let is_of_agent = |index: &&usize| before[**index].agent_endpoint == result.agent_endpoint;
        let has_one_agent = || matching.len() == 1 && now.iter().filter(|other| is_same(other, result)).count() == 1;
        matching.iter().find(is_of_agent).copied().or_else(|| matching.first().copied().filter(|_| has_one_agent()))
    };
    now.iter().map(pair).collect()
}

impl RunComparison {
    fn of(before: &[EarlierResult], now: &[EarlierResult], forced: bool, settings: &Settings) -> Self {
        let pairs = pair_results(before, now, forced);
        let mut suites: Vec<SuiteDiff> = Vec::new();
        for (result, old) in now.iter().zip(&pairs) {
            suites.extend(SuiteDiff::of(old.map(|index| &before[index]), Some(result), settings));
        }
        let removed = (0..before.len()).filter(|index| !pairs.contains(&Some(*index)));
        suites.extend(removed.filter_map(|index| SuiteDiff::of(Some(&before[index]), None, settings)));
        let count = |change| suites.iter().flat_map(|suite| &suite.cases).filter(|case| case.change == change).count();
        let id = |results: &[EarlierResult]| results.first().map(|result| result.run_id.clone()).unwrap_or_default();
        Self {
            before_run_id: id(before),
            now_run_id: id(now),
            before_incomplete: None,
            now_incomplete: None,
            compared: suites.iter().map(|suite| count_compared(&suite.cases)).sum(),
            regressions: count(Change::Regression),
            new_passes: count(Change::NewPass),
            suites,
        }
    }
}
