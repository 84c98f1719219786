//! Budgets of the answer: times, tokens, length, cost, steps.

use std::ops::ControlFlow;

use super::tally::{Check, Tally};
use super::{Evidence, Field};
use karat_json::text::counted;

pub(super) fn max_latency(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let Some(max) = evidence.case.expect.max_latency_ms else {
        return ControlFlow::Continue(());
    };
    let latency = evidence.trace.latency_ms;
    // Rounded up, so that the text never shows a time that is within the budget.
    let check =
        Check::from_bool(latency <= max, || format!("expected at most {max} ms but it took {} ms", latency.ceil()));
    tally.record(Field::MaxLatencyMs, check)
}

pub(super) fn max_tokens(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let Some(max) = evidence.case.expect.max_tokens else {
        return ControlFlow::Continue(());
    };
    let count = evidence.tokenizer.count(&evidence.trace.response);
    let check = Check::from_bool(count as u64 <= max, || {
        format!("expected at most {max} tokens but the response has {count} ({})", evidence.tokenizer.name())
    });
    tally.record(Field::MaxTokens, check)
}

pub(super) fn min_length(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let Some(min) = evidence.case.expect.min_length else {
        return ControlFlow::Continue(());
    };
    let length = evidence.trace.response.chars().count();
    let check = Check::from_bool(length as u64 >= min, || {
        format!("expected at least {min} characters but the response has {length}")
    });
    tally.record(Field::MinLength, check)
}

pub(super) fn max_length(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let Some(max) = evidence.case.expect.max_length else {
        return ControlFlow::Continue(());
    };
    let length = evidence.trace.response.chars().count();
    let check = Check::from_bool(length as u64 <= max, || {
        format!("expected at most {max} characters but the response has {length}")
    });
    tally.record(Field::MaxLength, check)
}

pub(super) fn max_cost(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let Some(max) = evidence.case.expect.max_cost_usd else {
        return ControlFlow::Continue(());
    };
    let Some(cost) = evidence.trace.cost_usd() else {
        tally.warn("maxCostUsd: the cost of the answer is unknown".to_owned());
        return tally.record(Field::MaxCostUsd, Check::Skipped);
    };
    // Tolerates rounding in sums of fractions of a cent.
    let holds = cost <= max * (1.0 + 1e-9);
    let check = Check::from_bool(holds, || format!("expected at most ${max} but it cost ${cost}"));
    tally.record(Field::MaxCostUsd, check)
}

pub(super) fn max_first_token(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let Some(max) = evidence.case.expect.max_first_token_ms else {
        return ControlFlow::Continue(());
    };
    let Some(elapsed) = evidence.trace.first_token_ms else {
        tally
            .warn("maxFirstTokenMs: the time of the first text is unknown, since the reply is not a stream".to_owned());
        return tally.record(Field::MaxFirstTokenMs, Check::Skipped);
    };
    // Rounded up, so that the text never shows a time that is within the budget.
    let check = Check::from_bool(elapsed <= max, || {
        format!("expected the first text within {max} ms but it took {} ms", elapsed.ceil())
    });
    tally.record(Field::MaxFirstTokenMs, check)
}

pub(super) fn min_steps(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    check_steps(Field::MinSteps, evidence.case.expect.min_steps, evidence, tally, |steps, min| {
        Check::from_bool(steps >= min, || format!("expected at least {} but got {steps}", counted(min, "model call")))
    })
}

pub(super) fn max_steps(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    check_steps(Field::MaxSteps, evidence.case.expect.max_steps, evidence, tally, |steps, max| {
        Check::from_bool(steps <= max, || format!("expected at most {} but got {steps}", counted(max, "model call")))
    })
}

fn check_steps(
    field: Field,
    limit: Option<u64>,
    evidence: Evidence<'_>,
    tally: &mut Tally,
    check: impl FnOnce(u64, u64) -> Check,
) -> ControlFlow<()> {
    let Some(limit) = limit else {
        return ControlFlow::Continue(());
    };
    let Some(steps) = evidence.trace.steps else {
        tally.warn(format!("{field}: the agent does not report its model calls"));
        return tally.record(field, Check::Skipped);
    };
    tally.record(field, check(steps, limit))
}
