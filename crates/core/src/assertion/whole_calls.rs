//! Assertions on whole calls: `calls`.

use std::ops::ControlFlow;

use super::call_alignment::{CallAlignment, CallPair, CallState, call_text};
use super::call_entry::{CallRecord, ResolvedCall, Unresolved};
use super::matching::BenefitMatrix;
use super::tally::{Check, Tally};
use super::{Evidence, Field};
use karat_cases::{CallsMatch, ExpectedCall, ExpectedCalls};
use karat_json::text::counted;

/// The benefit of aligning an expected call with a call of the same tool that differs in everything.
const NEAR_BENEFIT: i64 = 1;
/// The maximum additional benefit for parts that agree.
const MAX_NEAR_GAIN: i64 = 1_000;

/// Maximum number of pairs that are compared in every part to find the nearest calls.
const MAX_COMPARED_PAIRS: usize = 100_000;

pub(super) fn calls(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let Some(expected) = &evidence.case.expect.calls else {
        return ControlFlow::Continue(());
    };
    let made: Vec<CallRecord<'_>> = evidence.trace.tool_calls.iter().map(CallRecord::new).collect();
    if expected.alternatives().next().is_some() {
        let check = match compare_lists(expected, &made, evidence, tally) {
            Ok(None) => Check::Passed,
            Ok(Some((alignment, message))) => {
                tally.record_call_alignment(alignment);
                Check::Failed(message)
            }
            Err(NotCompared::Skipped) => Check::Skipped,
            Err(NotCompared::Failed(message)) => Check::Failed(message),
        };
        tally.record(Field::Calls, check)?;
    }
    for (index, entry) in expected.forbidden.iter().flatten().enumerate() {
        let check = match find_forbidden(entry, &made, evidence, tally) {
            Ok(None) => Check::Passed,
            Ok(Some(message)) | Err(NotCompared::Failed(message)) => Check::Failed(message),
            Err(NotCompared::Skipped) => Check::Skipped,
        };
        tally.record_at(Field::Calls, format_args!("/forbidden/{index}"), check)?;
    }
    ControlFlow::Continue(())
}

/// The reason why calls are not compared.
enum NotCompared {
    /// A token has no value, or the steps of calls are not known.
    Skipped,
    Failed(String),
}

/// Returns the nearest alignment and the failure, or `None` if a list matches.
fn compare_lists(
    expected: &ExpectedCalls,
    made: &[CallRecord<'_>],
    evidence: Evidence<'_>,
    tally: &mut Tally,
) -> Result<Option<(CallAlignment, String)>, NotCompared> {
    let lists: Vec<Result<Vec<ResolvedCall<'_>>, NotCompared>> =
        expected.alternatives().map(|list| resolve_list(list, evidence, tally)).collect();
    let lists = lists.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut nearest: Option<(i64, usize, CallAlignment)> = None;
    for (index, list) in lists.iter().enumerate() {
        let comparison = Comparison::new(expected.mode(), list, made).map_err(NotCompared::Failed)?;
        if comparison.matches() {
            return Ok(None);
        }
        let alignment = comparison.explain();
        let distance = comparison.distance(&alignment);
        if nearest.as_ref().is_none_or(|(least, ..)| distance < *least) {
            nearest = Some((distance, index, alignment));
        }
    }
    let is_any_of = expected.any_of.is_some();
    Ok(nearest.map(|(_, index, alignment)| {
        let message = alignment.message(&evidence.trace.tool_calls);
        if !is_any_of {
            return (alignment, message);
        }
        let count = counted(lists.len(), "list");
        let message = format!("none of {count} matches; nearest is list {}: {message}", index + 1);
        (CallAlignment { any_of: Some(index), ..alignment }, message)
    }))
}

/// Returns the failure if a call matches the forbidden one.
fn find_forbidden(
    entry: &ExpectedCall,
    made: &[CallRecord<'_>],
    evidence: Evidence<'_>,
    tally: &mut Tally,
) -> Result<Option<String>, NotCompared> {
    let list = resolve_list(std::slice::from_ref(entry), evidence, tally)?;
    for forbidden in &list {
        for (index, call) in made.iter().enumerate() {
            if forbidden.is_match(call).map_err(NotCompared::Failed)? {
                let call = call_text(&evidence.trace.tool_calls[index]);
                let message = format!("expected no {} but call {} is {call}", forbidden.text(), index + 1);
                return Ok(Some(message));
            }
        }
    }
    Ok(None)
}

fn resolve_list<'e>(
    list: &'e [ExpectedCall],
    evidence: Evidence<'_>,
    tally: &mut Tally,
) -> Result<Vec<ResolvedCall<'e>>, NotCompared> {
    // Resolve all entries, so that every token without a value is reported.
    let resolved: Vec<_> = list.iter().map(|entry| ResolvedCall::resolve(entry, evidence.tokens, tally)).collect();
    let resolved: Result<Vec<_>, _> = resolved.into_iter().collect();
    let entries = resolved.map_err(|unresolved| match unresolved {
        Unresolved::Token => NotCompared::Skipped,
        Unresolved::Invalid(message) => NotCompared::Failed(message),
    })?;
    if evidence.trace.steps.is_none() && entries.iter().any(ResolvedCall::has_step) {
        tally.warn("calls: the agent does not report the step in which a call was made".to_owned());
        return Err(NotCompared::Skipped);
    }
    Ok(entries)
}

/// Expected calls, the calls made, and which of them match.
struct Comparison<'c> {
    mode: CallsMatch,
    entries: &'c [ResolvedCall<'c>],
    calls: &'c [CallRecord<'c>],
    /// Whether each entry matches each call, entry by entry.
    matching: Vec<bool>,
}

impl<'c> Comparison<'c> {
    fn new(mode: CallsMatch, entries: &'c [ResolvedCall<'c>], calls: &'c [CallRecord<'c>]) -> Result<Self, String> {
        let pairs = entries.iter().flat_map(|entry| calls.iter().map(move |call| (entry, call)));
        let matching = pairs.map(|(entry, call)| entry.is_match(call)).collect::<Result<_, _>>()?;
        Ok(Self { mode, entries, calls, matching })
    }

    fn is_match(&self, entry: usize, call: usize) -> bool {
        self.matching[entry * self.calls.len() + call]
    }

    fn matches(&self) -> bool {
        let (entries, calls) = (self.entries.len(), self.calls.len());
        match self.mode {
            CallsMatch::Exact => entries == calls && (0..entries).all(|index| self.is_match(index, index)),
            CallsMatch::AnyOrder => entries == calls && self.count_matches(false) == entries,
            CallsMatch::InOrder => entries <= calls && self.count_matches(true) == entries,
            CallsMatch::Includes => entries <= calls && self.count_matches(false) == entries,
            CallsMatch::Subset => calls <= entries && self.count_matches(false) == calls,
        }
    }

    /// Returns the maximum number of calls that can be matched with an entry each.
    fn count_matches(&self, is_ordered: bool) -> usize {
        let benefits = BenefitMatrix::new(self.entries.len(), self.calls.len(), |entry, call| {
            i64::from(self.is_match(entry, call))
        });
        let aligned = if is_ordered { benefits.align_in_order() } else { benefits.align() };
        aligned.iter().flatten().count()
    }

    /// Returns the best alignment: as many matches as possible, then the nearest calls.
    fn explain(&self) -> CallAlignment {
        let (entries, calls) = (self.entries.len(), self.calls.len());
        let only_order_differs = match self.mode {
            CallsMatch::Exact => entries == calls && self.count_matches(false) == entries,
            CallsMatch::InOrder => self.count_matches(false) == entries,
            CallsMatch::AnyOrder | CallsMatch::Includes | CallsMatch::Subset => false,
        };
        // More than all near pairs together.
        let match_benefit = (NEAR_BENEFIT + MAX_NEAR_GAIN).saturating_mul(as_i64(entries.min(calls) + 1));
        let benefits = BenefitMatrix::new(entries, calls, |entry, call| {
            if self.is_match(entry, call) {
                match_benefit
            } else if self.matching.len() > MAX_COMPARED_PAIRS {
                0
            } else {
                self.near_benefit(entry, call)
            }
        });
        let is_ordered = self.mode.is_ordered() && !only_order_differs;
        let aligned = if is_ordered { benefits.align_in_order() } else { benefits.align() };
        let pairs = self.pairs(&aligned);
        CallAlignment { match_mode: self.mode, any_of: None, only_order_differs, pairs }
    }

    /// Returns the distance of the calls from the expected ones: 0 for the right calls in another order, plus a penalty
    /// for each wrong call that grows with its differences.
    fn distance(&self, alignment: &CallAlignment) -> i64 {
        let distances = alignment.pairs.iter().map(|pair| match (pair.state, pair.entry, pair.call) {
            // Less than a call that is missing or unexpected.
            (CallState::Different, Some(entry), Some(call)) => {
                MAX_NEAR_GAIN * 3 / 4 - self.near_benefit(entry, call) / 2
            }
            (state, ..) if state.is_problem() => MAX_NEAR_GAIN,
            _ => 0,
        });
        distances.sum()
    }

    /// Returns the benefit of aligning a call with an entry that it does not match.
    fn near_benefit(&self, entry: usize, call: usize) -> i64 {
        let entry = &self.entries[entry];
        let Some(differences) = entry.differences(&self.calls[call]) else {
            return 0;
        };
        let differing = as_i64(differences.len());
        let agreeing = (as_i64(entry.count_parts()) - differing).max(0);
        NEAR_BENEFIT + MAX_NEAR_GAIN * agreeing / (agreeing + differing).max(1)
    }

    /// Lists entries with their calls in the order of the entries. Calls without an entry keep their position.
    fn pairs(&self, aligned: &[Option<usize>]) -> Vec<CallPair> {
        let mut unmatched: Vec<usize> = (0..self.calls.len()).filter(|call| !aligned.contains(&Some(*call))).collect();
        let mut pairs = Vec::with_capacity(aligned.len() + unmatched.len());
        for (entry, call) in aligned.iter().enumerate() {
            if let Some(call) = *call {
                let before = unmatched.partition_point(|other| *other < call);
                pairs.extend(unmatched.drain(..before).map(|call| self.unmatched_call(call)));
            }
            pairs.push(self.pair(entry, *call));
        }
        pairs.extend(unmatched.into_iter().map(|call| self.unmatched_call(call)));
        pairs
    }

    fn pair(&self, entry: usize, call: Option<usize>) -> CallPair {
        let resolved = &self.entries[entry];
        let state = match call {
            Some(call) if self.is_match(entry, call) => CallState::Matched,
            Some(_) => CallState::Different,
            None if self.mode.needs_every_entry() => CallState::Missing,
            None => CallState::Unused,
        };
        let differences = call.filter(|_| state == CallState::Different);
        let differences = differences.and_then(|call| resolved.differences(&self.calls[call])).unwrap_or_default();
        CallPair { state, entry: Some(entry), call, expected: Some(resolved.text()), differences }
    }

    fn unmatched_call(&self, call: usize) -> CallPair {
        let state = if self.mode.needs_every_call() { CallState::Unexpected } else { CallState::Extra };
        CallPair { state, entry: None, call: Some(call), expected: None, differences: Vec::new() }
    }
}

/// Converts a count, capped so that sums of counts stay in range.
fn as_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX).min(1 << 40)
}
