//! Orders the results of workers into one stream of events and builds suite results.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Duration;

use karat_core::diff::compare_with_baseline;
use karat_core::event::{RunEvent, RunTotals, SuiteHeader, UnreachableAgent};
use karat_core::gate::{GateMetrics, GateResult, check};
use karat_core::port::{Agent, Clock};
use karat_core::result::{
    CaseResult, ResultMetadata, ShardPart, SkippedCase, SuiteResult, Summary, combine, suite_warnings,
};
use karat_core::staleness::Staleness;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, debug, instrument};

use crate::case::truncate_message;
use crate::exclusion::Exclusion;
use crate::plan::{Baseline, Plan, SuitePlan};
use crate::reachability::Reachability;
use crate::rubric::run_rubrics;
use crate::sample::Samples;
use crate::shared::{SharedState, Unit};
use crate::sink::{RunSink, with_sink_work};
use crate::stopwatch::millis_between;
use crate::stubs::count_unused_stubs;
use crate::worker::{FinishedTrial, run_worker};

/// Finished trials are reported in batches; the delay is too short to be noticeable.
const MAX_BATCH_SIZE: usize = 1024;
const BATCH_DELAY: Duration = Duration::from_millis(5);

/// Runs a plan until it finishes or is cancelled. Cases that finish before cancellation are reported as usual.
#[instrument(level = "debug", name = "run", skip_all, fields(id = %plan.run_id))]
pub async fn run(
    plan: Plan,
    agents: Vec<Arc<dyn Agent>>,
    clock: &dyn Clock,
    cancel: &CancellationToken,
    sink: &mut impl RunSink,
) -> RunTotals {
    let start = Instant::now();
    let timestamp = clock.now().to_string();
    let headers = headers(&plan, &agents);
    let cases: usize = plan.suites.iter().map(|suite| suite.file.cases.len()).sum();
    let mut samples = Samples::new(&plan, &agents);
    let units = list_units(&plan, &mut samples);
    if plan.rubrics.suites.is_empty() {
        samples.clear();
    }
    let workers = plan.concurrency.clamp(1, units.len().max(1));
    debug!(cases, trials = units.len(), workers, "run started");
    sink.emit(RunEvent::RunStarted { run_id: plan.run_id.clone(), suites: headers.clone(), total_cases: cases });
    let (out, mut finished) = mpsc::unbounded_channel();
    let reachability = agents.iter().map(|_| Reachability::default()).collect();
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let shared =
        Arc::new(SharedState { plan, agents, units, reachability, exclusion: Exclusion::default(), next, stop });
    // Dropping the set aborts the workers.
    let mut tasks = JoinSet::new();
    for _ in 0..workers {
        tasks.spawn(run_worker(Arc::clone(&shared), out.clone(), cancel.clone()).in_current_span());
    }
    drop(out);

    let mut progress = RunProgress::new(&shared, headers, timestamp.clone());
    let mut batch = Vec::new();
    while with_sink_work(sink, finished.recv_many(&mut batch, MAX_BATCH_SIZE)).await > 0 {
        for trial in batch.drain(..) {
            progress.record(trial, sink);
        }
        sink.flush();
        // Avoids a wakeup per case: a fast agent finishes thousands per second.
        if progress.pending > 0 {
            with_sink_work(sink, sleep(BATCH_DELAY)).await;
        }
    }
    let FinishedSuites { mut totals, passed, mut metrics } = progress.finish(sink);
    totals.rubric = run_rubrics(&shared, samples, &passed, &mut metrics, &timestamp, cancel, sink).await;
    totals.gates = check_gates(&shared, &metrics);
    totals.wall_clock_ms = millis_between(start, Instant::now());
    totals.interrupted = cancel.is_cancelled();
    totals.unreachable = unreachable_agents(&shared);
    totals.is_shard = shared.plan.shard.is_some();
    debug!(elapsed_ms = totals.wall_clock_ms, interrupted = totals.interrupted, "run finished");
    sink.emit(RunEvent::RunFinished { run_id: shared.plan.run_id.clone(), totals: totals.clone() });
    sink.flush();
    totals
}

fn headers(plan: &Plan, agents: &[Arc<dyn Agent>]) -> Vec<Arc<SuiteHeader>> {
    let name = |suite: &SuitePlan| plan.redactor.text(&agents[suite.agent].identity()).into_owned();
    let header =
        |suite: &SuitePlan| suite.header((agents.len() > 1).then(|| name(suite)), plan.trials.max(1), plan.timeout);
    plan.suites.iter().map(|suite| Arc::new(header(suite))).collect()
}

fn unreachable_agents(shared: &SharedState) -> Vec<UnreachableAgent> {
    let text = |text: &str| shared.plan.redactor.text(text).into_owned();
    let agents = shared.agents.iter().zip(&shared.reachability);
    let unreachable = agents.filter_map(|(agent, reachability)| {
        let mut error = text(&reachability.error()?);
        truncate_message(&mut error);
        Some(UnreachableAgent { agent: text(&agent.identity()), error, not_run: reachability.not_run() })
    });
    unreachable.collect()
}

/// Checks the gates for each agent.
fn check_gates(shared: &SharedState, metrics: &[GateMetrics]) -> Vec<GateResult> {
    let plan = &shared.plan;
    let Some(gates) = &plan.gates else {
        return Vec::new();
    };
    let name = |agent: &Arc<dyn Agent>| plan.redactor.text(&agent.identity()).into_owned();
    let has_several_agents = shared.agents.len() > 1;
    let check_agent = |(agent, metrics): (&Arc<dyn Agent>, &GateMetrics)| {
        check(gates, has_several_agents.then(|| name(agent)).as_deref(), metrics)
    };
    shared.agents.iter().zip(metrics).flat_map(check_agent).collect()
}

/// Lists all trials of the run; the trials of a case are adjacent.
fn list_units(plan: &Plan, samples: &mut Samples) -> Vec<Unit> {
    let trials = u32::try_from(plan.trials.max(1)).unwrap_or(u32::MAX);
    let mut units = Vec::new();
    for (suite_plan, suite) in plan.suites.iter().zip(0..) {
        for (case, index) in suite_plan.file.cases.iter().zip(0..) {
            let first = samples.reserve(suite_plan.agent, case, trials);
            units.extend((0..trials).map(|trial| Unit { suite, index, trial, sample: first.saturating_add(trial) }));
        }
    }
    units
}

/// The progress of a run: finished cases, and the suite that is reported next.
struct RunProgress<'a> {
    shared: &'a SharedState,
    suites: Vec<SuiteState>,
    /// The first suite that has not been reported.
    next_suite: usize,
    /// Number of trials that have not finished.
    pending: usize,
    timestamp: String,
    totals: RunTotals,
    /// For each agent.
    metrics: Vec<GateMetrics>,
    /// For each reported suite, whether all cases passed.
    passed: Vec<bool>,
}

struct FinishedSuites {
    totals: RunTotals,
    /// For each suite, whether all cases passed.
    passed: Vec<bool>,
    /// For each agent.
    metrics: Vec<GateMetrics>,
}

struct SuiteState {
    header: Arc<SuiteHeader>,
    results: Vec<Option<Arc<CaseResult>>>,
    /// Finished trials of unfinished cases, by case; empty if there is one trial per case.
    trials: BTreeMap<usize, Vec<(usize, CaseResult)>>,
    /// Number of cases that have not finished.
    pending: usize,
    /// Start of the first case and end of the last one.
    span: Option<(Instant, Instant)>,
}

impl SuiteState {
    fn finish(&mut self, suite: usize, index: usize, result: CaseResult) -> RunEvent {
        let result = Arc::new(result);
        self.results[index] = Some(Arc::clone(&result));
        self.pending -= 1;
        RunEvent::CaseFinished { suite, index, result }
    }
}

impl<'a> RunProgress<'a> {
    fn new(shared: &'a SharedState, headers: Vec<Arc<SuiteHeader>>, timestamp: String) -> Self {
        let suites = headers
            .into_iter()
            .map(|header| SuiteState {
                results: vec![None; header.selected],
                trials: BTreeMap::new(),
                pending: header.selected,
                span: None,
                header,
            })
            .collect();
        let metrics = vec![GateMetrics::default(); shared.agents.len()];
        let (pending, mut totals) = (shared.units.len(), RunTotals::default());
        totals.add_missing(&shared.plan.baseline_missing);
        Self { shared, suites, next_suite: 0, pending, timestamp, totals, metrics, passed: Vec::new() }
    }

    fn record(&mut self, finished: FinishedTrial, sink: &mut impl RunSink) {
        let FinishedTrial { suite, index, trial, started, ended, result } = finished;
        let planned = self.shared.plan.trials.max(1);
        let state = &mut self.suites[suite];
        let (begin, end) = state.span.unwrap_or((started, ended));
        state.span = Some((begin.min(started), end.max(ended)));
        self.pending -= 1;
        let result = if planned == 1 {
            Some(result)
        } else {
            let trials = state.trials.entry(index).or_default();
            trials.push((trial, result));
            let is_complete = trials.len() == planned;
            let trials = is_complete.then(|| state.trials.remove(&index)).flatten();
            trials.and_then(|trials| combine_trials(trials, planned))
        };
        if let Some(result) = result {
            sink.emit(state.finish(suite, index, result));
        }
        while self.suites.get(self.next_suite).is_some_and(|state| state.pending == 0) {
            self.finish_suite(sink);
        }
    }

    /// Reports the remaining suites, complete or not.
    fn finish(mut self, sink: &mut impl RunSink) -> FinishedSuites {
        let planned = self.shared.plan.trials;
        for suite in 0..self.suites.len() {
            // Cases with some unfinished trials are reported with the finished ones.
            for (index, trials) in std::mem::take(&mut self.suites[suite].trials) {
                if let Some(result) = combine_trials(trials, planned) {
                    sink.emit(self.suites[suite].finish(suite, index, result));
                }
            }
        }
        while self.next_suite < self.suites.len() {
            self.finish_suite(sink);
        }
        FinishedSuites { totals: self.totals, passed: self.passed, metrics: self.metrics }
    }

    fn finish_suite(&mut self, sink: &mut impl RunSink) {
        let suite = self.next_suite;
        self.next_suite += 1;
        let mut result = self.suite_result(suite);
        let baseline = self.shared.plan.suites[suite].baseline.as_ref();
        let compared = baseline.map(|baseline| {
            let Baseline { run_id, cases, removed } = baseline;
            compare_with_baseline(&mut result, run_id, cases, removed)
        });
        let result = Arc::new(result);
        // Frees the results, which are now part of the event.
        self.suites[suite].results = Vec::new();
        self.totals.add(&result);
        if self.shared.plan.gates.is_some() {
            let metrics = &mut self.metrics[self.shared.plan.suites[suite].agent];
            metrics.add(&result, compared.unwrap_or_default());
        }
        let (passed, selected) = (result.summary.passed, self.suites[suite].header.selected);
        // If all cases are skipped, none passed.
        self.passed.push(passed == selected && (passed > 0 || result.summary.skipped == 0));
        sink.emit(RunEvent::SuiteFinished { suite, result });
    }

    /// Returns the result of a suite, without a comparison.
    fn suite_result(&self, suite: usize) -> SuiteResult {
        let plan = &self.shared.plan;
        let (suite_plan, state, agent) = (&plan.suites[suite], &self.suites[suite], self.shared.agent(suite));
        let mut parameters = agent.parameters();
        plan.redactor.map(&mut parameters);
        let cases: Vec<Arc<CaseResult>> = state.results.iter().flatten().cloned().collect();
        let unused_stubs = count_unused_stubs(suite_plan.file.cases.iter(), agent);
        let redacted = |text: &str| plan.redactor.text(text).into_owned();
        let skipped = suite_plan.skipped.iter().map(|case| SkippedCase {
            id: redacted(&case.id),
            description: redacted(&case.description),
            reason: redacted(&case.reason),
        });
        let not_run = suite_plan.file.cases.iter().zip(&state.results);
        let not_run = not_run.filter(|(_, result)| result.is_none()).map(|(case, _)| case);
        SuiteResult {
            run_id: plan.run_id.clone(),
            timestamp: self.timestamp.clone(),
            tier: suite_plan.file.tier,
            tool_name: suite_plan.tool_name().to_owned(),
            agent_endpoint: plan.redactor.text(&agent.identity()).into_owned(),
            metadata: ResultMetadata {
                tool_version: suite_plan.current.version.clone(),
                description_hash: suite_plan.current.description_hash.clone(),
                registry_size: suite_plan.current.registry_size,
                eval_file_hash: suite_plan.file.hash.clone(),
                eval_file: suite_plan.project_path.clone(),
                tokenizer: plan.tokenizer.name().to_owned(),
                parameters,
            },
            staleness_warnings: state.header.staleness.iter().map(Staleness::warning).collect(),
            stale: state.header.staleness.iter().any(Staleness::is_stale),
            warnings: suite_warnings(unused_stubs, &cases),
            suites: (plan.suites.len() > 1).then_some(plan.suites.len()),
            skipped: skipped.collect(),
            not_run: not_run.map(|case| redacted(&case.id)).collect(),
            summary: Summary::from_cases(&cases, state.header.selected, suite_plan.skipped.len()),
            wall_clock_ms: state.span.map_or(0, |(begin, end)| millis_between(begin, end)),
            baseline_run_id: None,
            regressions: Vec::new(),
            new_passes: Vec::new(),
            still_failing: Vec::new(),
            baseline_missing: None,
            shard: plan.shard.map(|shard| ShardPart {
                number: shard.number,
                count: shard.count,
                suite: suite + 1,
                suites: plan.suites.len(),
                cases: suite_plan.all_selected.iter().map(|(id, _)| redacted(id)).collect(),
                lines: suite_plan.all_selected.iter().map(|(_, line)| *line).collect(),
                unused_stubs,
                inconclusive: 0,
                compared: 0,
            }),
            cases,
        }
    }
}

fn combine_trials(mut trials: Vec<(usize, CaseResult)>, planned: usize) -> Option<CaseResult> {
    trials.sort_by_key(|(trial, _)| *trial);
    combine(trials.into_iter().map(|(_, result)| result).collect(), planned)
}
