//! Workers, which call the agent for one case after the other and judge the answers.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use karat_core::assertion::{Evidence, PendingVerdict};
use karat_core::case::Case;
use karat_core::judgement::{Conclusion, ErrorKind, EvalError, Judgement};
use karat_core::port::{Agent, AgentError, BoxFuture, TrialContext};
use karat_core::result::{CaseDetails, CaseResult};
use karat_core::trace::Trace;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span, debug, debug_span, field};

use crate::case::{CaseEnd, case_result};
use crate::plan::Plan;
use crate::reachability::Reachability;
use crate::stopwatch::Stopwatch;

/// The state that all workers share.
pub(crate) struct SharedState {
    pub(crate) plan: Plan,
    pub(crate) agents: Vec<Arc<dyn Agent>>,
    /// All trials of the run, in order.
    pub(crate) units: Vec<Unit>,
    /// For each agent.
    pub(crate) reachability: Vec<Reachability>,
    pub(crate) next: AtomicUsize,
    /// Set to prevent further cases from starting.
    pub(crate) stop: AtomicBool,
}

/// One trial of a case.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit {
    pub(crate) suite: u32,
    pub(crate) index: u32,
    pub(crate) trial: u32,
    /// The number of equal requests before this one in the run.
    pub(crate) sample: u32,
}

pub(crate) struct FinishedTrial {
    pub(crate) suite: usize,
    pub(crate) index: usize,
    pub(crate) trial: usize,
    pub(crate) started: Instant,
    pub(crate) ended: Instant,
    pub(crate) result: CaseResult,
}

pub(crate) async fn run_worker(
    shared: Arc<SharedState>,
    out: mpsc::UnboundedSender<FinishedTrial>,
    cancel: CancellationToken,
) {
    let cancelled = cancel.cancelled();
    tokio::pin!(cancelled);
    while !shared.stop.load(Ordering::Relaxed) {
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        let Some(&unit) = shared.units.get(number) else {
            return;
        };
        let (suite, index, trial) = (unit.suite as usize, unit.index as usize, unit.trial as usize);
        let started = Instant::now();
        // A cancelled case has not finished and is not reported.
        let result = tokio::select! {
            biased;
            () = &mut cancelled => return,
            result = run_case(&shared, number, unit).instrument(shared.span(unit)) => result,
        };
        // Not in the dispatcher, so that no case starts in the meantime.
        if shared.plan.fail_fast && !result.passed {
            shared.stop.store(true, Ordering::Relaxed);
        }
        if out.send(FinishedTrial { suite, index, trial, started, ended: Instant::now(), result }).is_err() {
            return;
        }
    }
}

async fn run_case(shared: &Arc<SharedState>, number: usize, unit: Unit) -> CaseResult {
    let (suite, index) = (unit.suite as usize, unit.index as usize);
    let case = shared.case(suite, index);
    let watch = Stopwatch::start();
    let reachability = &shared.reachability[shared.plan.suites[suite].agent];
    if reachability.skips_call() {
        return case_result(case, CaseEnd::not_run(), &shared.plan.tokens, &shared.plan.redactor);
    }
    let run_id = &shared.plan.run_id;
    let trial = TrialContext { run_id, number, case, sample: unit.sample, has_turns: false, wait_observer: &watch };
    let answer = converse(shared.agent(suite), trial, shared.plan.timeout, &watch).await;
    reachability.record(&answer);
    let end = match answer {
        Err(error) => {
            if error.ends_run() {
                shared.stop.store(true, Ordering::Relaxed);
            }
            CaseEnd::from_agent_error(error)
        }
        // Patterns and eval functions can be slow and must not block the async runtime.
        Ok(trace) if case.expect.is_slow_to_judge() => {
            let state = Arc::clone(shared);
            let span = Span::current();
            let judge = move || span.in_scope(|| state.judge(suite, index, trace));
            let judged = tokio::task::spawn_blocking(judge).await;
            judged.unwrap_or_else(|error| CaseEnd::internal(error.to_string(), watch.elapsed()))
        }
        Ok(trace) => shared.judge(suite, index, trace),
    };
    let result = case_result(case, end, &shared.plan.tokens, &shared.plan.redactor);
    debug!(
        outcome = ?result.outcome,
        cause = result.cause.map(field::debug),
        duration_ms = result.duration_ms,
        error = result.error.as_deref().map(field::display),
        "case finished"
    );
    result
}

/// Sends the message of a case to an agent and awaits the answer until the timeout.
pub(crate) async fn converse(
    agent: &dyn Agent,
    trial: TrialContext<'_>,
    timeout: Duration,
    watch: &Stopwatch,
) -> Result<Trace, AgentError> {
    let message = &trial.case.input.message;
    let mut conversation = agent.start(trial);
    let answer = with_timeout(timeout, watch, || conversation.send(message)).await;
    answer.unwrap_or_else(|abandoned| abandoned.notify(|error| conversation.on_abandoned(message, error)))
}

/// A call that timed out or panicked, with the error that replaces its result.
pub(crate) struct AbandonedCall(AgentError);

impl AbandonedCall {
    /// Notifies the callee and returns the error.
    pub(crate) fn notify<A>(self, on_abandoned: impl FnOnce(&AgentError)) -> Result<A, AgentError> {
        // The callback may panic too; the error is already known.
        let _ = catch_unwind(AssertUnwindSafe(|| on_abandoned(&self.0)));
        Err(self.0)
    }
}

/// Awaits a call until the timeout.
pub(crate) async fn with_timeout<'a, A>(
    timeout: Duration,
    watch: &Stopwatch,
    call: impl FnOnce() -> BoxFuture<'a, Result<A, AgentError>>,
) -> Result<Result<A, AgentError>, AbandonedCall> {
    // `call` itself may panic, not only its future.
    let answer = AssertUnwindSafe(async { call().await }).catch_unwind();
    tokio::select! {
        biased;
        result = answer => {
            result.map_err(|panic| AbandonedCall(AgentError::new(panic_message(panic.as_ref()), watch.elapsed())))
        }
        () = watch.sleep_until(timeout) => Err(AbandonedCall(AgentError::timeout(watch.elapsed()))),
    }
}

impl SharedState {
    fn span(&self, unit: Unit) -> Span {
        let case = self.case(unit.suite as usize, unit.index as usize);
        debug_span!("case", id = %case.id, trial = unit.trial + 1)
    }

    fn case(&self, suite: usize, index: usize) -> &Case {
        &self.plan.suites[suite].file.cases[index]
    }

    pub(crate) fn agent(&self, suite: usize) -> &dyn Agent {
        self.agents[self.plan.suites[suite].agent].as_ref()
    }

    fn judge(&self, suite: usize, index: usize, trace: Trace) -> CaseEnd {
        let case = self.case(suite, index);
        let verdict = catch_unwind(AssertUnwindSafe(|| {
            let evidence = Evidence {
                case,
                trace: &trace,
                mode: self.agent(suite).mode(case),
                tokens: &self.plan.tokens,
                registry: self.plan.registry.as_ref(),
                tokenizer: self.plan.tokenizer,
            };
            let mut pending = PendingVerdict::start(evidence, self.plan.strictness);
            if pending.next_eval().is_some() {
                // Eval functions have their own time limit; they count neither as latency nor towards the timeout.
                let functions = self.plan.functions.as_deref();
                let details = CaseDetails::from(trace.clone());
                let document = details.document(&case.id, &case.input.message, None).to_value();
                while let Some(name) = pending.next_eval() {
                    pending
                        .record_eval(functions.map_or_else(no_functions, |functions| functions.judge(name, &document)));
                }
            }
            pending.finish()
        }));
        match verdict {
            Ok(verdict) => CaseEnd::Judged(Box::new((trace, verdict))),
            Err(panic) => {
                let elapsed = Duration::from_secs_f64((trace.latency_ms / 1000.0).max(0.0));
                CaseEnd::internal(panic_message(panic.as_ref()), elapsed)
            }
        }
    }
}

/// Returns the judgement of a run without eval functions: an error, so that the case does not pass.
fn no_functions() -> Judgement {
    let error = EvalError::new(ErrorKind::Validation, "this run has no eval functions");
    Judgement {
        conclusion: Conclusion::Error(error),
        elapsed: Duration::ZERO,
        stdout: String::new(),
        stderr: String::new(),
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let message = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("unknown");
    format!("internal error, please report it: {message}")
}
