//! The agreement of an eval's newest version with ratings: the baseline for candidates.

use std::sync::Arc;

use karat_evals::agreement::{RatedVerdict, SetAgreement, SplitAgreement};
use karat_evals::feedback::note_of;
use karat_evals::port::FeedbackStore;
use karat_evals::version::EvalVersion;
use karat_forge::refine::Example;

use super::eval_runner::EvalRunner;
use super::rated_traces::RatedTraces;
use crate::context::Context;
use crate::error::Error;
use crate::judge_stored::validate_version;

pub(super) struct Baseline {
    pub(super) version: EvalVersion,
    pub(super) traces: RatedTraces,
    /// Verdicts of the version on all traces, in order.
    pub(super) verdicts: Vec<RatedVerdict>,
    pub(super) runner: EvalRunner,
}

impl Baseline {
    pub(super) async fn measure(
        version: EvalVersion,
        traces: RatedTraces,
        context: &Context<'_>,
    ) -> Result<Self, Error> {
        let function = Arc::new(validate_version(&version)?);
        let runner = EvalRunner::open(context)?;
        let verdicts = runner.judge(vec![function], &traces).await?.into_iter().flatten().collect();
        Ok(Self { version, traces, verdicts, runner })
    }

    /// Splits verdicts on all traces into the training set and the held-out set.
    pub(super) fn split(&self, verdicts: &[RatedVerdict]) -> (Vec<RatedVerdict>, Vec<RatedVerdict>) {
        let subset = |held_out: bool| {
            let in_set = self.traces.0.iter().zip(verdicts).filter(|(trace, _)| trace.held_out == held_out);
            in_set.map(|(_, verdict)| verdict.clone()).collect()
        };
        (subset(false), subset(true))
    }

    pub(super) fn agreement(&self) -> SplitAgreement {
        let (training, held_out) = self.split(&self.verdicts);
        SplitAgreement { training: SetAgreement::of(&training), held_out: SetAgreement::of(&held_out) }
    }

    /// Chooses traces of the training set to show to the model, with notes of people.
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
                    let feedback = store.feedback_of(&example.trace_id).await?;
                    example.note = note_of(&feedback, example.rating).map(str::to_owned);
                }
                Ok(chosen)
            })
            .await
    }
}
