//! Converts the outcome of a case to its result.

use std::borrow::Cow;
use std::time::Duration;

use karat_cases::Case;
use karat_core::assertion::Verdict;
use karat_core::port::{AgentError, AgentErrorCause};
use karat_core::redact::Redactor;
use karat_core::result::{CaseDetails, CaseResult, Cause, Outcome, TurnDetails};
use karat_core::security::{InjectionDetails, SecurityDetails};
use karat_core::simulated_user::{Fault, SimulatedUserDetails};
use karat_core::trace::Trace;
use karat_json::text::shorten;

/// Maximum length of an error message, in characters.
const MAX_MESSAGE_CHARS: usize = 600;

/// The error of cases that were not run.
pub(crate) const NOT_RUN: &str = "not run: the agent cannot be reached";

/// How a case ended.
pub(crate) enum CaseEnd {
    Judged(Box<Judged>),
    /// There is no answer, or judging it failed.
    Unjudged {
        cause: Cause,
        message: String,
        elapsed: Duration,
    },
}

/// An answer or a conversation, with its verdict.
pub(crate) struct Judged {
    pub(crate) trace: Trace,
    pub(crate) verdict: Verdict,
    /// The verdicts on the task and on what must not happen, if they are judged apart.
    pub(crate) security: Option<SecurityDetails>,
    pub(crate) simulated_user: Option<SimulatedUserDetails>,
    /// The turns of a conversation.
    pub(crate) turns: Vec<TurnDetails>,
    /// Strings to highlight in responses.
    pub(crate) marks: Vec<String>,
    pub(crate) duration_ms: f64,
}

/// Returns the cause and the message of an error.
pub(crate) fn cause_of(error: AgentError) -> (Cause, String) {
    match error.cause {
        // The same text for every agent.
        AgentErrorCause::Timeout => (Cause::Timeout, Cause::TIMEOUT_TEXT.to_owned()),
        AgentErrorCause::NoAnswer
        | AgentErrorCause::Unreachable { .. }
        | AgentErrorCause::Unusable(_)
        | AgentErrorCause::Budget => (Cause::Agent, error.message),
    }
}

impl CaseEnd {
    /// Ends a case without an answer.
    pub(crate) fn from_agent_error(error: AgentError) -> Self {
        let elapsed = error.elapsed;
        let (cause, message) = cause_of(error);
        Self::Unjudged { cause, message, elapsed }
    }

    /// Ends a case that was not started, since the agent cannot be reached.
    pub(crate) fn not_run() -> Self {
        Self::Unjudged { cause: Cause::NotRun, message: NOT_RUN.to_owned(), elapsed: Duration::ZERO }
    }

    /// Ends a case without an answer, since its preparation failed.
    pub(crate) fn not_prepared(message: String) -> Self {
        Self::Unjudged { cause: Cause::Hook, message, elapsed: Duration::ZERO }
    }

    pub(crate) fn internal(message: String, elapsed: Duration) -> Self {
        Self::Unjudged { cause: Cause::Internal, message, elapsed }
    }
}

/// Builds the result of a case; with errors of hooks or state sources, the case has no verdict. Secrets are redacted
/// here, for all reporters.
pub(crate) fn case_result(case: &Case, end: CaseEnd, hook_errors: Vec<String>, redactor: &Redactor) -> CaseResult {
    let mut result = CaseResult {
        id: case.id.clone(),
        description: case.description.clone(),
        message: case.input.as_ref().map(|input| input.message.clone()).unwrap_or_default(),
        passed: false,
        outcome: Outcome::Failed,
        duration_ms: 0,
        assertions_run: 0,
        assertions_skipped: 0,
        vacuous: false,
        cause: None,
        error: None,
        failures: Vec::new(),
        marks: Vec::new(),
        details: CaseDetails::default(),
        trials: None,
    };
    match end {
        CaseEnd::Unjudged { cause, message, elapsed } => {
            result.cause = Some(cause);
            result.outcome = cause.outcome();
            result.details.security = SecurityDetails::unanswered(case, result.outcome).map(Box::new);
            result.duration_ms = whole_millis(elapsed.as_secs_f64() * 1000.0);
            result.error = Some(message);
        }
        CaseEnd::Judged(judged) => {
            let Judged { trace, verdict, security, simulated_user, turns, marks, duration_ms } = *judged;
            result.passed = verdict.passed();
            result.cause = match (result.passed, &verdict.error) {
                (true, _) => None,
                (false, None) => Some(Cause::Assertion),
                (false, Some(error)) => Some(error.cause),
            };
            result.outcome = result.cause.map_or(Outcome::Passed, Cause::outcome);
            result.duration_ms = whole_millis(duration_ms);
            result.assertions_run = verdict.assertions_run;
            result.assertions_skipped = verdict.assertions_skipped;
            result.vacuous = verdict.vacuous;
            result.marks = marks;
            let first_failure = || verdict.failures.first().map(|failure| failure.message.clone());
            result.error = verdict.error.map(|error| error.message).or_else(first_failure);
            result.failures = verdict.failures;
            result.details = CaseDetails {
                skipped_tokens: verdict.skipped_tokens,
                near_misses: verdict.near_misses,
                assertions: verdict.assertions,
                calls: verdict.calls,
                state_changes: verdict.state_changes,
                evals: verdict.evals,
                security: security.map(Box::new),
                simulated_user: simulated_user.map(Box::new),
                turns,
                ..CaseDetails::from(trace)
            };
            result.details.warnings.extend(verdict.warnings);
        }
    }
    for error in hook_errors {
        set_errored(&mut result, error);
    }
    if !redactor.is_empty() {
        redact(&mut result, redactor);
    }
    // After redaction, which does not recognise a partial secret.
    result.error.iter_mut().for_each(truncate_message);
    result.failures.iter_mut().for_each(|failure| truncate_message(&mut failure.message));
    result.details.turns.iter_mut().flat_map(|turn| &mut turn.error).for_each(truncate_message);
    result
}

/// Replaces the verdict by the error of a hook or a state source. An earlier error stays; what was judged becomes a
/// warning.
fn set_errored(result: &mut CaseResult, error: String) {
    if result.cause == Some(Cause::Hook) {
        result.details.warnings.push(error);
        return;
    }
    let judged = result.error.replace(error);
    result
        .details
        .warnings
        .extend(judged.map(|judged| format!("without that error, the case would not pass: {judged}")));
    result.failures.clear();
    result.marks.clear();
    (result.passed, result.vacuous) = (false, false);
    (result.cause, result.outcome) = (Some(Cause::Hook), Cause::Hook.outcome());
}

/// Truncates a message, which may quote a whole reply.
pub(crate) fn truncate_message(message: &mut String) {
    if let Cow::Owned(short) = shorten(message, MAX_MESSAGE_CHARS) {
        *message = short;
    }
}

fn redact(result: &mut CaseResult, redactor: &Redactor) {
    let texts = [&mut result.id, &mut result.description, &mut result.message].into_iter();
    let texts = texts.chain(&mut result.error).chain(&mut result.marks);
    let failures = result.failures.iter_mut().map(|failure| &mut failure.message);
    texts.chain(failures).for_each(|text| redactor.string(text));
    redact_details(&mut result.details, redactor);
}

pub(crate) fn redact_details(details: &mut CaseDetails, redactor: &Redactor) {
    let optional = [&mut details.model, &mut details.stop_reason, &mut details.stderr];
    let lists = details.tools_called.iter_mut().chain(&mut details.skipped_tokens).chain(&mut details.warnings);
    for text in [&mut details.response].into_iter().chain(optional.into_iter().flatten()).chain(lists) {
        redactor.string(text);
    }
    for near_miss in &mut details.near_misses {
        for text in [&mut near_miss.expected, &mut near_miss.found] {
            redactor.string(text);
        }
    }
    let mut security = details.security.as_deref_mut();
    for injection in security.iter_mut().flat_map(|security| &mut security.injections) {
        let InjectionDetails { tool, into, attack, reached: _ } = injection;
        for text in [tool, into, attack] {
            redactor.string(text);
        }
    }
    if let Some(user) = details.simulated_user.as_deref_mut() {
        redactor.string(&mut user.model);
        if let Some(Fault { rule: _, found, message }) = &mut user.fault {
            for text in [found, message] {
                redactor.string(text);
            }
        }
    }
    let of_safety = security.into_iter().flat_map(|security| &mut security.calls);
    let of_turns = details.turns.iter_mut().flat_map(|turn| &mut turn.calls);
    let alignments = details.calls.iter_mut().chain(of_turns).chain(of_safety);
    for pair in alignments.flat_map(|alignment| &mut alignment.pairs) {
        let differences = pair.differences.iter_mut();
        let texts =
            differences.flat_map(|each| [Some(&mut each.pointer), each.expected.as_mut(), each.actual.as_mut()]);
        texts.flatten().chain(&mut pair.expected).for_each(|text| redactor.string(text));
    }
    for change in details.state_changes.iter_mut().flat_map(|changes| &mut changes.changes) {
        let texts = [&mut change.before, &mut change.after].into_iter().flatten();
        texts.chain([&mut change.pointer]).for_each(|text| redactor.string(text));
    }
    for eval in &mut details.evals {
        let optional = [&mut eval.reason, &mut eval.error].into_iter().flatten();
        optional.chain([&mut eval.name, &mut eval.stdout, &mut eval.stderr]).for_each(|text| redactor.string(text));
        redactor.map(&mut eval.params);
        eval.reference.iter_mut().for_each(|value| redactor.value(value));
    }
    for turn in &mut details.turns {
        let optional = [&mut turn.error, &mut turn.response, &mut turn.stop_reason].into_iter().flatten();
        optional.chain([&mut turn.message]).for_each(|text| redactor.string(text));
    }
    let calls_of_turns = details.turns.iter_mut().flat_map(|turn| &mut turn.tool_calls);
    for call in details.tool_calls.iter_mut().chain(calls_of_turns) {
        redactor.string(&mut call.name);
        redactor.map(&mut call.params);
        call.result.iter_mut().for_each(|value| redactor.value(value));
        call.raw_params.iter_mut().chain(&mut call.error).for_each(|text| redactor.string(text));
    }
}

pub(crate) fn whole_millis(millis: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "durations are small and not negative")]
    let whole = millis.round().max(0.0) as u64;
    whole
}
