//! Verdicts of Python eval functions and of captured states.
//!
//! Eval functions run outside of the core and are slow, so judging pauses here: the caller runs the requested
//! functions one by one, and none if the case is already decided.

use std::ops::ControlFlow;

use super::state::judge_state;
use super::tally::{Check, Tally};
use super::{Evidence, Field, Strictness, Verdict, judge_field};
use crate::judgement::{Conclusion, EvalContext, EvalResult, Judgement};
use crate::outcome::Cause;
use crate::state::CapturedStates;
use karat_cases::token::{TokenSources, looks_like_token};
use karat_cases::{EvalEntry, Expectation, INPUT_POINTER, Input, TextKind};
use karat_json::text::shorten;

/// A verdict that may still depend on eval functions and captured states.
#[derive(Debug)]
#[must_use]
pub struct PendingVerdict<'e> {
    expect: &'e Expectation,
    tokens: &'e TokenSources,
    states: Option<&'e CapturedStates>,
    evals_done: usize,
    is_decided: bool,
    tally: Tally,
}

/// The function to run next, with its parameters and reference.
#[derive(Debug, Clone, PartialEq)]
pub struct EvalCall<'e> {
    pub name: &'e str,
    pub context: EvalContext,
}

impl<'e> PendingVerdict<'e> {
    /// Judges a trace by all assertions except eval functions and state.
    pub fn start(evidence: Evidence<'e>, strictness: Strictness) -> Self {
        let mut tally = Tally::new(strictness);
        let is_decided = record_stray_tokens(evidence, &mut tally).is_break()
            || Field::ALL.into_iter().any(|field| judge_field(field, evidence, &mut tally).is_break());
        let expect = &evidence.case.expect;
        Self { expect, tokens: evidence.tokens, states: None, evals_done: 0, is_decided, tally }
    }

    /// Sets the states that were captured around the case, which are judged last.
    pub fn with_states(self, states: &'e CapturedStates) -> Self {
        Self { states: Some(states), ..self }
    }

    /// Returns the function to run next; `None` if the case is decided or all have run. Skips functions whose parameters
    /// have tokens without a value.
    pub fn next_eval(&mut self) -> Option<EvalCall<'e>> {
        while !self.is_decided {
            let entry = self.expect.evals.as_ref()?.get(self.evals_done)?;
            match resolve(entry, self.tokens) {
                Ok(context) => return Some(EvalCall { name: &entry.name, context }),
                Err(unresolved) => {
                    self.tally.record_unresolved(unresolved);
                    let _ = self.tally.record_item(Field::Evals, self.evals_done, Check::Skipped);
                    self.evals_done += 1;
                }
            }
        }
        None
    }

    /// Records the judgement of the function that `next_eval` returned.
    pub fn record_eval(&mut self, call: EvalCall<'_>, judgement: Judgement) {
        let EvalCall { name, context } = call;
        let flow = match &judgement.conclusion {
            Conclusion::Verdict { passed, reason } => {
                let check = Check::from_bool(*passed, || failure_message(name, judgement.score, reason));
                self.tally.record_item(Field::Evals, self.evals_done, check)
            }
            Conclusion::NotApplicable { .. } => self.tally.record_item(Field::Evals, self.evals_done, Check::Skipped),
            Conclusion::Error(error) => {
                // The traceback in the following lines goes into the details only.
                let summary = error.message.lines().next().unwrap_or_default();
                let message = format!("{name} errored ({}): {summary}", error.kind);
                self.tally.record_error(Field::Evals, Cause::Check, &message)
            }
        };
        self.tally.push_eval(EvalResult::new(name, context, judgement));
        self.evals_done += 1;
        self.is_decided = flow == ControlFlow::Break(());
    }

    /// Returns the verdict. Functions that were not run count as skipped checks.
    pub fn finish(self) -> Verdict {
        let strictness = self.tally.strictness();
        self.finish_part().with_vacuity(strictness, "/expect")
    }

    /// Returns the verdict of a part of a case, which may have no assertions.
    pub fn finish_part(mut self) -> Verdict {
        while let Some(EvalCall { name, .. }) = self.next_eval() {
            self.tally.warn(format!("{}: {name} was not run", Field::Evals));
            let _ = self.tally.record_item(Field::Evals, self.evals_done, Check::Skipped);
            self.evals_done += 1;
        }
        if !self.is_decided {
            let _ = judge_state(self.expect, self.states, self.tokens, &mut self.tally);
        }
        self.tally.into_verdict()
    }
}

/// Resolves the tokens of an entry, or returns those without a value.
fn resolve(entry: &EvalEntry, tokens: &TokenSources) -> Result<EvalContext, Vec<String>> {
    let mut unresolved = Vec::new();
    let mut context = EvalContext::default();
    for (key, value) in &entry.params {
        match tokens.resolve_value(value) {
            Ok(value) => drop(context.params.insert(key.clone(), value)),
            Err(tokens) => unresolved.extend(tokens),
        }
    }
    match entry.reference.as_ref().map(|reference| tokens.resolve_value(reference)).transpose() {
        Ok(reference) => context.reference = reference,
        Err(tokens) => unresolved.extend(tokens),
    }
    if unresolved.is_empty() { Ok(context) } else { Err(unresolved) }
}

fn failure_message(name: &str, score: Option<f64>, reason: &str) -> String {
    let score = score.map(|score| format!(" with score {score}")).unwrap_or_default();
    if reason.is_empty() { format!("{name} failed{score}") } else { format!("{name} failed{score}: {reason}") }
}

/// Records strings that look like a token but are sent or compared literally.
fn record_stray_tokens(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    // The messages of a conversation are judged with its turns.
    if let Some(Input { message }) = &evidence.case.input
        && looks_like_token(message)
    {
        let warning = format!("'{}' is not a valid token and is sent literally", shorten(message, 60));
        tally.record_mistake(INPUT_POINTER, warning)?;
    }
    let mut mistakes = Vec::new();
    evidence.case.expect.visit_texts(&mut |kind, path, text| {
        if kind != TextKind::Pattern && looks_like_token(text) {
            let use_of_text = if kind == TextKind::Parameter { "passed" } else { "compared" };
            let message = format!("'{}' is not a valid token and is {use_of_text} literally", shorten(text, 60));
            mistakes.push((path.to_string(), message));
        }
    });
    for (pointer, message) in mistakes {
        tally.record_mistake(&pointer, message)?;
    }
    ControlFlow::Continue(())
}
