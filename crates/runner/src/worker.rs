//! Workers, which call the agent for one case after the other and judge the answers.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use karat_core::assertion::{Evidence, Mode, PendingVerdict, Verdict, response_marks};
use karat_core::case::Case;
use karat_core::conversation::Exchange;
use karat_core::judgement::{Conclusion, ErrorKind, EvalError, Judgement};
use karat_core::port::{Agent, AgentError, BoxFuture, TrialContext};
use karat_core::result::{CaseDetails, CaseResult};
use karat_core::trace::Trace;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span, debug, debug_span, field};

use crate::case::{CaseEnd, Judged, case_result};
use crate::conversation::{Dialog, run_conversation};
use crate::plan::Plan;
use crate::reachability::Reachability;
use crate::stopwatch::Stopwatch;

/// The state that all workers share.
pub(crate) struct Shared {
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
    shared: Arc<Shared>,
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

async fn run_case(shared: &Arc<Shared>, number: usize, unit: Unit) -> CaseResult {
    let (suite, index) = (unit.suite as usize, unit.index as usize);
    let case = shared.case(suite, index);
    let watch = Stopwatch::start();
    let reachability = &shared.reachability[shared.plan.suites[suite].agent];
    if reachability.skips_call() {
        return case_result(case, CaseEnd::not_run(), &shared.plan.redactor);
    }
    let run_id = &shared.plan.run_id;
    let has_turns = case.has_turns();
    let trial = TrialContext { run_id, number, case, sample: unit.sample, has_turns, wait_observer: &watch };
    let end = if has_turns {
        run_conversation(shared, unit, trial, &watch).await
    } else {
        run_single_message(shared, unit, trial, &watch).await
    };
    let result = case_result(case, end, &shared.plan.redactor);
    debug!(
        outcome = ?result.outcome,
        cause = result.cause.map(field::debug),
        duration_ms = result.duration_ms,
        error = result.error.as_deref().map(field::display),
        "case finished"
    );
    result
}

/// Sends the message of a case and judges the answer.
async fn run_single_message(
    shared: &Arc<Shared>,
    unit: Unit,
    trial: TrialContext<'_>,
    watch: &Stopwatch,
) -> CaseEnd {
    let (suite, index, case) = (unit.suite as usize, unit.index as usize, trial.case);
    let answer = Dialog::start(shared.agent(suite), trial, shared.plan.timeout, watch).send(case.message(0)).await;
    shared.reachability[shared.plan.suites[suite].agent].record(&answer);
    match answer {
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
    }
}

/// A call that timed out or panicked, with the error that replaces its result.
pub(crate) struct Abandoned(AgentError);

impl Abandoned {
    /// Leaves out the time before the call.
    pub(crate) fn after(self, before: Duration) -> Self {
        Self(AgentError { elapsed: self.0.elapsed.saturating_sub(before), ..self.0 })
    }

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
) -> Result<Result<A, AgentError>, Abandoned> {
    // `call` itself may panic, not only its future.
    let answer = AssertUnwindSafe(async { call().await }).catch_unwind();
    tokio::select! {
        biased;
        result = answer => {
            result.map_err(|panic| Abandoned(AgentError::new(panic_message(panic.as_ref()), watch.elapsed())))
        }
        () = watch.sleep_until(timeout) => Err(Abandoned(AgentError::timeout(watch.elapsed()))),
    }
}

impl Shared {
    fn span(&self, unit: Unit) -> Span {
        let case = self.case(unit.suite as usize, unit.index as usize);
        debug_span!("case", id = %case.id, trial = unit.trial + 1)
    }

    pub(crate) fn case(&self, suite: usize, index: usize) -> &Case {
        &self.plan.suites[suite].file.cases[index]
    }

    pub(crate) fn agent(&self, suite: usize) -> &dyn Agent {
        self.agents[self.plan.suites[suite].agent].as_ref()
    }

    fn judge(&self, suite: usize, index: usize, trace: Trace) -> CaseEnd {
        let case = self.case(suite, index);
        let document = || CaseDetails::from(trace.clone()).document(&case.id, case.message(0), None).to_value();
        let part = Part { case, trace: &trace, earlier: &[], mode: self.agent(suite).mode(case) };
        match self.judge_part(part, document, PendingVerdict::finish) {
            Ok(verdict) => {
                let marks = response_marks(&case.expect, &self.plan.tokens, &verdict);
                let duration_ms = trace.latency_ms;
                CaseEnd::Judged(Box::new(Judged { trace, verdict, turns: Vec::new(), marks, duration_ms }))
            }
            Err(message) => {
                let elapsed = Duration::from_secs_f64((trace.latency_ms / 1000.0).max(0.0));
                CaseEnd::internal(message, elapsed)
            }
        }
    }

    /// Judges a case or a part of it; `document` returns the trace document for eval functions. Returns the message of a
    /// panic as an error.
    pub(crate) fn judge_part<'p>(
        &'p self,
        part: Part<'p>,
        document: impl Fn() -> Value,
        finish: impl FnOnce(PendingVerdict<'p>) -> Verdict,
    ) -> Result<Verdict, String> {
        let judged = catch_unwind(AssertUnwindSafe(|| {
            let Part { case, trace, earlier, mode } = part;
            let evidence = Evidence {
                case,
                trace,
                earlier,
                mode,
                tokens: &self.plan.tokens,
                registry: self.plan.registry.as_ref(),
                tokenizer: self.plan.tokenizer,
            };
            let mut pending = PendingVerdict::start(evidence, self.plan.strictness);
            if pending.next_eval().is_some() {
                // Eval functions have their own time limit; they count neither as latency nor towards the timeout.
                let functions = self.plan.functions.as_deref();
                let document = document();
                while let Some(name) = pending.next_eval() {
                    pending
                        .record_eval(functions.map_or_else(no_functions, |functions| functions.judge(name, &document)));
                }
            }
            finish(pending)
        }));
        judged.map_err(|panic| panic_message(panic.as_ref()))
    }
}

/// What is judged at once: a case, or a turn as a case of its own.
pub(crate) struct Part<'p> {
    pub(crate) case: &'p Case,
    pub(crate) trace: &'p Trace,
    /// The conversation before the turn.
    pub(crate) earlier: &'p [Exchange],
    pub(crate) mode: Mode,
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
