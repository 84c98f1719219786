//! Refines an eval: a model rewrites it from rated traces, and a person decides what to adopt.
//!
//! The model sees the code and only the rated traces of the training set. Its candidates are validated, run in the
//! sandbox on both sets and compared with the newest version. An [`Adoption`] turns a candidate into a version:
//! [`Adoption::next`] returns the next step, [`Adoption::apply`] applies a command.

mod adoption;
mod baseline;
mod candidate_files;
mod eval_runner;
mod rated_traces;
mod rounds;

use std::path::PathBuf;

use karat_core::trace::Usage;
use karat_evals::agreement::Refinement;
use karat_evals::version::EvalVersion;
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use self::adoption::{AdoptableCode, Adoption, Command, CommandOutcome, EvalFile, Refusal, Step};
use self::baseline::Baseline;
use self::candidate_files::write_candidates;
use self::rated_traces::RatedTraces;
use self::rounds::Rounds;
use crate::cancel::run_until_cancelled;
use crate::context::Context;
use crate::context::chat_models::{make_rewriter, select_rewriter};
use crate::error::Error;
use crate::event::EventSink;
use crate::stored_eval::{find_eval, select_version, versions_of};
use crate::trace_filter::TraceOrigin;

/// The share of rated traces that is held out by default.
pub const DEFAULT_HOLD_OUT: f64 = 0.4;

const MAX_CANDIDATES: usize = 20;
const MAX_ROUNDS: usize = 10;

#[derive(Debug, Clone)]
pub struct Request {
    /// The eval's name, with or without `eval_`.
    pub eval: String,
    /// Number of candidates per round.
    pub candidates: usize,
    /// Number of rounds; later rounds include the results of earlier ones.
    pub rounds: usize,
    /// The share of rated traces that the model does not see.
    pub hold_out: f64,
    /// The rated traces to use.
    pub origin: TraceOrigin,
    /// The model, as `PROVIDER:MODEL`; default: that of the settings.
    pub model: Option<String>,
    pub write_to: Option<CandidateFolder>,
}

/// The folder for candidates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CandidateFolder {
    /// The folder of the eval in `.karat/refine`; older candidates in it are removed.
    Own,
    Given(PathBuf),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The code and this number of rated traces are sent to the model.
    Prompting { model: String, traces: usize },
    /// A later round failed and is the last one; earlier candidates are still used.
    RoundFailed { model: String, message: String },
    /// The usage of all rounds, as reported by the model.
    Used(Usage),
}

/// The measured candidates.
pub struct Outcome {
    pub refinement: Refinement,
    /// The decision on the candidates; an error if none can be run.
    pub adoption: Result<Adoption, Error>,
}

/// The prompt for the model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Question {
    pub system: String,
    pub document: Value,
    pub schema: Value,
}

pub async fn refine(
    request: &Request,
    context: &Context<'_>,
    events: &mut dyn EventSink<Event>,
    cancel: &CancellationToken,
) -> Result<Outcome, Error> {
    Box::pin(run_until_cancelled(cancel, ask_and_measure(request, context, events))).await
}

async fn ask_and_measure(
    request: &Request,
    context: &Context<'_>,
    events: &mut dyn EventSink<Event>,
) -> Result<Outcome, Error> {
    request.validate()?;
    // Fail early if no model is configured.
    let chosen = select_rewriter(request.model.as_deref(), &context.settings)?;
    let (version, traces) = read_rated(request, context).await?;
    let model = make_rewriter(&chosen, &context.settings, context.notices)?;
    let baseline = Baseline::measure(version, traces, context).await?;
    let mut rounds = Rounds::new(request, &baseline, baseline.examples(context).await?);
    rounds.ask(model.as_ref(), events).await?;
    let (mut refinement, problem) = rounds.into_refinement(model.identity());
    if refinement.candidates.is_empty() {
        let message = format!("{} did not write a new valid function", refinement.model);
        let error = Error::unavailable(message).quote(problem.unwrap_or_default());
        return Ok(Outcome { refinement, adoption: Err(error) });
    }
    if let Some(folder) = &request.write_to {
        write_candidates(&mut refinement, folder, &context.settings)?;
    }
    let adoption = Adoption::new(&refinement, &baseline);
    Ok(Outcome { refinement, adoption: Ok(adoption) })
}

/// Returns the prompt of the first round, without sending it.
pub async fn question(request: &Request, context: &Context<'_>) -> Result<Question, Error> {
    request.validate()?;
    let (version, traces) = read_rated(request, context).await?;
    let baseline = Baseline::measure(version, traces, context).await?;
    let rounds = Rounds::new(request, &baseline, baseline.examples(context).await?);
    let prompt = rounds.rewrite_request().prompt();
    let document = serde_json::from_str(&prompt.user)
        .map_err(|error| Error::invalid(format!("the question is not valid JSON: {error}")))?;
    Ok(Question { system: prompt.system, document, schema: prompt.schema })
}

impl Request {
    fn validate(&self) -> Result<(), Error> {
        if !(self.hold_out > 0.0 && self.hold_out < 1.0) {
            return Err(Error::invalid("--hold-out must be between 0 and 1").hint("0.4 holds out two of five traces"));
        }
        for (flag, value, max) in [("candidates", self.candidates, MAX_CANDIDATES), ("rounds", self.rounds, MAX_ROUNDS)]
        {
            if !(1..=max).contains(&value) {
                return Err(Error::invalid(format!("--{flag} must be between 1 and {max}")));
            }
        }
        Ok(())
    }
}

/// Reads the newest version of the eval and the rated traces. Fails if there are too few.
async fn read_rated(request: &Request, context: &Context<'_>) -> Result<(EvalVersion, RatedTraces), Error> {
    let (version, traces) = context
        .read_store(async |store| {
            let eval = find_eval(store, &request.eval).await?;
            let versions = versions_of(store, &eval).await?;
            warn_of_leaks(&versions, request.hold_out, context);
            let version = select_version(&versions, None)?;
            let traces =
                RatedTraces::read(store, &eval.eval_id, request.hold_out, request.origin, context.notices).await?;
            Ok((version, traces))
        })
        .await?;
    traces.check_sizes(&version.eval_id)?;
    Ok((version, traces))
}

/// Warns if the model that wrote the newest code may have seen held-out traces: a larger share holds out traces that an
/// earlier refinement trained on.
fn warn_of_leaks(versions: &[EvalVersion], hold_out: f64, context: &Context<'_>) {
    if hold_out > DEFAULT_HOLD_OUT && versions.iter().any(EvalVersion::is_refined) {
        context.notices.warn(
            "an earlier version was refined: if its --hold-out was smaller, its model has seen traces that are now \
             held out",
        );
    }
}
