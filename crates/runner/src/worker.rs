//! Workers, which call the agent for one case after the other and judge the answers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use karat_core::assertion::{PendingVerdict, response_marks};
use karat_core::port::TrialContext;
use karat_core::result::{CaseDetails, CaseResult};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span, debug, field};

use crate::case::{CaseEnd, Judged, case_result};
use crate::conversation::run_conversation;
use crate::dialog::Dialog;
use crate::judging::Part;
use crate::shared::{SharedState, Unit};
use crate::stopwatch::Stopwatch;

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
        return case_result(case, CaseEnd::not_run(), &shared.plan.redactor);
    }
    let run_id = &shared.plan.run_id;
    let has_turns = case.has_turns();
    let trial = TrialContext { run_id, number, case, sample: unit.sample, has_turns, wait_observer: &watch };
    let end = if has_turns {
        run_conversation(shared, unit, trial, &watch).await
    } else {
        let answer = Dialog::start(shared.agent(suite), trial, shared.plan.timeout, &watch).send(case.message(0)).await;
        reachability.record(&answer);
        match answer {
            Err(error) => {
                if error.ends_run() {
                    shared.stop.store(true, Ordering::Relaxed);
                }
                CaseEnd::from_agent_error(error)
            }
            Ok(trace) => {
                let judge = move |shared: &SharedState| {
                    let case = shared.case(suite, index);
                    let document =
                        || CaseDetails::from(trace.clone()).document(&case.id, case.message(0), None).to_value();
                    let part = Part { suite, case, whole: case, trace: &trace, earlier: &[] };
                    let verdict = shared.judge(part, document, PendingVerdict::finish)?;
                    let marks = response_marks(&case.expect, &shared.plan.tokens, &verdict);
                    let duration_ms = trace.latency_ms;
                    Ok(CaseEnd::Judged(Box::new(Judged { trace, verdict, turns: Vec::new(), marks, duration_ms })))
                };
                // Patterns and eval functions can be slow and must not block the async runtime.
                let judged = if case.expect.is_slow_to_judge() {
                    let (shared, span) = (Arc::clone(shared), Span::current());
                    let judging = tokio::task::spawn_blocking(move || span.in_scope(|| judge(&shared)));
                    judging.await.unwrap_or_else(|error| Err(error.to_string()))
                } else {
                    judge(shared)
                };
                judged.unwrap_or_else(|message: String| CaseEnd::internal(message, watch.elapsed()))
            }
        }
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
