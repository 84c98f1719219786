//! Runs eval functions on rated traces in the sandbox.

use std::sync::Arc;

use karat_core::judgement::Conclusion;
use karat_evals::agreement::RatedVerdict;
use karat_sandbox::{Function, Input, Isolation, Sandbox};

use super::rated_traces::RatedTraces;
use crate::context::Context;
use crate::context::sandbox::SandboxOptions;
use crate::error::Error;

pub(super) struct EvalRunner {
    sandbox: Sandbox,
    options: SandboxOptions,
}

impl EvalRunner {
    pub(super) fn open(context: &Context<'_>) -> Result<Self, Error> {
        let options = SandboxOptions {
            limits: context.settings.eval_limits.limits().unwrap_or_default(),
            isolation: Isolation::Fresh,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
        };
        Ok(Self { sandbox: context.open_sandbox()?, options })
    }

    /// Returns the verdicts of each function on all traces, in the order of the traces.
    pub(super) async fn judge(
        &self,
        functions: Vec<Arc<Function>>,
        traces: &RatedTraces,
    ) -> Result<Vec<Vec<RatedVerdict>>, Error> {
        let mut all: Vec<Vec<RatedVerdict>> = functions.iter().map(|_| Vec::new()).collect();
        let inputs = traces.0.iter().map(|trace| Input {
            key: (trace.id.clone(), trace.rating),
            text: Ok(trace.document.text().as_bytes().to_vec()),
        });
        let judged = self.sandbox.judge_all(&self.options.task(functions), inputs.collect()).await?;
        for judged_trace in judged {
            let (trace_id, rating) = judged_trace.key;
            for (verdicts, judgement) in all.iter_mut().zip(judged_trace.judgements) {
                let (passed, reason) = match judgement.conclusion {
                    Conclusion::Verdict { passed, reason } => (Some(passed), reason),
                    // Counts as wrong, like an error, so that a candidate cannot improve by giving no verdict.
                    Conclusion::NotApplicable { reason } => (None, reason),
                    Conclusion::Error(error) => (None, error.message),
                };
                verdicts.push(RatedVerdict { trace_id: trace_id.clone(), passed, reason, rating });
            }
        }
        if all.iter().any(|verdicts| verdicts.len() != traces.0.len()) {
            return Err(Error::no_verdict("not all traces were judged"));
        }
        Ok(all)
    }

    pub(super) fn guest_hash(&self) -> &str {
        self.sandbox.guest_hash()
    }
}
