//! Judges a stream of traces: files or stdin in any format that can be imported, or rows from a data engine.

mod content;
mod files;

use std::io::Read;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use karat_core::judgement::{Conclusion, Judgement};
use karat_evals::execution::{Execution, GuestFunction, JudgedTrace};
use karat_evals::tally::{EvalRunSummary, Tally};
use karat_sandbox::{Function, Input, Judged, JudgementStream, Position, StreamError, Task};
use tokio_util::sync::CancellationToken;

pub use self::content::{Content, PeekedReader, UnsupportedFormat, detect_content};
use self::files::{FileLocation, TraceFiles};
use crate::context::Context;
use crate::context::sandbox::SandboxOptions;
use crate::error::Error;
use crate::event::EventSink;
use crate::functions::load_functions;

/// The functions that judge, and their limits.
pub struct Evaluators {
    /// Files, folders or names of the project's functions.
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
    /// The event sink ended the stream.
    Stopped,
    Interrupted,
}

/// Traces in files, judged by functions of the project.
pub struct FilesRequest {
    pub evaluators: Evaluators,
    /// `-` reads stdin.
    pub traces: Vec<PathBuf>,
    pub stdin: Box<dyn Read + Send>,
}

pub enum FilesEvent {
    /// The files are open. `bytes` is their total size, if known.
    Opened { bytes: Option<u64>, reads_stdin: bool },
    /// The executions of all functions on one trace.
    Judged(Vec<Execution>),
    Progress {
        traces: u64,
        passed: u64,
        failed: u64,
        errored: u64,
        /// An estimate of the bytes of the judged traces.
        bytes: u64,
    },
    /// No more events are available now: flush buffered output.
    Idle,
}

/// The result of a run, with the error if it ended early.
pub struct FilesOutcome {
    pub tally: Tally,
    pub summary: EvalRunSummary,
    /// The names of the files, for messages.
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
    for function in task.functions.iter().filter(|function| function.reads_case()) {
        context.notices.warn(&format!(
            "{} reads the context of a case, which traces do not have: its params and reference are empty here",
            function.name
        ));
    }
    let files = TraceFiles::open(&request.traces, request.stdin, &context.settings.layout.current_dir)?;
    let sandbox = context.open_sandbox()?;
    let _ = events.emit(FilesEvent::Opened { bytes: files.bytes, reads_stdin: files.reads_stdin() });
    let started = Instant::now();
    let names: Vec<String> = files.names().map(str::to_owned).collect();
    let (batches, progress) = files.into_batches();
    let hashes = task.functions.iter().map(|function| (function.name.as_str(), function.code_hash.as_str()));
    let mut tally = Tally::new(hashes);
    let guest_hash = sandbox.guest_hash();
    let mut stream = sandbox.judge_stream(&task, batches)?;
    let ended = judge_each(&mut stream, cancel, |judged| {
        let Some(mut judged) = judged else { return events.emit(FilesEvent::Idle) };
        let FileLocation { file, location } = judged.key.clone();
        // The file name is redundant if there is only one file.
        let origin = (names.len() > 1).then(|| names[file].as_str());
        add_location(&mut judged, |message| format!("{location}: {message}"));
        let trace_id = &judged.trace_id;
        tally.add(&judged.judgements, || match (trace_id, origin) {
            (Some(id), _) => id.clone(),
            (None, None) => location.clone(),
            (None, Some(origin)) => format!("{origin} {location}"),
        });
        if let Some(origin) = origin {
            add_location(&mut judged, |message| format!("{origin} {message}"));
        }
        let executed_at = context.clock.now().to_string();
        let trace_id = judged.trace_id.take();
        let rows = executions(&task.functions, guest_hash, trace_id.as_deref(), judged.into(), &executed_at);
        events.emit(FilesEvent::Judged(rows))?;
        let (passed, failed, errored) = tally.counts();
        let (traces, bytes) = (tally.traces(), progress.judged_bytes(tally.traces()));
        events.emit(FilesEvent::Progress { traces, passed, failed, errored, bytes })
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

/// Traces of a data engine, judged in order.
pub struct FilterRequest<T> {
    pub evaluators: Evaluators,
    pub traces: T,
}

pub enum FilterEvent {
    Judged(FilteredTrace),
    /// No more events are available now: flush buffered output.
    Idle,
}

/// A judged trace. Its rows are created once its id is known, since the engine may provide its own.
pub struct FilteredTrace {
    pub trace_id: Option<String>,
    functions: Arc<[Arc<Function>]>,
    guest_hash: Arc<str>,
    judgements: TraceJudgements,
    executed_at: String,
}

impl FilteredTrace {
    /// Returns one row per function.
    pub fn into_executions(self, trace_id: Option<&str>) -> Vec<Execution> {
        executions(&self.functions, &self.guest_hash, trace_id, self.judgements, &self.executed_at)
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
        add_location(&mut judged, |message| format!("{position}: {message}"));
        events.emit(FilterEvent::Judged(FilteredTrace {
            trace_id: judged.trace_id.clone(),
            functions: Arc::clone(&functions),
            guest_hash: Arc::clone(&guest_hash),
            judgements: judged.into(),
            executed_at: context.clock.now().to_string(),
        }))
    });
    ended.await.map_err(|error| match error {
        StreamError::Sandbox(error) => Error::from(error),
        StreamError::Source(error) => Error::no_verdict(format!("cannot read the traces: {error}")),
    })
}

/// Calls `receive` with judged traces in order, and with `None` before waiting for more, until the stream ends or is
/// stopped.
async fn judge_each<K, E>(
    stream: &mut JudgementStream<K, E>,
    cancel: &CancellationToken,
    mut receive: impl FnMut(Option<Judged<K>>) -> ControlFlow<()>,
) -> Result<StreamEnd, StreamError<E>> {
    loop {
        let mut ready = stream.take_ready();
        let mut end = None;
        if ready.is_empty() {
            // Flush verdicts before waiting for more.
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
            // Flush at the end.
            return Ok(if receive(None).is_break() { StreamEnd::Stopped } else { end });
        }
    }
}

/// Adds the location of an unreadable trace to its errors.
fn add_location<K>(judged: &mut Judged<K>, located: impl Fn(&str) -> String) {
    if !judged.is_unreadable {
        return;
    }
    for judgement in &mut judged.judgements {
        if let Conclusion::Error(error) = &mut judgement.conclusion {
            error.message = located(&error.message);
        }
    }
}

/// The judgements of all functions on one trace.
struct TraceJudgements {
    trace_hash: String,
    judgements: Vec<Judgement>,
}

impl<K> From<Judged<K>> for TraceJudgements {
    fn from(judged: Judged<K>) -> Self {
        Self { trace_hash: judged.trace_hash, judgements: judged.judgements }
    }
}

fn executions(
    functions: &[Arc<Function>],
    guest_hash: &str,
    trace_id: Option<&str>,
    judged: TraceJudgements,
    executed_at: &str,
) -> Vec<Execution> {
    let trace = JudgedTrace { id: trace_id, hash: &judged.trace_hash };
    let execution = |(function, judgement): (&Arc<Function>, Judgement)| {
        let function_in_guest = GuestFunction { eval_id: &function.name, code_hash: &function.code_hash, guest_hash };
        Execution::new(function_in_guest, trace, judgement, executed_at.to_owned())
    };
    functions.iter().zip(judged.judgements).map(execution).collect()
}
