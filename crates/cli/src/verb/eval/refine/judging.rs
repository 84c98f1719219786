//! Runs functions over the rated traces, in the sandbox.

use std::sync::Arc;

use karat_core::agreement::RatedVerdict;
use karat_core::judgement::{Conclusion, Limits};
use karat_sandbox::{Function, Input, Isolation, Sandbox, Task};

use super::rated::Parted;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::runtime_that_ends;
use karat_workflows::context::sandbox::open_sandbox;
use karat_workflows::settings::Settings;

/// The sandbox, and how functions run in it.
pub(super) struct Court {
    sandbox: Sandbox,
    limits: Limits,
    jobs: usize,
}

impl Court {
    pub(super) fn open(settings: &Settings, environment: &Environment) -> Result<Self, Failure> {
        Ok(Self {
            sandbox: open_sandbox(environment.process.guest.as_deref())?,
            limits: settings.eval_limits.limits().unwrap_or_default(),
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
        })
    }

    /// Returns what each function says of each trace, of either part, in the traces' order.
    pub(super) fn judge(
        &self,
        functions: &[Arc<Function>],
        parted: &Parted,
    ) -> Result<Vec<Vec<RatedVerdict>>, Failure> {
        let task = Task {
            functions: functions.to_vec(),
            limits: self.limits,
            isolation: Isolation::Namespace,
            jobs: self.jobs,
        };
        let inputs = parted.traces.iter().map(|trace| Input { key: (), text: Ok(trace.document.clone().into_bytes()) });
        let judged = runtime_that_ends()?.block_on(self.sandbox.judge_all(&task, inputs.collect()))?;
        let mut said: Vec<Vec<RatedVerdict>> = functions.iter().map(|_| Vec::new()).collect();
        for (trace, judged) in parted.traces.iter().zip(judged) {
            for (verdicts, judgement) in said.iter_mut().zip(judged.judgements) {
                let (passed, reason) = match judgement.conclusion {
                    Conclusion::Verdict { passed, reason } => (Some(passed), reason),
                    Conclusion::Error(error) => (None, error.message),
                };
                verdicts.push(RatedVerdict { trace_id: trace.id.clone(), passed, reason, rating: trace.rating });
            }
        }
        if said.iter().any(|verdicts| verdicts.len() != parted.traces.len()) {
            return Err(Failure::errored("not all traces were judged"));
        }
        Ok(said)
    }

    pub(super) fn guest_hash(&self) -> &str {
        self.sandbox.guest_hash()
    }
}
