//! A worker thread's cache of Python instances, one per function.

use std::sync::Arc;

use karat_core::judgement::{Conclusion, ErrorKind, EvalError, Judgement, Limits};
use tracing::{trace, trace_span};

use crate::Isolation;
use crate::engine::Sandbox;
use crate::function::Function;
use crate::instance::{Instance, InstanceState, PrepareError, SourceRun};

/// Maximum number of instances per thread. Between traces, each takes a few megabytes.
pub(crate) const MAX_CACHED_INSTANCES: usize = 16;

/// Runs functions on traces, one after the other.
pub(crate) struct Worker {
    sandbox: Sandbox,
    limits: Limits,
    isolation: Isolation,
    /// The most recently used entry is last.
    cache: Vec<CacheEntry>,
    /// Functions whose source raises an error, takes too long or needs too much memory.
    failing_sources: Vec<Arc<Function>>,
}

struct CacheEntry {
    function: Arc<Function>,
    python: Python,
}

enum Python {
    /// Started or restored, and not used since.
    New(Instance),
    /// Used by earlier traces, with shared isolation.
    Used(Instance),
    /// The function cannot be prepared; a retry would fail in the same way.
    Failed(EvalError),
}

impl Worker {
    pub(crate) fn new(sandbox: Sandbox, limits: Limits, isolation: Isolation) -> Self {
        Self { sandbox, limits, isolation, cache: Vec::new(), failing_sources: Vec::new() }
    }

    /// Judges a trace in Python's marshal format.
    pub(crate) fn judge(&mut self, function: &Arc<Function>, trace: &[u8]) -> Judgement {
        let _span = trace_span!("judge", eval = %function.name).entered();
        let judgement = self.judge_with_reuse(function, trace);
        let elapsed_ms = judgement.elapsed.as_millis();
        match &judgement.conclusion {
            Conclusion::Verdict { passed, .. } => trace!(passed, elapsed_ms, "judged"),
            Conclusion::NotApplicable { .. } => trace!(elapsed_ms, "not applicable"),
            Conclusion::Error(error) => trace!(error = error.kind.name(), elapsed_ms, "not judged"),
        }
        judgement
    }

    fn judge_with_reuse(&mut self, function: &Arc<Function>, trace: &[u8]) -> Judgement {
        let (judgement, python) = match self.python_for(function) {
            Python::Failed(error) => (error_judgement(error.clone()), Some(Python::Failed(error))),
            Python::New(instance) => self.run(instance, trace),
            Python::Used(mut instance) => {
                let output = instance.judge(trace.to_vec(), self.limits);
                // Earlier traces may still occupy the memory that was missing.
                if output.hit_memory_limit {
                    if output.state == InstanceState::Dead || !instance.restore() {
                        drop(instance);
                        // The instance is no longer cached, so a new one is started.
                        return self.judge_with_reuse(function, trace);
                    }
                    self.run(instance, trace)
                } else {
                    (output.judgement, self.recycle(instance, output.state))
                }
            }
        };
        if let Some(python) = python {
            self.cache.push(CacheEntry { function: Arc::clone(function), python });
        }
        judgement
    }

    /// Runs a function in an unused instance. Also returns what to cache.
    fn run(&self, mut instance: Instance, trace: &[u8]) -> (Judgement, Option<Python>) {
        let output = instance.judge(trace.to_vec(), self.limits);
        (output.judgement, self.recycle(instance, output.state))
    }

    /// Prepares an instance for the next trace, if possible.
    fn recycle(&self, mut instance: Instance, state: InstanceState) -> Option<Python> {
        match (state, self.isolation) {
            (InstanceState::Dead, _) => None,
            (InstanceState::Clean, Isolation::Shared) => Some(Python::Used(instance)),
            (InstanceState::Clean | InstanceState::Dirty, _) => instance.restore().then_some(Python::New(instance)),
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
        self.start(function).map_or_else(Python::Failed, Python::New)
    }

    fn start(&mut self, function: &Arc<Function>) -> Result<Instance, EvalError> {
        let is_failing = |failing: &Arc<Function>| Arc::ptr_eq(failing, function);
        // Shared isolation separates traces only by namespace, so the source must run for each trace.
        if self.isolation == Isolation::Fresh && !self.failing_sources.iter().any(is_failing) {
            match Instance::prepare(&self.sandbox, function, self.limits, SourceRun::Once) {
                Ok(instance) => return Ok(instance),
                Err(PrepareError::Function(error)) => return Err(error),
                Err(PrepareError::SourceRun) => self.failing_sources.push(Arc::clone(function)),
            }
        }
        Instance::prepare(&self.sandbox, function, self.limits, SourceRun::EachTrace).map_err(|error| match error {
            PrepareError::Function(error) => error,
            PrepareError::SourceRun => EvalError::new(ErrorKind::Internal, "the source ran before the first trace"),
        })
    }
}

pub(crate) fn error_judgement(error: EvalError) -> Judgement {
    Judgement::not_run(error)
}
