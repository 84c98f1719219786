//! Orders what the workers say into one stream of events, and makes the suites' results.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Duration;

use karat_core::diff::{CaseDiff, Change, diff_cases, doubtful, ids_of};
use karat_core::event::{RunEvent, RunTotals, SuiteHeader};
use karat_core::gate::{Figures, GateResult, check};
use karat_core::port::{Agent, Clock};
use karat_core::result::combine;
use karat_core::result::{CaseResult, EarlierCase, ResultMetadata, SuiteResult, Summary};
use karat_core::staleness::Staleness;
use karat_json::text::shorten;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, debug, instrument};

use crate::plan::{Plan, SuitePlan};
use crate::rubric::run_rubrics;
use crate::sample::Samples;
use crate::sink::{RunSink, while_working};
use crate::stopwatch::millis;
use crate::stubs::{counted, unused_stubs};
use crate::worker::{Finished, Shared, Unit, work};

/// How many cases are reported at a time, and how long the next ones gather; no eye sees the difference.
const BATCH: usize = 1024;
const PAUSE: Duration = Duration::from_millis(5);

/// Runs a plan to its end, or until it is cancelled; what finished by then is reported as usual.
#[instrument(level = "debug", name = "run", skip_all, fields(id = %plan.run_id))]
pub async fn run(
    plan: Plan,
    agents: Vec<Arc<dyn Agent>>,
    clock: &dyn Clock,
    cancel: &CancellationToken,
    sink: &mut impl RunSink,
) -> RunTotals {
    let begun = Instant::now();
    let timestamp = clock.now().to_string();
    let headers = headers(&plan, &agents);
    let cases: usize = plan.suites.iter().map(|suite| suite.file.cases.len()).sum();
    let mut samples = Samples::new(&plan, &agents);
    let units = units(&plan, &mut samples);
    let workers = plan.concurrency.clamp(1, units.len().max(1));
    debug!(cases, tries = units.len(), workers, "run started");
    sink.emit(RunEvent::RunStarted { run_id: plan.run_id.clone(), suites: headers.clone(), total_cases: cases });
    let (out, mut finished) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared { plan, agents, units, next: AtomicUsize::new(0), stop: AtomicBool::new(false) });
    // In a set, so that whoever lets go of the run ends its workers too.
    let mut working = JoinSet::new();
    for _ in 0..workers {
        working.spawn(work(Arc::clone(&shared), out.clone(), cancel.clone()).in_current_span());
    }
    drop(out);

    let mut board = Board::new(&shared, headers, timestamp.clone());
    let mut batch = Vec::new();
    while while_working(sink, finished.recv_many(&mut batch, BATCH)).await > 0 {
        for one in batch.drain(..) {
            board.take(one, sink);
        }
        sink.flush();
        // Not to be woken for every case: a fast agent ends thousands in a second.
        if board.missing > 0 {
            while_working(sink, sleep(PAUSE)).await;
        }
    }
    let Closed { mut totals, passed, mut figures } = board.close(sink);
    totals.rubric = run_rubrics(&shared, samples, &passed, &mut figures, &timestamp, cancel, sink).await;
    totals.gates = check_gates(&shared, &figures);
    totals.wall_clock_ms = millis(begun, Instant::now());
    totals.interrupted = cancel.is_cancelled();
    debug!(elapsed_ms = totals.wall_clock_ms, interrupted = totals.interrupted, "run finished");
    sink.emit(RunEvent::RunFinished { run_id: shared.plan.run_id.clone(), totals: totals.clone() });
    sink.flush();
    totals
}

fn headers(plan: &Plan, agents: &[Arc<dyn Agent>]) -> Vec<Arc<SuiteHeader>> {
    let name = |suite: &SuitePlan| plan.redactor.text(&agents[suite.agent].identity()).into_owned();
    let header = |suite: &SuitePlan| suite.header((agents.len() > 1).then(|| name(suite)), plan.trials.max(1));
    plan.suites.iter().map(|suite| Arc::new(header(suite))).collect()
}

/// Checks the limits for each agent that was asked.
fn check_gates(shared: &Shared, figures: &[Figures]) -> Vec<GateResult> {
    let plan = &shared.plan;
    let Some(gates) = &plan.gates else {
        return Vec::new();
    };
    let name = |agent: &Arc<dyn Agent>| plan.redactor.text(&agent.identity()).into_owned();
    let several = shared.agents.len() > 1;
    let of_agent =
        |(agent, figures): (&Arc<dyn Agent>, &Figures)| check(gates, several.then(|| name(agent)).as_deref(), figures);
    shared.agents.iter().zip(figures).flat_map(of_agent).collect()
}

/// Lists everything that is asked: all trials of a case one after the other.
fn units(plan: &Plan, samples: &mut Samples) -> Vec<Unit> {
    let trials = u32::try_from(plan.trials.max(1)).unwrap_or(u32::MAX);
    let mut units = Vec::new();
    for (suite_plan, suite) in plan.suites.iter().zip(0..) {
        for (case, index) in suite_plan.file.cases.iter().zip(0..) {
            let first = samples.take(suite_plan.agent, case, trials);
            units.extend((0..trials).map(|trial| Unit { suite, index, trial, sample: first.saturating_add(trial) }));
        }
    }
    units
}

/// The suites' state: which cases have ended, and which suite is to be reported next.
struct Board<'b> {
    shared: &'b Shared,
    suites: Vec<SuiteState>,
    /// The first suite that was not reported yet.
    open: usize,
    /// How many cases have not ended yet.
    missing: usize,
    timestamp: String,
    totals: RunTotals,
    /// What gates are checked against, for each agent.
    figures: Vec<Figures>,
    /// Of each suite that was reported, whether all of it passed.
    passed: Vec<bool>,
}

/// What is left of the board when all suites are reported.
struct Closed {
    totals: RunTotals,
    /// Of each suite, whether all of it passed.
    passed: Vec<bool>,
    figures: Vec<Figures>,
}

struct SuiteState {
    header: Arc<SuiteHeader>,
    results: Vec<Option<Arc<CaseResult>>>,
    /// The tries of cases that have not all ended, by case; unused where each is tried once.
    tries: BTreeMap<usize, Vec<(usize, CaseResult)>>,
    missing: usize,
    /// The first case's start and the last one's end.
    span: Option<(Instant, Instant)>,
}

impl SuiteState {
    fn finish(&mut self, suite: usize, index: usize, result: CaseResult) -> RunEvent {
        let result = Arc::new(result);
        self.results[index] = Some(Arc::clone(&result));
        self.missing -= 1;
        RunEvent::CaseFinished { suite, index, result }
    }
}

impl<'b> Board<'b> {
    fn new(shared: &'b Shared, headers: Vec<Arc<SuiteHeader>>, timestamp: String) -> Self {
        let suites = headers
            .into_iter()
            .map(|header| SuiteState {
                results: vec![None; header.selected],
                tries: BTreeMap::new(),
                missing: header.selected,
                span: None,
                header,
            })
            .collect();
        let figures = vec![Figures::default(); shared.agents.len()];
        let (missing, totals) = (shared.units.len(), RunTotals::default());
        Self { shared, suites, open: 0, missing, timestamp, totals, figures, passed: Vec::new() }
    }

    fn take(&mut self, finished: Finished, sink: &mut impl RunSink) {
        let Finished { suite, index, trial, started, ended, result } = finished;
        let planned = self.shared.plan.trials.max(1);
        let state = &mut self.suites[suite];
        let (begin, end) = state.span.unwrap_or((started, ended));
        state.span = Some((begin.min(started), end.max(ended)));
        self.missing -= 1;
        let result = if planned == 1 {
            Some(result)
        } else {
            let tries = state.tries.entry(index).or_default();
            tries.push((trial, result));
            (tries.len() == planned).then(|| state.tries.remove(&index)).flatten().and_then(|tries| one(tries, planned))
        };
        if let Some(result) = result {
            sink.emit(state.finish(suite, index, result));
        }
        while self.suites.get(self.open).is_some_and(|state| state.missing == 0) {
            self.finish_suite(sink);
        }
    }

    /// Reports what is left after the last case, finished or not.
    fn close(mut self, sink: &mut impl RunSink) -> Closed {
        let planned = self.shared.plan.trials;
        for suite in 0..self.suites.len() {
            // Tries that did end are not lost because others did not.
            for (index, tries) in std::mem::take(&mut self.suites[suite].tries) {
                if let Some(result) = one(tries, planned) {
                    sink.emit(self.suites[suite].finish(suite, index, result));
                }
            }
        }
        while self.open < self.suites.len() {
            self.finish_suite(sink);
        }
        Closed { totals: self.totals, passed: self.passed, figures: self.figures }
    }

    fn finish_suite(&mut self, sink: &mut impl RunSink) {
        let suite = self.open;
        self.open += 1;
        let diffs = self.diffs(suite);
        let result = Arc::new(self.suite_result(suite, &diffs));
        // The results live on in the event only.
        self.suites[suite].results = Vec::new();
        self.totals.add(&result);
        if self.shared.plan.gates.is_some() {
            let figures = &mut self.figures[self.shared.plan.suites[suite].agent];
            figures.add(&result);
            figures.doubtful += doubtful(&diffs);
        }
        self.passed.push(result.summary.passed == self.suites[suite].header.selected);
        sink.emit(RunEvent::SuiteFinished { suite, result });
    }

    /// Compares a suite with its baseline, if it has one.
    fn diffs(&self, suite: usize) -> Vec<CaseDiff> {
        let Some(baseline) = &self.shared.plan.suites[suite].baseline else {
            return Vec::new();
        };
        let cases = self.suites[suite].results.iter().flatten();
        let now: Vec<EarlierCase> = cases.map(|case| EarlierCase::from(case.as_ref())).collect();
        diff_cases(&baseline.cases, &now)
    }

    fn suite_result(&self, suite: usize, diffs: &[CaseDiff]) -> SuiteResult {
        let plan = &self.shared.plan;
        let (suite_plan, state, agent) = (&plan.suites[suite], &self.suites[suite], self.shared.agent(suite));
        let mut parameters = agent.parameters();
        plan.redactor.map(&mut parameters);
        let cases: Vec<Arc<CaseResult>> = state.results.iter().flatten().cloned().collect();
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
            warnings: warnings(suite_plan, agent, &cases),
            summary: Summary::of(&cases, state.header.selected),
            wall_clock_ms: state.span.map_or(0, |(begin, end)| millis(begin, end)),
            baseline_run_id: suite_plan.baseline.as_ref().map(|baseline| baseline.run_id.clone()),
            regressions: ids_of(diffs, Change::Regression),
            new_passes: ids_of(diffs, Change::NewPass),
            cases,
        }
    }
}

fn warnings(suite: &SuitePlan, agent: &dyn Agent, cases: &[Arc<CaseResult>]) -> Vec<String> {
    let mut warnings: Vec<String> = unused_stubs(suite.file.cases.iter(), agent).into_iter().collect();
    let details = || cases.iter().flat_map(|case| case.all_details());
    let tokens: BTreeSet<&str> = details().flat_map(|details| &details.skipped_tokens).map(String::as_str).collect();
    if !tokens.is_empty() {
        let all = tokens.iter().copied().collect::<Vec<_>>().join(", ");
        let count = counted(tokens.len(), "token", "tokens");
        warnings.push(format!("checks were skipped for {count} without a value: {}", shorten(&all, 200)));
    }
    let reasons: BTreeSet<&str> = details().flat_map(|details| &details.warnings).map(String::as_str).collect();
    warnings.extend(reasons.into_iter().take(5).map(str::to_owned));
    warnings
}

fn one(mut tries: Vec<(usize, CaseResult)>, planned: usize) -> Option<CaseResult> {
    tries.sort_by_key(|(trial, _)| *trial);
    combine(tries.into_iter().map(|(_, result)| result).collect(), planned)
}
