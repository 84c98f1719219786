//! A worker thread's cache of Python instances, one per function.

use std::sync::Arc;
use std::time::Duration;

use karat_core::judgement::{Conclusion, ErrorKind, EvalError, Judgement, Limits};
use tracing::{trace, trace_span};

use crate::Isolation;
use crate::engine::Sandbox;
use crate::function::Function;
use crate::instance::{Instance, InstanceState, RunOutput};

/// Maximum number of instances per thread; each can grow to a function's memory limit.
pub(crate) const MAX_CACHED_INSTANCES: usize = 4;

/// Runs functions on traces, one after the other.
pub(crate) struct Worker {
    sandbox: Sandbox,
    limits: Limits,
    isolation: Isolation,
    /// The most recently used entry is last.
    cache: Vec<CacheEntry>,
}

struct CacheEntry {
    function: Arc<Function>,
    python: Python,
}

enum Python {
    /// Nothing ran in it since it was started or restored.
    New(Instance),
    Used(Instance),
    /// The function cannot be prepared, and a retry would fail the same way.
    Failed(EvalError),
}

impl Worker {
    pub(crate) fn new(sandbox: Sandbox, limits: Limits, isolation: Isolation) -> Self {
        Self { sandbox, limits, isolation, cache: Vec::new() }
    }

    /// Judges a trace in Python's marshal format.
    pub(crate) fn judge(&mut self, function: &Arc<Function>, trace: &[u8]) -> Judgement {
        let _span = trace_span!("judge", eval = %function.name).entered();
        let judgement = self.judge_with_reuse(function, trace);
        let elapsed_ms = judgement.elapsed.as_millis();
        match &judgement.conclusion {
            Conclusion::Verdict { passed, .. } => trace!(passed, elapsed_ms, "judged"),
            Conclusion::Error(error) => trace!(error = error.kind.name(), elapsed_ms, "not judged"),
        }
        judgement
    }

    fn judge_with_reuse(&mut self, function: &Arc<Function>, trace: &[u8]) -> Judgement {
        let (judgement, python) = match self.python_for(function) {
            Python::Failed(error) => (error_judgement(error.clone()), Python::Failed(error)),
            Python::New(instance) => return self.run(function, instance, trace),
            Python::Used(mut instance) => {
                let output = instance.judge(trace.to_vec(), self.limits);
                if depends_on_earlier_traces(&output) {
                    if output.state != InstanceState::Dead && instance.restore() {
                        return self.run(function, instance, trace);
                    }
                    drop(instance);
                    // The instance is no longer cached, so a new one is started.
                    return self.judge_with_reuse(function, trace);
                }
                let judgement = output.judgement;
                match self.recycle(function, instance, output.state) {
                    Some(python) => (judgement, python),
                    None => return judgement,
                }
            }
        };
        self.cache.push(CacheEntry { function: Arc::clone(function), python });
        judgement
    }

    /// Runs a function in an instance in which nothing ran before.
    fn run(&mut self, function: &Arc<Function>, mut instance: Instance, trace: &[u8]) -> Judgement {
        let output = instance.judge(trace.to_vec(), self.limits);
        if let Some(python) = self.recycle(function, instance, output.state) {
            self.cache.push(CacheEntry { function: Arc::clone(function), python });
        }
        output.judgement
    }

    /// Prepares an instance for the next trace, if possible.
    fn recycle(&self, function: &Function, mut instance: Instance, state: InstanceState) -> Option<Python> {
        let can_reuse = function.is_stateless && self.isolation == Isolation::Namespace;
        match state {
            InstanceState::Dead => None,
            InstanceState::Clean if can_reuse => Some(Python::Used(instance)),
            InstanceState::Clean | InstanceState::Dirty => instance.restore().then_some(Python::New(instance)),
        }
    }

    /// Takes the function's Python out of the cache, or starts one.
    fn python_for(&mut self, function: &Arc<Function>) -> Python {
        if let Some(index) = self.cache.iter().position(|entry| Arc::ptr_eq(&entry.function, function)) {
            return self.cache.remove(index).python;
        }
        if self.cache.len() >= MAX_CACHED_INSTANCES {
            self.cache.remove(0);
        }
        match Instance::prepare(&self.sandbox, function, self.limits) {
            Ok(instance) => Python::New(instance),
            Err(error) => Python::Failed(error),
        }
    }
}

/// Whether a new Python could give another result: the output shows an address, or memory ran out that earlier traces
/// may still have occupied.
fn depends_on_earlier_traces(RunOutput { judgement, hit_memory_limit, .. }: &RunOutput) -> bool {
    let text = match &judgement.conclusion {
        // A second attempt would take as long again.
        Conclusion::Error(error) if error.kind == ErrorKind::Timeout => return false,
        _ if *hit_memory_limit => return true,
        Conclusion::Verdict { reason, .. } => reason,
        Conclusion::Error(error) => &error.message,
    };
    [text, &judgement.stdout, &judgement.stderr].into_iter().any(|text| text.contains(" at 0x"))
}

pub(crate) fn error_judgement(error: EvalError) -> Judgement {
    Judgement {
        conclusion: Conclusion::Error(error),
        elapsed: Duration::ZERO,
        stdout: String::new(),
        stderr: String::new(),
    }
}
