//! Runs the eval functions of a project by name.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use karat_core::judgement::{ErrorKind, EvalContext, EvalError, Judgement, Limits};
use karat_core::port::EvalFunctions;
use serde_json::Value;
use tracing::Span;

use crate::Isolation;
use crate::engine::{Sandbox, THREAD_STACK};
use crate::error::SandboxError;
use crate::function::Function;
use crate::transcode::{transcode, transcode_pair};
use crate::worker::{Worker, error_judgement};

/// Eval functions with the worker threads that run them.
pub struct FunctionRunner {
    functions: BTreeMap<String, Arc<Function>>,
    requests: Mutex<Sender<Request>>,
}

struct Request {
    function: Arc<Function>,
    trace: Vec<u8>,
    reply: Sender<Judgement>,
    /// The caller's span, for logs.
    span: Span,
}

impl FunctionRunner {
    pub fn new(
        sandbox: &Sandbox,
        functions: Vec<Arc<Function>>,
        limits: Limits,
        isolation: Isolation,
        jobs: usize,
    ) -> Result<Self, SandboxError> {
        let (requests, receiver) = channel();
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..jobs.max(1) {
            let worker = Worker::new(sandbox.clone(), limits, isolation);
            let receiver = Arc::clone(&receiver);
            thread::Builder::new()
                .name("karat-eval".to_owned())
                .stack_size(THREAD_STACK)
                .spawn(move || serve(worker, &receiver))
                .map_err(|error| SandboxError::Engine(error.to_string()))?;
        }
        let functions = functions.into_iter().map(|function| (function.name.clone(), function)).collect();
        Ok(Self { functions, requests: Mutex::new(requests) })
    }
}

fn serve(mut worker: Worker, requests: &Mutex<Receiver<Request>>) {
    loop {
        let next = requests.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(request) = next else { return };
        let judgement = request.span.in_scope(|| worker.judge(&request.function, &request.trace));
        // The caller may have been cancelled.
        let _ = request.reply.send(judgement);
    }
}

impl EvalFunctions for FunctionRunner {
    fn judge(&self, name: &str, trace: &Value, context: &EvalContext) -> Judgement {
        self.judge_text(name, trace.to_string().as_bytes(), context)
    }
}

impl FunctionRunner {
    /// Runs a function on the JSON text of a trace.
    pub fn judge_text(&self, name: &str, trace: &[u8], context: &EvalContext) -> Judgement {
        let Some(function) = self.functions.get(name) else {
            return error_judgement(EvalError::new(ErrorKind::Validation, format!("unknown function '{name}'")));
        };
        let trace = if function.takes_context {
            let context = serde_json::to_vec(context).unwrap_or_default();
            transcode_pair(trace, &context)
        } else {
            transcode(trace).map(|transcoded| transcoded.marshal)
        };
        let trace = match trace {
            Ok(trace) => trace,
            Err(error) => return error_judgement(EvalError::new(ErrorKind::Validation, error.to_string())),
        };
        let (reply, receiver) = channel();
        let request = Request { function: Arc::clone(function), trace, reply, span: Span::current() };
        let _ = self.requests.lock().unwrap_or_else(PoisonError::into_inner).send(request);
        receiver.recv().unwrap_or_else(|_| {
            error_judgement(EvalError::new(ErrorKind::Internal, "a sandbox thread ended without a result"))
        })
    }
}
