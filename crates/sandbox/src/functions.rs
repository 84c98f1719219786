//! The functions of a project, for who asks by name and waits for the answer.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use karat_core::judgement::{ErrorKind, EvalError, Judgement, Limits};
use karat_core::port::EvalFunctions;
use serde_json::Value;
use tracing::Span;

use crate::Isolation;
use crate::engine::{Sandbox, THREAD_STACK};
use crate::error::SandboxError;
use crate::function::Function;
use crate::transcode::transcode;
use crate::worker::{Worker, errored};

/// Functions with threads of their own that run them.
pub struct Functions {
    functions: BTreeMap<String, Arc<Function>>,
    questions: Mutex<Sender<Question>>,
}

struct Question {
    function: Arc<Function>,
    trace: Vec<u8>,
    answer: Sender<Judgement>,
    /// Of who asks, for logs.
    span: Span,
}

impl Functions {
    pub fn new(
        sandbox: &Sandbox,
        functions: Vec<Arc<Function>>,
        limits: Limits,
        isolation: Isolation,
        jobs: usize,
    ) -> Result<Self, SandboxError> {
        let (questions, asked) = channel();
        let asked = Arc::new(Mutex::new(asked));
        for _ in 0..jobs.max(1) {
            let worker = Worker::new(sandbox.clone(), limits, isolation);
            let asked = Arc::clone(&asked);
            thread::Builder::new()
                .name("karat-eval".to_owned())
                .stack_size(THREAD_STACK)
                .spawn(move || answer(worker, &asked))
                .map_err(|error| SandboxError::Engine(error.to_string()))?;
        }
        let functions = functions.into_iter().map(|function| (function.name.clone(), function)).collect();
        Ok(Self { functions, questions: Mutex::new(questions) })
    }
}

fn answer(mut worker: Worker, asked: &Mutex<Receiver<Question>>) {
    loop {
        let next = asked.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(question) = next else { return };
        let judgement = question.span.in_scope(|| worker.judge(&question.function, &question.trace));
        // Who asked may have gone.
        let _ = question.answer.send(judgement);
    }
}

impl EvalFunctions for Functions {
    fn judge(&self, name: &str, trace: &Value) -> Judgement {
        let Some(function) = self.functions.get(name) else {
            return errored(EvalError::new(ErrorKind::Validation, format!("there is no function '{name}'")));
        };
        let trace = match transcode(trace.to_string().as_bytes()) {
            Ok(transcoded) => transcoded.marshal,
            Err(error) => return errored(EvalError::new(ErrorKind::Validation, error.to_string())),
        };
        let (answer, answered) = channel();
        let question = Question { function: Arc::clone(function), trace, answer, span: Span::current() };
        let _ = self.questions.lock().unwrap_or_else(PoisonError::into_inner).send(question);
        answered.recv().unwrap_or_else(|_| {
            errored(EvalError::new(ErrorKind::Internal, "a thread of the sandbox ended before it answered"))
        })
    }
}
