//! Runs a conversation: sends its messages one after the other and judges each answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use karat_cases::{Expectation, OnTurnFailure};
use karat_core::assertion::{ConversationVerdict, PendingVerdict, Strictness, Verdict, response_marks};
use karat_core::conversation::{Exchange, total_trace};
use karat_core::port::{AgentError, WaitGuard};
use karat_core::result::{CaseDetails, Cause, TurnDetails, TurnOutcome};
use karat_core::simulated_user::SimulatedUserDetails;
use karat_core::state::CapturedStates;
use karat_core::trace::Trace;
use tracing::{Span, debug};

use crate::case::{CaseEnd, Judged, cause_of, whole_millis};
use crate::dialog::Dialog;
use crate::judging::Part;
use crate::safety::Answered;
use crate::shared::{SharedState, Unit};
use crate::stopwatch::Stopwatch;
use crate::surroundings::Surroundings;

/// The conversation so far, and its verdict.
pub(crate) struct Progress {
    exchanges: Vec<Exchange>,
    turns: Vec<TurnDetails>,
    verdict: ConversationVerdict,
    marks: Vec<String>,
    /// Time spent on the message without an answer.
    unanswered: Duration,
    has_ended: bool,
    /// Whether the conversation broke off for a reason that is not the agent's.
    is_broken_off: bool,
    pub(crate) simulated_user: Option<SimulatedUserDetails>,
}

/// Runs the turns of a case until one ends the conversation, then judges the case as a whole.
pub(crate) async fn run_conversation(
    shared: &Arc<SharedState>,
    unit: Unit,
    dialog: &mut Dialog<'_>,
    surroundings: &mut Surroundings<'_>,
    watch: &Stopwatch,
) -> CaseEnd {
    let mut progress = Progress::new(shared.plan.strictness);
    for turn in shared.case(unit.suite as usize, unit.index as usize).turns() {
        if progress.has_ended {
            progress.turns.push(TurnDetails::not_run(&turn.message));
            continue;
        }
        let answer = dialog.send(&turn.message).await;
        let is_slow = turn.expect.as_ref().is_some_and(Expectation::is_slow_to_judge);
        progress = match progress.add_answer(shared, unit, &turn.message, answer, is_slow, watch).await {
            Ok(progress) => progress,
            Err(message) => return CaseEnd::internal(message, watch.elapsed()),
        };
    }
    judge_conversation(shared, unit, progress, dialog, surroundings, watch).await
}

/// Judges a conversation as a whole.
pub(crate) async fn judge_conversation(
    shared: &Arc<SharedState>,
    unit: Unit,
    progress: Progress,
    dialog: &mut Dialog<'_>,
    surroundings: &mut Surroundings<'_>,
    watch: &Stopwatch,
) -> CaseEnd {
    let case = shared.case(unit.suite as usize, unit.index as usize);
    // Safety is judged whatever became of the turns.
    let is_safety_judged = case.has_safety() && !progress.exchanges.is_empty();
    let needs_states = progress.is_judged(shared) || is_safety_judged;
    let states = if needs_states { surroundings.capture(dialog).await } else { None };
    let judge = move |shared: &SharedState, progress: Progress| {
        judge_whole(shared, unit, &states.unwrap_or_default(), progress)
    };
    match in_background(shared, case.is_slow_to_judge(), progress, judge).await {
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
    pub(crate) fn new(strictness: Strictness) -> Self {
        Self {
            exchanges: Vec::new(),
            turns: Vec::new(),
            verdict: ConversationVerdict::new(strictness),
            marks: Vec::new(),
            unanswered: Duration::ZERO,
            has_ended: false,
            is_broken_off: false,
            simulated_user: None,
        }
    }

    pub(crate) fn exchanges(&self) -> &[Exchange] {
        &self.exchanges
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Whether the case's own expectations are judged.
    fn is_judged(&self, shared: &SharedState) -> bool {
        let is_judged_anyway = shared.plan.strictness.all_failures && !self.exchanges.is_empty();
        !self.is_broken_off && (is_judged_anyway || self.turns.iter().all(TurnDetails::passed))
    }

    /// Returns the number of messages that were sent.
    pub(crate) fn sent(&self) -> usize {
        self.turns.iter().filter(|turn| turn.outcome != TurnOutcome::NotRun).count()
    }

    /// Adds the answer to a message, and judges it by the expectations of its turn. Returns the message of a panic as an
    /// error.
    pub(crate) async fn add_answer(
        mut self,
        shared: &Arc<SharedState>,
        unit: Unit,
        message: &str,
        answer: Result<Trace, AgentError>,
        is_slow: bool,
        watch: &Stopwatch,
    ) -> Result<Self, String> {
        shared.reachability[shared.plan.suites[unit.suite as usize].agent].record(&answer);
        let number = self.turns.len();
        match answer {
            Err(error) => {
                if error.ends_run() {
                    shared.stop.store(true, Ordering::Relaxed);
                }
                self.add_unanswered(message, error);
            }
            Ok(trace) => {
                self.exchanges.push(Exchange { message: message.to_owned(), trace });
                // Judging counts neither as latency nor towards the timeout.
                let wait = WaitGuard::begin(watch);
                let judge = move |shared: &SharedState, progress: Self| judge_turn(shared, unit, number, progress);
                self = in_background(shared, is_slow, self, judge).await?;
                drop(wait);
            }
        }
        debug!(turn = number + 1, outcome = ?self.turns.last().map(|turn| turn.outcome), "turn finished");
        Ok(self)
    }

    /// Ends the conversation without a verdict.
    pub(crate) fn break_off(&mut self, cause: Cause, message: &str) {
        self.verdict.add_unanswered(self.turns.len(), cause, message);
        (self.has_ended, self.is_broken_off) = (true, true);
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
    let (sent, is_judged) = (progress.sent(), progress.is_judged(shared));
    let Progress { exchanges, turns, mut verdict, mut marks, unanswered, is_broken_off, simulated_user, .. } = progress;
    let trace = total_trace(exchanges.iter().map(|exchange| &exchange.trace));
    let first_message = turns.first().map_or("", |turn| turn.message.as_str());
    let document = || {
        let details = CaseDetails { turns: turns.clone(), ..CaseDetails::from(trace.clone()) };
        details.document(&case.id, first_message, None).to_value()
    };
    // What a simulated user said is not part of the case.
    let earlier = if case.user.is_some() { exchanges.as_slice() } else { &[] };
    let part = Part { suite: unit.suite as usize, case, whole: case, trace: &trace, earlier };
    if is_judged {
        let whole = shared.judge(part, document, |pending| pending.with_states(states).finish_part())?;
        marks.extend(response_marks(&case.expect, &shared.plan.tokens, &whole));
        verdict.add_case(whole);
    }
    let (verdict, security) = if case.has_safety() {
        let answered = match exchanges.len() {
            0 => Answered::None,
            count if count == sent && !is_broken_off => Answered::All,
            _ => Answered::Some,
        };
        let judged = shared.judge_safety(part, answered, states, verdict.finish_part(), document, &mut marks)?;
        (judged.0, Some(judged.1))
    } else {
        (verdict.finish(), None)
    };
    let duration_ms = trace.latency_ms + unanswered.as_secs_f64() * 1000.0;
    let judged = Judged { trace, verdict, security, simulated_user, turns, marks, duration_ms };
    Ok(CaseEnd::Judged(Box::new(judged)))
}
