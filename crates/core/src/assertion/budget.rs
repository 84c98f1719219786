//! What the answer may take: time, tokens, length, money.

use std::ops::ControlFlow;

use super::tally::{Check, Tally};
use super::{Evidence, Field};

pub(super) fn max_latency(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let Some(most) = evidence.case.expect.max_latency_ms else {
        return ControlFlow::Continue(());
    };
    let taken = evidence.trace.latency_ms;
    // Rounded up, so that the text never shows a time that is within the budget.
    let check =
        Check::from_bool(taken <= most, || format!("expected at most {most} ms but it took {} ms", taken.ceil()));
    tally.record(Field::MaxLatencyMs, check)
}

pub(super) fn max_tokens(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let Some(most) = evidence.case.expect.max_tokens else {
        return ControlFlow::Continue(());
    };
    let count = evidence.tokenizer.count(&evidence.trace.response);
    let check = Check::from_bool(count as u64 <= most, || {
        format!("expected at most {most} tokens but the response has {count} ({})", evidence.tokenizer.name())
    });
    tally.record(Field::MaxTokens, check)
}

pub(super) fn min_length(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let Some(least) = evidence.case.expect.min_length else {
        return ControlFlow::Continue(());
    };
    let length = evidence.trace.response.chars().count();
    let check = Check::from_bool(length as u64 >= least, || {
        format!("expected at least {least} characters but the response has {length}")
    });
    tally.record(Field::MinLength, check)
}

pub(super) fn max_length(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let Some(most) = evidence.case.expect.max_length else {
        return ControlFlow::Continue(());
    };
    let length = evidence.trace.response.chars().count();
    let check = Check::from_bool(length as u64 <= most, || {
        format!("expected at most {most} characters but the response has {length}")
    });
    tally.record(Field::MaxLength, check)
}

pub(super) fn max_cost(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let Some(most) = evidence.case.expect.max_cost_usd else {
        return ControlFlow::Continue(());
    };
    let Some(cost) = evidence.trace.cost_usd() else {
        tally.warn("maxCostUsd: what the answer cost is not known".to_owned());
        return tally.record(Field::MaxCostUsd, Check::Skipped);
    };
    // Sums of fractions of a cent are not exact.
    let holds = cost <= most * (1.0 + 1e-9);
    let check = Check::from_bool(holds, || format!("expected at most ${most} but it cost ${cost}"));
    tally.record(Field::MaxCostUsd, check)
}
