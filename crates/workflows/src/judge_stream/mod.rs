//! Judges traces that come as a stream: JSON lines of files or of stdin, or rows of another engine.

mod content;
mod files;

use std::io::Read;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use karat_core::judgement::{Conclusion, Judgement};
use karat_evals::execution::{Execution, Judge, JudgedTrace};
use karat_evals::tally::{EvalRunSummary, Tally};
use karat_sandbox::{Function, Input, Judged, JudgementStream, Position, StreamError, Task};
use tokio_util::sync::CancellationToken;

pub use self::content::{Content, Known, Whole, recognise};
use self::files::{FileLine, TraceFiles};
use crate::context::Context;
use crate::context::sandbox::SandboxOptions;
use crate::error::Error;
use crate::event::EventSink;
use crate::functions::load_functions;

/// Which functions judge, and what they may use.
pub struct Evaluators {
    /// Files, folders, or names of the project's functions.
    pub functions: Vec<String>,
    pub options: SandboxOptions,
}

impl Evaluators {
    fn task(self, context: &Context<'_>) -> Result<Task, Error> {
        let functions = load_functions(&self.functions, &context.settings)?;
        Ok(self.options.task(functions.into_iter().map(|loaded| loaded.function).collect()))
    }
}

/// How a stream of judgements ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEnd {
    Finished,
    /// The receiver of the events wanted no more.
    Stopped,
    Interrupted,
}

/// Traces in files, judged by functions of the project.
pub struct FilesRequest {
    pub evaluators: Evaluators,
    /// `-` is stdin.
    pub traces: Vec<PathBuf>,
    pub stdin: Box<dyn Read + Send>,
}

pub enum FilesEvent {
    /// The files are open: their size, where it is known, and whether stdin is one of them.
    Opened {
        bytes: Option<u64>,
        reads_stdin: bool,
    },
    /// What all functions said of one trace.
    Judged(Vec<Execution>),
    Progress {
        traces: u64,
        passed: u64,
        failed: u64,
        errored: u64,
        bytes: u64,
    },
    /// Nothing more is at hand: show what was held back.
    Idle,
}

/// What the run came to, and why it ended early if it did.
pub struct FilesOutcome {
    pub tally: Tally,
    pub summary: EvalRunSummary,
    /// The files, for messages.
    pub names: String,
    pub error: Option<Error>,
}

pub async fn judge_files(
    request: FilesRequest,
    context: &Context<'_>,
    events: &mut dyn EventSink<FilesEvent>,
    cancel: &CancellationToken,
) -> Result<FilesOutcome, Error> {
    let task = request.evaluators.task(context)?;
    let files = TraceFiles::open(&request.traces, request.stdin, &context.settings.layout.here)?;
    let sandbox = context.open_sandbox()?;
    let _ = events.emit(FilesEvent::Opened { bytes: files.bytes, reads_stdin: files.reads_stdin() });
    let started = Instant::now();
    let names: Vec<String> = files.names().map(str::to_owned).collect();
    let (batches, bytes_read) = files.into_batches();
    let hashes = task.functions.iter().map(|function| (function.name.as_str(), function.code_hash.as_str()));
    let mut tally = Tally::new(hashes);
    let guest_hash = sandbox.guest_hash();
    let mut stream = sandbox.judge_stream(&task, batches)?;
    let ended = judge_each(&mut stream, cancel, |judged| {
        let Some(mut judged) = judged else { return events.emit(FilesEvent::Idle) };
        let FileLine { file, position } = judged.key;
        // The name of the only file says nothing.
        let origin = (names.len() > 1).then(|| names[file].as_str());
        name_unreadable(&mut judged, |why| format!("{position}: {why}"));
        let trace_id = &judged.trace_id;
        tally.add(&judged.judgements, || match (trace_id, origin) {
            (Some(id), _) => id.clone(),
            (None, None) => position.to_string(),
            (None, Some(origin)) => format!("{origin} {position}"),
        });
        if let Some(origin) = origin {
            name_unreadable(&mut judged, |why| format!("{origin} {why}"));
        }
        let executed_at = context.clock.now().to_string();
        let trace_id = judged.trace_id.take();
        let rows = executions(&task.functions, guest_hash, trace_id.as_deref(), judged.into(), &executed_at);
        events.emit(FilesEvent::Judged(rows))?;
        let (passed, failed, errored) = tally.counts();
        events.emit(FilesEvent::Progress { traces: tally.traces(), passed, failed, errored, bytes: bytes_read.get() })
    });
    let ended = ended.await;
    let elapsed = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let summary = tally.summary(elapsed, matches!(ended, Ok(StreamEnd::Interrupted)));
    let error = ended.err().map(|error| match error {
        StreamError::Sandbox(error) => Error::from(error),
        StreamError::Source(error) => error,
    });
    match error {
        Some(error) if tally.traces() == 0 => Err(error),
        error => Ok(FilesOutcome { tally, summary, names: names.join(", "), error }),
    }
}

/// Traces of another engine, judged one after the other.
pub struct FilterRequest<T> {
    pub evaluators: Evaluators,
    pub traces: T,
}

pub enum FilterEvent {
    Judged(FilteredTrace),
    /// Nothing more is at hand: hand on what was held back.
    Idle,
}

/// A judged trace, of which rows are made when its id is known: the engine may have one of its own.
pub struct FilteredTrace {
    pub trace_id: Option<String>,
    functions: Arc<[Arc<Function>]>,
    guest_hash: Arc<str>,
    said: Said,
    executed_at: String,
}

impl FilteredTrace {
    /// Returns a row for each function.
    pub fn into_executions(self, trace_id: Option<&str>) -> Vec<Execution> {
        executions(&self.functions, &self.guest_hash, trace_id, self.said, &self.executed_at)
    }
}

pub async fn filter_traces<T>(
    request: FilterRequest<T>,
    context: &Context<'_>,
    events: &mut dyn EventSink<FilterEvent>,
    cancel: &CancellationToken,
) -> Result<StreamEnd, Error>
where
    T: Iterator<Item = std::io::Result<Vec<Input<Position>>>> + Send + 'static,
{
    let task = request.evaluators.task(context)?;
    let sandbox = context.open_sandbox()?;
    let functions: Arc<[Arc<Function>]> = Arc::from(task.functions.as_slice());
    let guest_hash: Arc<str> = Arc::from(sandbox.guest_hash());
    let mut stream = sandbox.judge_stream(&task, request.traces)?;
    let ended = judge_each(&mut stream, cancel, |judged| {
        let Some(mut judged) = judged else { return events.emit(FilterEvent::Idle) };
        let position = judged.key;
        name_unreadable(&mut judged, |why| format!("{position}: {why}"));
        events.emit(FilterEvent::Judged(FilteredTrace {
            trace_id: judged.trace_id.clone(),
            functions: Arc::clone(&functions),
            guest_hash: Arc::clone(&guest_hash),
            said: judged.into(),
            executed_at: context.clock.now().to_string(),
        }))
    });
    ended.await.map_err(|error| match error {
        StreamError::Sandbox(error) => Error::from(error),
        StreamError::Source(error) => Error::no_verdict(format!("cannot read the traces: {error}")),
    })
}

/// Hands over judged traces in order, and nothing when none is at hand, until the stream ends or is stopped.
async fn judge_each<K, E>(
    stream: &mut JudgementStream<K, E>,
    cancel: &CancellationToken,
    mut receive: impl FnMut(Option<Judged<K>>) -> ControlFlow<()>,
) -> Result<StreamEnd, StreamError<E>> {
    loop {
        let mut ready = stream.take_ready();
        let mut end = None;
        if ready.is_empty() {
            // Whoever waits for a verdict gets it before more is waited for.
            if receive(None).is_break() {
                return Ok(StreamEnd::Stopped);
            }
            tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    ready = stream.take_ready();
                    end = Some(StreamEnd::Interrupted);
                }
                next = stream.next() => {
                    ready = next?;
                    end = ready.is_empty().then_some(StreamEnd::Finished);
                }
            }
        } else if cancel.is_cancelled() {
            end = Some(StreamEnd::Interrupted);
        }
        for judged in ready {
            if receive(Some(judged)).is_break() {
                return Ok(StreamEnd::Stopped);
            }
        }
        if let Some(end) = end {
            // At the end, what was held back is shown too.
            return Ok(if receive(None).is_break() { StreamEnd::Stopped } else { end });
        }
    }
}

/// Says where a trace is that could not be read.
fn name_unreadable<K>(judged: &mut Judged<K>, named: impl Fn(&str) -> String) {
    if !judged.is_unreadable {
        return;
    }
    for judgement in &mut judged.judgements {
        if let Conclusion::Error(error) = &mut judgement.conclusion {
            error.message = named(&error.message);
        }
    }
}

/// What functions said of one trace.
struct Said {
    trace_hash: String,
    judgements: Vec<Judgement>,
}

impl<K> From<Judged<K>> for Said {
    fn from(judged: Judged<K>) -> Self {
        Self { trace_hash: judged.trace_hash, judgements: judged.judgements }
    }
}

fn executions(
    functions: &[Arc<Function>],
    guest_hash: &str,
    trace_id: Option<&str>,
    said: Said,
    executed_at: &str,
) -> Vec<Execution> {
    let trace = JudgedTrace { id: trace_id, hash: &said.trace_hash };
    let execution = |(function, judgement): (&Arc<Function>, Judgement)| {
        let judge = Judge { eval_id: &function.name, code_hash: &function.code_hash, guest_hash };
        Execution::new(judge, trace, judgement, executed_at.to_owned())
    };
    functions.iter().zip(said.judgements).map(execution).collect()
}
