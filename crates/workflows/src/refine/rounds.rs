//! Rounds in which a model writes candidates; each is measured before the next.

use std::sync::Arc;

use karat_core::chat::ChatModel;
use karat_core::rubric::total_usage;
use karat_evals::agreement::{Candidate, Refinement, RefusedCode, SplitAgreement, rank};
use karat_evals::version::EvalVersion;
use karat_forge::refine::{Example, ProposedCode, Rewrite, RewriteRequest, TriedCode, rewrite};
use karat_sandbox::{Finding, Function};

use super::baseline::Baseline;
use super::{Event, Request};
use crate::error::Error;
use crate::event::EventSink;
use crate::judge_stored::validate_with_options;

pub(super) struct Rounds<'r> {
    request: &'r Request,
    baseline: &'r Baseline,
    current: SplitAgreement,
    examples: Vec<Example>,
    /// Code of earlier rounds, as shown to the model.
    tried: Vec<TriedCode>,
    /// The same code with all measurements.
    measured: Vec<Candidate>,
    refused: Vec<RefusedCode>,
    /// The problem of the last answer as a whole.
    problem: Option<String>,
}

impl<'r> Rounds<'r> {
    pub(super) fn new(request: &'r Request, baseline: &'r Baseline, examples: Vec<Example>) -> Self {
        Self {
            request,
            baseline,
            current: baseline.agreement(),
            examples,
            tried: Vec::new(),
            measured: Vec::new(),
            refused: Vec::new(),
            problem: None,
        }
    }

    pub(super) fn rewrite_request(&self) -> RewriteRequest<'_> {
        RewriteRequest {
            eval_id: &self.baseline.version.eval_id,
            code: &self.baseline.version.code,
            wanted: self.request.candidates,
            training: &self.current.training,
            examples: &self.examples,
            tried: &self.tried,
        }
    }

    pub(super) async fn ask(&mut self, model: &dyn ChatModel, events: &mut dyn EventSink<Event>) -> Result<(), Error> {
        let identity = model.identity();
        emit(events, Event::Prompting { model: identity.clone(), traces: self.examples.len() })?;
        let version = &self.baseline.version;
        let mut usages = Vec::new();
        for _ in 0..self.request.rounds {
            let check = |code: &str| check(code, version).map(drop);
            let Rewrite { candidates, refused, problem, usage } =
                match rewrite(model, self.rewrite_request(), &check).await {
                    Ok(rewritten) => rewritten,
                    // Candidates of earlier rounds are still useful.
                    Err(error) if !self.tried.is_empty() => {
                        emit(events, Event::RoundFailed { model: identity, message: error.message })?;
                        break;
                    }
                    Err(error) => return Err(Error::unavailable(format!("{identity}: {}", error.message))),
                };
            usages.push(usage);
            self.problem = problem;
            self.refused.extend(refused);
            self.measure(candidates).await?;
        }
        match total_usage(usages.iter().map(Option::as_ref)) {
            Some(usage) => emit(events, Event::Used(usage)),
            None => Ok(()),
        }
    }

    /// Judges all traces with the proposed code.
    async fn measure(&mut self, proposed: Vec<ProposedCode>) -> Result<(), Error> {
        let Baseline { version, traces, verdicts: current, runner } = self.baseline;
        let (functions, explanations): (Vec<Arc<Function>>, Vec<String>) = proposed
            .into_iter()
            .filter_map(|candidate| Some((Arc::new(check(&candidate.code, version).ok()?), candidate.explanation)))
            .unzip();
        if functions.is_empty() {
            return Ok(());
        }
        let judged = runner.judge(functions.clone(), traces).await?;
        let (_, current) = self.baseline.split(current);
        for ((function, explanation), verdicts) in functions.into_iter().zip(explanations).zip(judged) {
            let code = function.source.to_string();
            let (training, held_out) = self.baseline.split(&verdicts);
            let parts = (code.clone(), function.code_hash.clone(), explanation);
            let candidate =
                Candidate::measure(&version.eval_id, version.version, parts, &training, (&current, &held_out));
            self.tried.push(TriedCode { code, training: candidate.agreement.training });
            self.measured.push(candidate);
        }
        Ok(())
    }

    /// Returns the ranked candidates, and the problem of the last answer.
    pub(super) fn into_refinement(self, model: String) -> (Refinement, Option<String>) {
        let (training, held_out) = self.baseline.traces.sizes();
        let mut candidates = self.measured;
        rank(&mut candidates);
        let refinement = Refinement {
            eval_id: self.baseline.version.eval_id.clone(),
            version: self.baseline.version.version,
            model,
            training,
            held_out,
            current: self.current,
            candidates,
            refused: self.refused,
        };
        (refinement, self.problem)
    }
}

fn emit(events: &mut dyn EventSink<Event>, event: Event) -> Result<(), Error> {
    if events.emit(event).is_break() { Err(Error::cancelled()) } else { Ok(()) }
}

/// Validates code of a model, which may use the optional features of the version; the errors are sent back to it.
pub(super) fn check(code: &str, version: &EvalVersion) -> Result<Function, Vec<String>> {
    let EvalVersion { eval_id, options, .. } = version;
    let text = |finding: &Finding| {
        let line = code.get(..finding.range.start).map_or(1, |before| before.matches('\n').count() + 1);
        let help = finding.help.as_deref().map(|help| format!(" ({help})")).unwrap_or_default();
        format!("line {line}: {}{help}", finding.message)
    };
    let function =
        validate_with_options(code, options).map_err(|findings| findings.iter().map(text).collect::<Vec<_>>())?;
    if function.name == *eval_id {
        Ok(function)
    } else {
        Err(vec![format!("the function is called {}, and must be called {eval_id}", function.name)])
    }
}
