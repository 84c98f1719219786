//! A thread's Pythons: one for each function that it runs.

use std::sync::Arc;
use std::time::Duration;

use karat_core::judgement::{Conclusion, ErrorKind, EvalError, Judgement, Limits};
use tracing::{trace, trace_span};

use crate::Isolation;
use crate::engine::Sandbox;
use crate::function::Function;
use crate::instance::{Instance, Left, Ran};

/// How many Pythons a thread keeps; each can grow to a function's limit.
pub(crate) const MOST_SEATS: usize = 4;

/// Runs functions over traces, one after the other.
pub(crate) struct Worker {
    sandbox: Sandbox,
    limits: Limits,
    isolation: Isolation,
    /// The one that was used last is at the end.
    seats: Vec<Seat>,
}

struct Seat {
    function: Arc<Function>,
    python: Python,
}

enum Python {
    /// Nothing ran in it since it was made or put back.
    New(Instance),
    Used(Instance),
    /// The function cannot be prepared, and a second try would end alike.
    Refused(EvalError),
}

impl Worker {
    pub(crate) fn new(sandbox: Sandbox, limits: Limits, isolation: Isolation) -> Self {
        Self { sandbox, limits, isolation, seats: Vec::new() }
    }

    /// Judges a trace, which comes in Python's marshal format.
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
            Python::Refused(error) => (errored(error.clone()), Python::Refused(error)),
            Python::New(instance) => return self.run(function, instance, trace),
            Python::Used(mut instance) => {
                let ran = instance.judge(trace.to_vec(), self.limits);
                if depends_on_earlier_traces(&ran) {
                    if ran.left != Left::Dead && instance.put_back() {
                        return self.run(function, instance, trace);
                    }
                    drop(instance);
                    // In a new one, for this one's seat is empty.
                    return self.judge_with_reuse(function, trace);
                }
                let judgement = ran.judgement;
                match self.after(function, instance, ran.left) {
                    Some(python) => (judgement, python),
                    None => return judgement,
                }
            }
        };
        self.seats.push(Seat { function: Arc::clone(function), python });
        judgement
    }

    /// Runs a function in a Python in which nothing ran before.
    fn run(&mut self, function: &Arc<Function>, mut instance: Instance, trace: &[u8]) -> Judgement {
        let ran = instance.judge(trace.to_vec(), self.limits);
        if let Some(python) = self.after(function, instance, ran.left) {
            self.seats.push(Seat { function: Arc::clone(function), python });
        }
        ran.judgement
    }

    /// Makes a Python ready for the next trace, if it can be.
    fn after(&self, function: &Function, mut instance: Instance, left: Left) -> Option<Python> {
        let as_it_is = function.leaves_no_trace && self.isolation == Isolation::Namespace;
        match left {
            Left::Dead => None,
            Left::InOrder if as_it_is => Some(Python::Used(instance)),
            Left::InOrder | Left::Upset => instance.put_back().then_some(Python::New(instance)),
        }
    }

    /// Takes the function's Python out of its seat, or makes one.
    fn python_for(&mut self, function: &Arc<Function>) -> Python {
        if let Some(index) = self.seats.iter().position(|seat| Arc::ptr_eq(&seat.function, function)) {
            return self.seats.remove(index).python;
        }
        if self.seats.len() >= MOST_SEATS {
            self.seats.remove(0);
        }
        match Instance::prepare(&self.sandbox, function, self.limits) {
            Ok(instance) => Python::New(instance),
            Err(error) => Python::Refused(error),
        }
    }
}

/// Tells whether what came out could be another in a Python that is as new: an address shows in it, or memory that
/// earlier traces used was not free yet.
fn depends_on_earlier_traces(Ran { judgement, was_refused, .. }: &Ran) -> bool {
    let text = match &judgement.conclusion {
        // It would only take as long again.
        Conclusion::Error(error) if error.kind == ErrorKind::Timeout => return false,
        _ if *was_refused => return true,
        Conclusion::Verdict { reason, .. } => reason,
        Conclusion::Error(error) => &error.message,
    };
    [text, &judgement.stdout, &judgement.stderr].into_iter().any(|text| text.contains(" at 0x"))
}

pub(crate) fn errored(error: EvalError) -> Judgement {
    Judgement {
        conclusion: Conclusion::Error(error),
        elapsed: Duration::ZERO,
        stdout: String::new(),
        stderr: String::new(),
    }
}
