//! A model rewrites an eval after what people say of traces, and a person decides what is adopted.
//!
//! The model sees the code and rated traces of the training part only. What it writes is validated, run in the sandbox over
//! both parts and measured beside the newest version. An [`Adoption`] makes a candidate a version: [`Adoption::next`]
//! returns the next step, [`Adoption::apply`] does what a person wants.

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

pub use self::adoption::{AdoptableCode, Adoption, Applied, Command, EvalFile, Refusal, Step};
use self::baseline::Baseline;
use self::candidate_files::write_candidates;
use self::rated_traces::RatedTraces;
use self::rounds::Rounds;
use crate::cancel::unless_cancelled;
use crate::context::Context;
use crate::context::chat_models::{chosen_rewriter, make_rewriter};
use crate::error::Error;
use crate::event::EventSink;
use crate::stored_eval::{find_eval, version_among, versions_of};

/// The share of rated traces that is held out by default.
pub const DEFAULT_HOLD_OUT: f64 = 0.4;

/// More is a mistake.
const MAX_CANDIDATES: usize = 20;
const MAX_ROUNDS: usize = 10;

#[derive(Debug, Clone)]
pub struct Request {
    /// The eval's name, with or without `eval_`.
    pub eval: String,
    /// How many candidates the model is asked for, in each round.
    pub candidates: usize,
    /// How often the model is asked; later rounds know what was tried before.
    pub rounds: usize,
    /// The share of rated traces that the model does not see.
    pub hold_out: f64,
    /// The model, as `KIND:MODEL`; else that of the settings.
    pub model: Option<String>,
    pub write_to: Option<CandidateFolder>,
}

/// Where candidates are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CandidateFolder {
    /// The folder of the eval in `.karat/refine`, which then holds these candidates only.
    Own,
    Given(PathBuf),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The code and so many traces, with what people said of them, go to the model.
    Asking { model: String, traces: usize },
    /// A later round failed, and ends the rounds; what was written before counts.
    RoundFailed { model: String, message: String },
    /// What all rounds used, as far as the model says.
    Used(Usage),
}

/// What the model wrote, measured.
pub struct Outcome {
    pub refinement: Refinement,
    /// The decision on the candidates; an error where none can be run.
    pub adoption: Result<Adoption, Error>,
}

/// What a model would be asked.
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
    Box::pin(unless_cancelled(cancel, ask_and_measure(request, context, events))).await
}

async fn ask_and_measure(
    request: &Request,
    context: &Context<'_>,
    events: &mut dyn EventSink<Event>,
) -> Result<Outcome, Error> {
    request.validate()?;
    // Fail early where no model is configured.
    let chosen = chosen_rewriter(request.model.as_deref(), &context.settings)?;
    let (version, traces) = read_rated(request, context).await?;
    let model = make_rewriter(&chosen, &context.settings, context.notices)?;
    let baseline = Baseline::measure(version, traces, context).await?;
    let mut rounds = Rounds::new(request, &baseline, baseline.examples(context).await?);
    rounds.ask(model.as_ref(), events).await?;
    let (mut refinement, problem) = rounds.into_refinement(model.identity());
    if refinement.candidates.is_empty() {
        let message = format!("{} wrote no other function that can be run", refinement.model);
        let error = Error::unavailable(message).quote(problem.unwrap_or_default());
        return Ok(Outcome { refinement, adoption: Err(error) });
    }
    if let Some(folder) = &request.write_to {
        write_candidates(&mut refinement, folder, &context.settings)?;
    }
    let adoption = Adoption::new(&refinement, &baseline);
    Ok(Outcome { refinement, adoption: Ok(adoption) })
}

/// Returns what a model would be asked first.
pub async fn question(request: &Request, context: &Context<'_>) -> Result<Question, Error> {
    request.validate()?;
    let (version, traces) = read_rated(request, context).await?;
    let baseline = Baseline::measure(version, traces, context).await?;
    let rounds = Rounds::new(request, &baseline, baseline.examples(context).await?);
    let prompt = rounds.rewriting().prompt();
    let document = serde_json::from_str(&prompt.user)
        .map_err(|error| Error::invalid(format!("the question is not JSON: {error}")))?;
    Ok(Question { system: prompt.system, document, schema: prompt.schema })
}

impl Request {
    fn validate(&self) -> Result<(), Error> {
        if !(self.hold_out > 0.0 && self.hold_out < 1.0) {
            return Err(Error::invalid("--hold-out must be between 0 and 1").hint("0.4 holds out two traces of five"));
        }
        for (flag, given, max) in [("candidates", self.candidates, MAX_CANDIDATES), ("rounds", self.rounds, MAX_ROUNDS)]
        {
            if !(1..=max).contains(&given) {
                return Err(Error::invalid(format!("--{flag} must be from 1 to {max}")));
            }
        }
        Ok(())
    }
}

/// Reads the newest version of the eval, and enough rated traces.
async fn read_rated(request: &Request, context: &Context<'_>) -> Result<(EvalVersion, RatedTraces), Error> {
    let (version, traces) = context
        .read_store(async |store| {
            let eval = find_eval(store, &request.eval).await?;
            let versions = versions_of(store, &eval).await?;
            warn_of_leaks(&versions, request.hold_out, context);
            let version = version_among(&versions, None)?;
            let traces = RatedTraces::read(store, &eval.eval_id, request.hold_out, context.notices).await?;
            Ok((version, traces))
        })
        .await?;
    traces.check_sizes(&version.eval_id)?;
    Ok((version, traces))
}

/// Warns where the held-out part may be known to the model that wrote the newest code: a larger share holds out traces that
/// an earlier refinement showed to a model.
fn warn_of_leaks(versions: &[EvalVersion], hold_out: f64, context: &Context<'_>) {
    if hold_out > DEFAULT_HOLD_OUT && versions.iter().any(EvalVersion::is_refined) {
        context.notices.warn(
            "a version was refined before: with a larger --hold-out than then, its model was told of traces that are \
             held out now",
        );
    }
}
