//! Orders what the workers say into one stream of events, and makes the suites' results.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Duration;

use karat_core::assertion::Mode;
use karat_core::diff::{Change, diff_cases, ids_of};
use karat_core::event::{RunEvent, RunTotals, SuiteHeader};
use karat_core::port::{Agent, Clock};
use karat_core::result::{CaseResult, EarlierCase, ResultMetadata, SuiteResult, Summary};
use karat_core::staleness::Staleness;
use karat_core::text::shorten;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::plan::{Plan, SuitePlan};
use crate::reporters::Reporters;
use crate::worker::{Finished, Shared, work};

/// How many cases are reported at a time, and how long the next ones gather; no eye sees the difference.
const BATCH: usize = 1024;
const PAUSE: Duration = Duration::from_millis(5);

/// Runs a plan to its end, or until `cancel` turns true; what finished by then is reported as usual.
pub async fn run(
    plan: Plan,
    agent: Arc<dyn Agent>,
    clock: &dyn Clock,
    cancel: watch::Receiver<bool>,
    reporters: &mut Reporters,
) -> RunTotals {
    let begun = Instant::now();
    let timestamp = clock.now().to_string();
    let headers: Vec<Arc<SuiteHeader>> = plan.suites.iter().map(|suite| Arc::new(suite.header())).collect();
    let units = units(&plan);
    let workers = plan.concurrency.clamp(1, units.len().max(1));
    reporters.emit(&RunEvent::RunStarted {
        run_id: plan.run_id.clone(),
        suites: headers.clone(),
        total_cases: units.len(),
    });
    let (out, mut finished) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared { plan, agent, units, next: AtomicUsize::new(0), stop: AtomicBool::new(false) });
    // In a set, so that whoever lets go of the run ends its workers too.
    let mut working = JoinSet::new();
    for _ in 0..workers {
        working.spawn(work(Arc::clone(&shared), out.clone(), cancel.clone()));
    }
    drop(out);

    let mut board = Board::new(&shared, headers, timestamp);
    let mut batch = Vec::new();
    while finished.recv_many(&mut batch, BATCH).await > 0 {
        for one in batch.drain(..) {
            board.take(one, reporters);
        }
        reporters.flush();
        // Not to be woken for every case: a fast agent ends thousands in a second.
        if board.missing > 0 {
            sleep(PAUSE).await;
        }
    }
    let interrupted = *cancel.borrow();
    let totals = board.close(reporters, begun, interrupted);
    reporters.emit(&RunEvent::RunFinished { run_id: shared.plan.run_id.clone(), totals: totals.clone() });
    reporters.flush();
    totals
}

fn units(plan: &Plan) -> Vec<(u32, u32)> {
    let mut units = Vec::new();
    for (suite, index) in plan.suites.iter().zip(0..) {
        units.extend(suite.file.cases.iter().zip(0..).map(|(_, case)| (index, case)));
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
}

struct SuiteState {
    header: Arc<SuiteHeader>,
    results: Vec<Option<Arc<CaseResult>>>,
    missing: usize,
    /// The first case's start and the last one's end.
    span: Option<(Instant, Instant)>,
}

impl<'b> Board<'b> {
    fn new(shared: &'b Shared, headers: Vec<Arc<SuiteHeader>>, timestamp: String) -> Self {
        let suites = headers
            .into_iter()
            .map(|header| SuiteState {
                results: vec![None; header.selected],
                missing: header.selected,
                span: None,
                header,
            })
            .collect();
        Self { shared, suites, open: 0, missing: shared.units.len(), timestamp, totals: RunTotals::default() }
    }

    fn take(&mut self, finished: Finished, reporters: &mut Reporters) {
        let Finished { suite, index, started, ended, result } = finished;
        let result = Arc::new(result);
        let state = &mut self.suites[suite];
        let (begin, end) = state.span.unwrap_or((started, ended));
        state.span = Some((begin.min(started), end.max(ended)));
        state.results[index] = Some(Arc::clone(&result));
        state.missing -= 1;
        self.missing -= 1;
        reporters.emit(&RunEvent::CaseFinished { suite, index, result });
        while self.suites.get(self.open).is_some_and(|state| state.missing == 0) {
            self.finish_suite(reporters);
        }
    }

    /// Reports what is left after the last case, finished or not.
    fn close(mut self, reporters: &mut Reporters, begun: Instant, interrupted: bool) -> RunTotals {
        while self.open < self.suites.len() {
            self.finish_suite(reporters);
        }
        self.totals.wall_clock_ms = millis(begun, Instant::now());
        self.totals.interrupted = interrupted;
        self.totals
    }

    fn finish_suite(&mut self, reporters: &mut Reporters) {
        let suite = self.open;
        self.open += 1;
        let result = Arc::new(self.suite_result(suite));
        // The results live on in the event only.
        self.suites[suite].results = Vec::new();
        self.totals.add(&result);
        reporters.emit(&RunEvent::SuiteFinished { suite, result });
    }

    fn suite_result(&self, suite: usize) -> SuiteResult {
        let plan = &self.shared.plan;
        let (suite_plan, state) = (&plan.suites[suite], &self.suites[suite]);
        let cases: Vec<Arc<CaseResult>> = state.results.iter().flatten().cloned().collect();
        let diffs = suite_plan.baseline.as_ref().map(|baseline| {
            let now: Vec<EarlierCase> = cases.iter().map(|case| EarlierCase::from(case.as_ref())).collect();
            diff_cases(&baseline.cases, &now)
        });
        let moved = |change| diffs.as_deref().map_or_else(Vec::new, |diffs| ids_of(diffs, change));
        SuiteResult {
            run_id: plan.run_id.clone(),
            timestamp: self.timestamp.clone(),
            tier: suite_plan.file.tier,
            tool_name: suite_plan.tool_name().to_owned(),
            agent_endpoint: plan.redactor.text(&self.shared.agent.identity()).into_owned(),
            metadata: ResultMetadata {
                tool_version: suite_plan.current.version.clone(),
                description_hash: suite_plan.current.description_hash.clone(),
                registry_size: suite_plan.current.registry_size,
                eval_file_hash: suite_plan.file.hash.clone(),
                eval_file: suite_plan.project_path.clone(),
                tokenizer: plan.tokenizer.name().to_owned(),
            },
            staleness_warnings: state.header.staleness.iter().map(Staleness::warning).collect(),
            stale: state.header.staleness.iter().any(Staleness::is_stale),
            warnings: self.warnings(suite_plan, &cases),
            summary: Summary::of(&cases, state.header.selected),
            wall_clock_ms: state.span.map_or(0, |(begin, end)| millis(begin, end)),
            baseline_run_id: suite_plan.baseline.as_ref().map(|baseline| baseline.run_id.clone()),
            regressions: moved(Change::Regression),
            new_passes: moved(Change::NewPass),
            cases,
        }
    }

    fn warnings(&self, suite: &SuitePlan, cases: &[Arc<CaseResult>]) -> Vec<String> {
        let mut warnings = Vec::new();
        let agent = &self.shared.agent;
        let stubbed = suite.file.cases.iter().filter(|case| case.stubs.is_some());
        let unused = stubbed.filter(|case| agent.mode(case) == Mode::Endpoint).count();
        if unused > 0 {
            warnings.push(format!(
                "{} stubs, which do not apply: the agent runs its own tools",
                counted(unused, "case has", "cases have")
            ));
        }
        let tokens: BTreeSet<&str> =
            cases.iter().flat_map(|case| &case.details.skipped_tokens).map(String::as_str).collect();
        if !tokens.is_empty() {
            let all = tokens.iter().copied().collect::<Vec<_>>().join(", ");
            let count = counted(tokens.len(), "token", "tokens");
            warnings.push(format!("checks were skipped for {count} without a value: {}", shorten(&all, 200)));
        }
        let reasons: BTreeSet<&str> =
            cases.iter().flat_map(|case| &case.details.warnings).map(String::as_str).collect();
        warnings.extend(reasons.into_iter().take(5).map(str::to_owned));
        warnings
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

fn millis(begin: Instant, end: Instant) -> u64 {
    u64::try_from(end.saturating_duration_since(begin).as_millis()).unwrap_or(u64::MAX)
}
