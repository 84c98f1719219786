//! Runs a conversation: sends its messages one after the other and judges each answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use karat_cases::{Expectation, OnTurnFailure};
use karat_core::assertion::{ConversationVerdict, PendingVerdict, Verdict, response_marks};
use karat_core::conversation::{Exchange, total_trace};
use karat_core::port::{AgentError, WaitGuard};
use karat_core::result::{CaseDetails, TurnDetails};
use karat_core::state::CapturedStates;
use tracing::{Span, debug};

use crate::case::{CaseEnd, Judged, cause_of, whole_millis};
use crate::dialog::Dialog;
use crate::judging::Part;
use crate::shared::{SharedState, Unit};
use crate::stopwatch::Stopwatch;
use crate::surroundings::Surroundings;

/// The conversation so far, and its verdict.
struct Progress {
    exchanges: Vec<Exchange>,
    turns: Vec<TurnDetails>,
    verdict: ConversationVerdict,
    marks: Vec<String>,
    /// Time spent on the message without an answer.
    unanswered: Duration,
    has_ended: bool,
}

/// Runs the turns of a case until one ends the conversation, then judges the case as a whole.
pub(crate) async fn run_conversation(
    shared: &Arc<SharedState>,
    unit: Unit,
    dialog: &mut Dialog<'_>,
    surroundings: &mut Surroundings<'_>,
    watch: &Stopwatch,
) -> CaseEnd {
    let suite = unit.suite as usize;
    let case = shared.case(suite, unit.index as usize);
    let reachability = &shared.reachability[shared.plan.suites[suite].agent];
    let mut progress = Progress {
        exchanges: Vec::new(),
        turns: Vec::new(),
        verdict: ConversationVerdict::new(shared.plan.strictness),
        marks: Vec::new(),
        unanswered: Duration::ZERO,
        has_ended: false,
    };
    for (number, turn) in case.turns().iter().enumerate() {
        if progress.has_ended {
            progress.turns.push(TurnDetails::not_run(&turn.message));
            continue;
        }
        let answer = dialog.send(&turn.message).await;
        reachability.record(&answer);
        match answer {
            Err(error) => {
                if error.ends_run() {
                    shared.stop.store(true, Ordering::Relaxed);
                }
                progress.add_unanswered(&turn.message, error);
            }
            Ok(trace) => {
                progress.exchanges.push(Exchange { message: turn.message.clone(), trace });
                // Judging counts neither as latency nor towards the timeout.
                let wait = WaitGuard::begin(watch);
                let is_slow = turn.expect.as_ref().is_some_and(Expectation::is_slow_to_judge);
                let judge = move |shared: &SharedState, progress: Progress| judge_turn(shared, unit, number, progress);
                progress = match in_background(shared, is_slow, progress, judge).await {
                    Ok(progress) => progress,
                    Err(message) => return CaseEnd::internal(message, watch.elapsed()),
                };
                drop(wait);
            }
        }
        debug!(turn = number + 1, outcome = ?progress.turns.last().map(|turn| turn.outcome), "turn finished");
    }
    let states = if progress.is_judged(shared) { surroundings.capture(dialog).await } else { None };
    let judge = move |shared: &SharedState, progress: Progress| {
        judge_whole(shared, unit, &states.unwrap_or_default(), progress)
    };
    match in_background(shared, case.expect.is_slow_to_judge(), progress, judge).await {
        Ok(end) => end,
        Err(message) => CaseEnd::internal(message, watch.elapsed()),
    }
}

/// Calls `judge`, on a blocking thread if it is slow. A panic of that thread is an error too.
async fn in_background<T: Send + 'static>(
    shared: &Arc<SharedState>,
    is_slow: bool,
    progress: Progress,
    judge: impl FnOnce(&SharedState, Progress) -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    if !is_slow {
        return judge(shared, progress);
    }
    let (shared, span) = (Arc::clone(shared), Span::current());
    let judged = tokio::task::spawn_blocking(move || span.in_scope(|| judge(&shared, progress))).await;
    judged.unwrap_or_else(|error| Err(error.to_string()))
}

impl Progress {
    /// Whether the case's own expectations are judged.
    fn is_judged(&self, shared: &SharedState) -> bool {
        let is_judged_anyway = shared.plan.strictness.all_failures && !self.exchanges.is_empty();
        is_judged_anyway || self.turns.iter().all(TurnDetails::passed)
    }

    fn add_unanswered(&mut self, message: &str, error: AgentError) {
        let elapsed = error.elapsed;
        let (cause, text) = cause_of(error);
        self.verdict.add_unanswered(self.turns.len(), cause, &text);
        let duration = whole_millis(elapsed.as_secs_f64() * 1000.0);
        self.turns.push(TurnDetails::unanswered(message, cause.outcome(), &text, duration));
        self.unanswered = elapsed;
        self.has_ended = true;
    }
}

/// Judges the last answer by the expectations of its turn.
fn judge_turn(shared: &SharedState, unit: Unit, number: usize, mut progress: Progress) -> Result<Progress, String> {
    let case = shared.case(unit.suite as usize, unit.index as usize);
    let Some((exchange, earlier)) = progress.exchanges.split_last() else { return Ok(progress) };
    let Exchange { message, trace } = exchange;
    let details = TurnDetails::answered(message, trace, whole_millis(trace.latency_ms));
    let verdict = match case.of_turn(number) {
        None => Verdict::default(),
        Some(turn) => {
            let document = || {
                let details = CaseDetails { turns: vec![details.clone()], ..CaseDetails::from(trace.clone()) };
                details.document(&case.id, message, None).with_first_turn(number).to_value()
            };
            let part = Part { suite: unit.suite as usize, case: &turn, whole: case, trace, earlier };
            let verdict = shared.judge(part, document, PendingVerdict::finish_part)?;
            progress.marks.extend(response_marks(&turn.expect, &shared.plan.tokens, &verdict));
            verdict
        }
    };
    let details = details.with_verdict(&verdict);
    let continues =
        verdict.error.is_none() && (verdict.passed() || case.on_turn_failure == Some(OnTurnFailure::Continue));
    progress.has_ended = !continues;
    progress.turns.push(details);
    progress.verdict.add_turn(number, verdict);
    Ok(progress)
}

/// Judges the conversation by the case's own expectations, if all turns passed or all failures are wanted.
fn judge_whole(
    shared: &SharedState,
    unit: Unit,
    states: &CapturedStates,
    progress: Progress,
) -> Result<CaseEnd, String> {
    let case = shared.case(unit.suite as usize, unit.index as usize);
    let is_judged = progress.is_judged(shared);
    let Progress { exchanges, turns, mut verdict, mut marks, unanswered, .. } = progress;
    let trace = total_trace(exchanges.iter().map(|exchange| &exchange.trace));
    if is_judged {
        let document = || {
            let details = CaseDetails { turns: turns.clone(), ..CaseDetails::from(trace.clone()) };
            details.document(&case.id, case.message(0), None).to_value()
        };
        let part = Part { suite: unit.suite as usize, case, whole: case, trace: &trace, earlier: &[] };
        let whole = shared.judge(part, document, |pending| pending.with_states(states).finish_part())?;
        marks.extend(response_marks(&case.expect, &shared.plan.tokens, &whole));
        verdict.add_case(whole);
    }
    let duration_ms = trace.latency_ms + unanswered.as_secs_f64() * 1000.0;
    Ok(CaseEnd::Judged(Box::new(Judged { trace, verdict: verdict.finish(), turns, marks, duration_ms })))
}
