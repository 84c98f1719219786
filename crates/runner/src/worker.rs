//! Takes case after case, asks the agent, judges the answer.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use karat_core::assertion::{Evidence, Judging};
use karat_core::case::Case;
use karat_core::judgement::{Conclusion, ErrorKind, EvalError, Judgement};
use karat_core::port::{Agent, AgentError, Ask, Pending};
use karat_core::result::CaseResult;
use karat_core::trace::Trace;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span, debug, debug_span, field};

use crate::case::{CaseEnd, case_result};
use crate::plan::Plan;
use crate::stopwatch::Stopwatch;

/// What all workers see.
pub(crate) struct Shared {
    pub(crate) plan: Plan,
    pub(crate) agents: Vec<Arc<dyn Agent>>,
    /// Everything that is asked, in order.
    pub(crate) units: Vec<Unit>,
    pub(crate) next: AtomicUsize,
    /// Set when no further case is to begin.
    pub(crate) stop: AtomicBool,
}

/// One try of one case.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit {
    pub(crate) suite: u32,
    pub(crate) index: u32,
    pub(crate) trial: u32,
    /// How often the same was asked before in this run.
    pub(crate) sample: u32,
}

/// A try of a case that ended.
pub(crate) struct Finished {
    pub(crate) suite: usize,
    pub(crate) index: usize,
    pub(crate) trial: usize,
    pub(crate) started: Instant,
    pub(crate) ended: Instant,
    pub(crate) result: CaseResult,
}

pub(crate) async fn work(shared: Arc<Shared>, out: mpsc::UnboundedSender<Finished>, cancel: CancellationToken) {
    let cancelled = cancel.cancelled();
    tokio::pin!(cancelled);
    while !shared.stop.load(Ordering::Relaxed) {
        let Some(&unit) = shared.units.get(shared.next.fetch_add(1, Ordering::Relaxed)) else {
            return;
        };
        let (suite, index, trial) = (unit.suite as usize, unit.index as usize, unit.trial as usize);
        let started = Instant::now();
        // Cancelled while asking: the case has not ended, so there is nothing to report.
        let result = tokio::select! {
            biased;
            () = &mut cancelled => return,
            result = run_case(&shared, unit).instrument(shared.span(unit)) => result,
        };
        // Here and not by the dispatcher, so that no case begins in the meantime.
        if shared.plan.fail_fast && !result.passed {
            shared.stop.store(true, Ordering::Relaxed);
        }
        if out.send(Finished { suite, index, trial, started, ended: Instant::now(), result }).is_err() {
            return;
        }
    }
}

async fn run_case(shared: &Arc<Shared>, unit: Unit) -> CaseResult {
    let (suite, index) = (unit.suite as usize, unit.index as usize);
    let case = shared.case(suite, index);
    let watch = Stopwatch::start();
    let ask = Ask { case, sample: unit.sample, waiting: &watch };
    let agent = shared.agent(suite);
    let give_up = |error: &AgentError| agent.given_up(ask, error);
    let end = match within(shared.plan.timeout, &watch, || agent.answer(ask), give_up).await {
        Err(error) => {
            if error.ends_run() {
                shared.stop.store(true, Ordering::Relaxed);
            }
            CaseEnd::of(error)
        }
        // A pattern or an eval function can take a while, in which other cases' answers must not wait to be received.
        Ok(trace) if case.expect.takes_time() => {
            let judging = Arc::clone(shared);
            let span = Span::current();
            let judge = move || span.in_scope(|| judging.judge(suite, index, trace));
            let judged = tokio::task::spawn_blocking(judge).await;
            judged.unwrap_or_else(|error| CaseEnd::internal(error.to_string(), watch.elapsed()))
        }
        Ok(trace) => shared.judge(suite, index, trace),
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

/// Waits for an answer until the watch reaches the timeout; whoever was asked is told if it was given up.
pub(crate) async fn within<'a, A>(
    timeout: Duration,
    watch: &Stopwatch,
    ask: impl FnOnce() -> Pending<'a, Result<A, AgentError>>,
    give_up: impl FnOnce(&AgentError),
) -> Result<A, AgentError> {
    // The call itself may panic too, not only what it returns.
    let answer = AssertUnwindSafe(async { ask().await }).catch_unwind();
    let error = tokio::select! {
        biased;
        answered = answer => match answered {
            Ok(outcome) => return outcome,
            Err(panic) => AgentError::new(internal(panic.as_ref()), watch.elapsed()),
        },
        () = watch.reaches(timeout) => AgentError::timeout(watch.elapsed()),
    };
    // Whoever panicked may do so again; the error is known already.
    let _ = catch_unwind(AssertUnwindSafe(|| give_up(&error)));
    Err(error)
}

impl Shared {
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
            let mut judging = Judging::begin(evidence, self.plan.strictness);
            if judging.wants().is_some() {
                // The time of functions is nobody's latency and no part of the timeout: they have a limit of their own.
                let functions = self.plan.functions.as_deref();
                let document = trace.document(&case.id, &case.input.message);
                while let Some(name) = judging.wants() {
                    judging.hear(functions.map_or_else(no_functions, |functions| functions.judge(name, &document)));
                }
            }
            judging.end()
        }));
        match verdict {
            Ok(verdict) => CaseEnd::Judged(Box::new((trace, verdict))),
            Err(panic) => {
                let elapsed = Duration::from_secs_f64((trace.latency_ms / 1000.0).max(0.0));
                CaseEnd::internal(internal(panic.as_ref()), elapsed)
            }
        }
    }
}

/// What counts where nobody can run functions: nothing passes because nobody looked.
fn no_functions() -> Judgement {
    let error = EvalError::new(ErrorKind::Validation, "this run was not given any eval functions");
    Judgement {
        conclusion: Conclusion::Error(error),
        elapsed: Duration::ZERO,
        stdout: String::new(),
        stderr: String::new(),
    }
}

fn internal(panic: &(dyn Any + Send)) -> String {
    let what = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("unknown");
    format!("internal error, please report it: {what}")
}
