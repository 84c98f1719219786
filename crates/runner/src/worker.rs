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
use crate::safety::Answered;
use crate::shared::{SharedState, Unit};
use crate::simulated_user::run_simulated;
use crate::stopwatch::Stopwatch;
use crate::surroundings::Surroundings;

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
    while !shared.stop.load(Ordering::Relaxed) {
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        let Some(&unit) = shared.units.get(number) else {
            return;
        };
        let (suite, index, trial) = (unit.suite as usize, unit.index as usize, unit.trial as usize);
        let lease = tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            lease = shared.exclusion.enter(shared.case(suite, index), shared.plan.state_sources.as_deref()) => lease,
        };
        // Another case may have stopped the run while this one waited.
        if shared.stop.load(Ordering::Relaxed) {
            return;
        }
        let started = Instant::now();
        // A cancelled case has not finished and is not reported.
        let Some(result) = run_case(&shared, number, unit, &cancel).instrument(shared.span(unit)).await else {
            return;
        };
        // Not in the dispatcher, so that no case starts in the meantime.
        if shared.plan.fail_fast && !result.passed {
            shared.stop.store(true, Ordering::Relaxed);
        }
        drop(lease);
        if out.send(FinishedTrial { suite, index, trial, started, ended: Instant::now(), result }).is_err() {
            return;
        }
    }
}

/// Runs a trial with its hooks. Returns `None` if the run was cancelled; `afterCase` has run then too.
async fn run_case(
    shared: &Arc<SharedState>,
    number: usize,
    unit: Unit,
    cancel: &CancellationToken,
) -> Option<CaseResult> {
    let suite = unit.suite as usize;
    let (plan, case) = (&shared.plan, shared.case(suite, unit.index as usize));
    if shared.reachability[plan.suites[suite].agent].skips_call() {
        return Some(case_result(case, CaseEnd::not_run(), Vec::new(), &plan.redactor));
    }
    let watch = Stopwatch::start();
    let (run_id, has_turns) = (&plan.run_id, case.has_turns());
    let trial = TrialContext { run_id, number, case, sample: unit.sample, has_turns, wait_observer: &watch };
    let mut dialog = Dialog::start(shared.agent(suite), trial, plan.timeout, &watch);
    let mut surroundings = Surroundings::new(plan, case, &mut dialog, &watch);
    let end = tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        end = answer_and_judge(shared, unit, &mut dialog, &mut surroundings, &watch) => Some(end),
    };
    drop(dialog);
    let hook_errors = surroundings.finish().await;
    let result = case_result(case, end?, hook_errors, &plan.redactor);
    debug!(
        outcome = ?result.outcome,
        cause = result.cause.map(field::debug),
        duration_ms = result.duration_ms,
        error = result.error.as_deref().map(field::display),
        "case finished"
    );
    Some(result)
}

async fn answer_and_judge(
    shared: &Arc<SharedState>,
    unit: Unit,
    dialog: &mut Dialog<'_>,
    surroundings: &mut Surroundings<'_>,
    watch: &Stopwatch,
) -> CaseEnd {
    let (suite, index) = (unit.suite as usize, unit.index as usize);
    let case = shared.case(suite, index);
    if let Err(message) = surroundings.prepare().await {
        return CaseEnd::not_prepared(message);
    }
    if let Some(user) = &case.user {
        return run_simulated(shared, unit, user, dialog, surroundings, watch).await;
    }
    if case.has_turns() {
        return run_conversation(shared, unit, dialog, surroundings, watch).await;
    }
    let answer = dialog.send(case.message(0)).await;
    shared.reachability[shared.plan.suites[suite].agent].record(&answer);
    let trace = match answer {
        Ok(trace) => trace,
        Err(error) => {
            if error.ends_run() {
                shared.stop.store(true, Ordering::Relaxed);
            }
            return CaseEnd::from_agent_error(error);
        }
    };
    let states = surroundings.capture(dialog).await.unwrap_or_default();
    let judge = move |shared: &SharedState| {
        let case = shared.case(suite, index);
        let document = || CaseDetails::from(trace.clone()).document(&case.id, case.message(0), None).to_value();
        let part = Part { suite, case, whole: case, trace: &trace, earlier: &[] };
        let has_safety = case.has_safety();
        let mut verdict = shared.judge(part, document, |pending: PendingVerdict<'_>| {
            let pending = pending.with_states(&states);
            if has_safety { pending.finish_part() } else { pending.finish() }
        })?;
        let mut marks = response_marks(&case.expect, &shared.plan.tokens, &verdict);
        let mut security = None;
        if has_safety {
            let judged = shared.judge_safety(part, Answered::All, &states, verdict, document, &mut marks)?;
            (verdict, security) = (judged.0, Some(judged.1));
        }
        let duration_ms = trace.latency_ms;
        let (simulated_user, turns) = (None, Vec::new());
        let judged = Judged { trace, verdict, security, simulated_user, turns, marks, duration_ms };
        Ok(CaseEnd::Judged(Box::new(judged)))
    };
    // Patterns and eval functions can be slow and must not block the async runtime.
    let judged = if case.is_slow_to_judge() {
        let (shared, span) = (Arc::clone(shared), Span::current());
        let judging = tokio::task::spawn_blocking(move || span.in_scope(|| judge(&shared)));
        judging.await.unwrap_or_else(|error| Err(error.to_string()))
    } else {
        judge(shared)
    };
    judged.unwrap_or_else(|message: String| CaseEnd::internal(message, watch.elapsed()))
}
