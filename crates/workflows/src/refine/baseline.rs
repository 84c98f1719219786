//! The newest version of an eval beside what people say: the measure of candidates.

use std::sync::Arc;

use karat_evals::agreement::{PartAgreement, PartedAgreement, RatedVerdict};
use karat_evals::feedback::note_of;
use karat_evals::port::FeedbackStore;
use karat_evals::version::EvalVersion;
use karat_forge::refine::Example;

use super::eval_runner::EvalRunner;
use super::rated_traces::RatedTraces;
use crate::context::Context;
use crate::error::Error;
use crate::judge_stored::validated;

pub(super) struct Baseline {
    pub(super) version: EvalVersion,
    pub(super) traces: RatedTraces,
    /// Of the version on all traces, in their order.
    pub(super) verdicts: Vec<RatedVerdict>,
    pub(super) runner: EvalRunner,
}

impl Baseline {
    pub(super) async fn measure(
        version: EvalVersion,
        traces: RatedTraces,
        context: &Context<'_>,
    ) -> Result<Self, Error> {
        let function = Arc::new(validated(&version)?);
        let runner = EvalRunner::open(context)?;
        let verdicts = runner.judge(vec![function], &traces).await?.into_iter().flatten().collect();
        Ok(Self { version, traces, verdicts, runner })
    }

    /// Splits verdicts on all traces into the training part and the held-out part.
    pub(super) fn split(&self, verdicts: &[RatedVerdict]) -> (Vec<RatedVerdict>, Vec<RatedVerdict>) {
        let part = |held_out: bool| {
            let of_part = self.traces.0.iter().zip(verdicts).filter(|(trace, _)| trace.held_out == held_out);
            of_part.map(|(_, verdict)| verdict.clone()).collect()
        };
        (part(false), part(true))
    }

    pub(super) fn agreement(&self) -> PartedAgreement {
        let (training, held_out) = self.split(&self.verdicts);
        PartedAgreement { training: PartAgreement::of(&training), held_out: PartAgreement::of(&held_out) }
    }

    /// Chooses the traces that a model sees, with what people noted. All are of the training part.
    pub(super) async fn examples(&self, context: &Context<'_>) -> Result<Vec<Example>, Error> {
        let mut training = Vec::new();
        for (trace, verdict) in self.traces.0.iter().zip(&self.verdicts).filter(|(trace, _)| !trace.held_out) {
            training.push(Example {
                document: trace.document.clone(),
                verdict: verdict.passed,
                reason: verdict.reason.clone(),
                rating: trace.rating,
                note: None,
                trace_id: trace.id.clone(),
            });
        }
        let mut chosen = Example::choose(training);
        context
            .read_store(async |store| {
                for example in &mut chosen {
                    let statements = store.feedback_of(&example.trace_id).await?;
                    example.note = note_of(&statements, example.rating).map(str::to_owned);
                }
                Ok(chosen)
            })
            .await
    }
}
