//! Judges a stream of traces on several threads and returns the judgements in order.
//!
//! Memory is bounded for any number of traces: the reader pauses when it is a few batches ahead of the consumer.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use karat_core::judgement::{Conclusion, ErrorKind, EvalError, Judgement, Limits};
use karat_json::hash::short_hash;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::Isolation;
use crate::engine::{Sandbox, THREAD_STACK};
use crate::error::SandboxError;
use crate::function::Function;
use crate::lines::{Input, MAX_BATCH_TRACES};
use crate::transcode::{MarshalTrace, transcode};
use crate::worker::{MAX_CACHED_INSTANCES, Worker, error_judgement};

/// Number of batches in progress per thread.
const BATCHES_AHEAD: usize = 4;

/// Stack size of the thread that reads traces; enough to convert deeply nested ones.
const READER_STACK: usize = 16 << 20;

/// How often the consumer looks for judged traces of an unfinished batch.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How to judge each trace.
#[derive(Debug, Clone)]
pub struct Task {
    pub functions: Vec<Arc<Function>>,
    pub limits: Limits,
    pub isolation: Isolation,
    /// Number of threads.
    pub jobs: usize,
}

/// The judgements of a trace, with its key.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged<K> {
    pub key: K,
    pub trace_id: Option<String>,
    /// First twelve hex digits of the SHA-256 of its text.
    pub trace_hash: String,
    /// Whether the trace could not be read, in which case every judgement is that error.
    pub is_unreadable: bool,
    /// One per function, in the same order.
    pub judgements: Vec<Judgement>,
}

/// The error that ended a stream of judgements early.
#[derive(Debug, thiserror::Error)]
pub enum StreamError<E> {
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The source of the traces failed; the traces before the error were judged.
    #[error("cannot read the traces: {0}")]
    Source(E),
}

/// A batch with its number.
type Batch<K> = (u64, Vec<Unjudged<K>>);

/// A trace to judge.
enum Unjudged<K> {
    Text(Input<K>),
    /// Converted while all threads were busy.
    Converted(Judged<K>, Trace),
}

impl<K> Unjudged<K> {
    fn convert(self) -> (Judged<K>, Trace) {
        match self {
            Self::Text(input) => read_trace(input),
            Self::Converted(judged, trace) => (judged, trace),
        }
    }
}

/// A message to the consumer of judgements.
enum Message<E> {
    /// A batch is complete: its number, and its number of traces.
    BatchDone(u64, usize),
    /// No batch with this or a higher number follows; contains the source's error if it failed.
    End(u64, Option<E>),
}

/// Judged traces by batch number and index. The consumer is woken for whole batches only and polls for the rest, so a
/// slow trace does not delay those before it.
type JudgedQueue<K> = Mutex<Vec<(u64, usize, Judged<K>)>>;

impl Sandbox {
    /// Judges traces on new threads until there are no more or the stream is dropped.
    pub fn judge_stream<K: Send + 'static, E: Send + 'static>(
        &self,
        task: &Task,
        traces: impl Iterator<Item = Result<Vec<Input<K>>, E>> + Send + 'static,
    ) -> Result<JudgementStream<K, E>, SandboxError> {
        let jobs = task.jobs.max(1);
        let (out, messages) = unbounded_channel();
        let (work, batches) = sync_channel::<Batch<K>>(jobs);
        let (permits, permit_receiver) = channel::<()>();
        (0..jobs * BATCHES_AHEAD).for_each(|_| {
            let _ = permits.send(());
        });
        let stop = Arc::new(AtomicBool::new(false));
        let judged_queue = Arc::new(JudgedQueue::default());
        let stream = JudgementStream {
            messages,
            judged_queue: Arc::clone(&judged_queue),
            permits,
            out_of_order: BTreeMap::new(),
            sizes: BTreeMap::new(),
            next: (0, 0),
            end: None,
            stop: Arc::clone(&stop),
        };
        spawn("karat-traces", READER_STACK, read(traces, permit_receiver, work, out.clone()))?;
        let batches = Arc::new(Mutex::new(batches));
        let task = Arc::new(task.clone());
        let responsiveness: Arc<[Responsiveness]> = task.functions.iter().map(|_| Responsiveness::default()).collect();
        for _ in 0..jobs {
            let thread = Thread {
                worker: Worker::new(self.clone(), task.limits, task.isolation),
                task: Arc::clone(&task),
                responsiveness: Arc::clone(&responsiveness),
                judged_queue: Arc::clone(&judged_queue),
                stop: Arc::clone(&stop),
            };
            spawn("karat-eval", THREAD_STACK, thread.process(Arc::clone(&batches), out.clone()))?;
        }
        Ok(stream)
    }
}

impl Sandbox {
    /// Judges the given traces and returns the judgements in the same order.
    pub async fn judge_all<K: Send + 'static>(
        &self,
        task: &Task,
        inputs: Vec<Input<K>>,
    ) -> Result<Vec<Judged<K>>, SandboxError> {
        let count = inputs.len();
        let mut inputs = inputs.into_iter();
        let batches = std::iter::from_fn(move || {
            let batch: Vec<Input<K>> = inputs.by_ref().take(MAX_BATCH_TRACES).collect();
            (!batch.is_empty()).then_some(Ok::<_, Infallible>(batch))
        });
        let mut stream = self.judge_stream(task, batches)?;
        let mut all = Vec::with_capacity(count);
        loop {
            match stream.next().await {
                Ok(ready) if ready.is_empty() => return Ok(all),
                Ok(ready) => all.extend(ready),
                Err(StreamError::Sandbox(error)) => return Err(error),
                Err(StreamError::Source(never)) => match never {},
            }
        }
    }
}

fn spawn(name: &str, stack: usize, work: impl FnOnce() + Send + 'static) -> Result<(), SandboxError> {
    let started = thread::Builder::new().name(name.to_owned()).stack_size(stack).spawn(work);
    started.map(drop).map_err(|error| SandboxError::Engine(error.to_string()))
}

/// Sends batches to the workers without getting too far ahead. The thread is never joined: it may block on input.
fn read<K, E>(
    traces: impl Iterator<Item = Result<Vec<Input<K>>, E>>,
    permits: Receiver<()>,
    work: SyncSender<Batch<K>>,
    out: UnboundedSender<Message<E>>,
) -> impl FnOnce() {
    move || {
        let mut number = 0;
        for batch in traces {
            let batch = match batch {
                Ok(batch) => batch,
                Err(error) => {
                    let _ = out.send(Message::End(number, Some(error)));
                    return;
                }
            };
            if permits.recv().is_err() {
                return;
            }
            let batch = batch.into_iter().map(Unjudged::Text).collect();
            match work.try_send((number, batch)) {
                Ok(()) => {}
                // All threads are busy, so convert the traces in the meantime.
                Err(TrySendError::Full((number, batch))) => {
                    let converted = batch.into_iter().map(|trace| {
                        let (judged, trace) = trace.convert();
                        Unjudged::Converted(judged, trace)
                    });
                    if work.send((number, converted.collect())).is_err() {
                        return;
                    }
                }
                Err(TrySendError::Disconnected(_)) => return,
            }
            number += 1;
        }
        let _ = out.send(Message::End(number, None));
    }
}

/// Number of consecutive timeouts after which a function that has never returned is not asked again.
const MAX_TIMEOUTS: u32 = 5;

/// Detects a function that never returns, so that not every trace takes as long as the time limit.
#[derive(Default)]
struct Responsiveness {
    timeouts: AtomicU32,
    has_returned: AtomicBool,
}

impl Responsiveness {
    fn is_lost(&self) -> bool {
        self.timeouts.load(Ordering::Relaxed) >= MAX_TIMEOUTS && !self.has_returned.load(Ordering::Relaxed)
    }

    /// Returns the error of a trace about which the function is not asked.
    fn not_run() -> EvalError {
        EvalError::new(ErrorKind::Timeout, format!("not run: the function timed out {MAX_TIMEOUTS} times in a row"))
    }

    fn record(&self, judgement: &Judgement) {
        match &judgement.conclusion {
            Conclusion::Error(error) if error.kind == ErrorKind::Timeout => {
                self.timeouts.fetch_add(1, Ordering::Relaxed);
            }
            // Once the function is given up, a late verdict of another thread does not change that.
            _ if self.is_lost() => {}
            _ => self.has_returned.store(true, Ordering::Relaxed),
        }
    }
}

struct Thread<K> {
    worker: Worker,
    task: Arc<Task>,
    /// One for each function, shared by all threads.
    responsiveness: Arc<[Responsiveness]>,
    judged_queue: Arc<JudgedQueue<K>>,
    stop: Arc<AtomicBool>,
}

impl<K> Thread<K> {
    fn process<E>(
        mut self,
        batches: Arc<Mutex<Receiver<Batch<K>>>>,
        out: UnboundedSender<Message<E>>,
    ) -> impl FnOnce() {
        move || {
            while !self.is_stopped() {
                let next = batches.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok((number, batch)) = next else { return };
                let count = batch.len();
                if self.judge_batch(number, batch).is_break() || out.send(Message::BatchDone(number, count)).is_err() {
                    return;
                }
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn judge_batch(&mut self, number: u64, batch: Vec<Unjudged<K>>) -> ControlFlow<()> {
        let task = Arc::clone(&self.task);
        if task.functions.len() <= MAX_CACHED_INSTANCES {
            for (index, trace) in batch.into_iter().enumerate() {
                let (mut judged, trace) = trace.convert();
                for function in 0..task.functions.len() {
                    self.judge(function, &mut judged, &trace)?;
                }
                self.put(number, index, judged);
            }
            return ControlFlow::Continue(());
        }
        // One function at a time, so that a thread does not have to start Python for each trace.
        let mut traces: Vec<_> = batch.into_iter().map(Unjudged::convert).collect();
        for function in 0..task.functions.len() {
            for (judged, trace) in &mut traces {
                self.judge(function, judged, trace)?;
            }
        }
        for (index, (judged, _)) in traces.into_iter().enumerate() {
            self.put(number, index, judged);
        }
        ControlFlow::Continue(())
    }

    /// Judges a trace by the function with this index.
    fn judge(&mut self, function: usize, judged: &mut Judged<K>, trace: &Trace) -> ControlFlow<()> {
        if self.is_stopped() {
            return ControlFlow::Break(());
        }
        let responsiveness = &self.responsiveness[function];
        judged.judgements.push(match trace {
            Ok(_) if responsiveness.is_lost() => error_judgement(Responsiveness::not_run()),
            Ok(trace) => {
                let judgement = self.worker.judge(&self.task.functions[function], trace);
                responsiveness.record(&judgement);
                judgement
            }
            Err(error) => error_judgement(error.clone()),
        });
        ControlFlow::Continue(())
    }

    fn put(&self, number: u64, index: usize, judged: Judged<K>) {
        self.judged_queue.lock().unwrap_or_else(PoisonError::into_inner).push((number, index, judged));
    }
}

/// A trace in Python's marshal format, or the reason why it cannot be read.
type Trace = Result<Vec<u8>, EvalError>;

fn read_trace<K>(input: Input<K>) -> (Judged<K>, Trace) {
    let Input { key, text } = input;
    let mut judged =
        Judged { key, trace_id: None, trace_hash: String::new(), is_unreadable: false, judgements: Vec::new() };
    let read = text.map_err(|error| error.to_string()).and_then(|text| {
        judged.trace_hash = short_hash(&text);
        transcode(&text).map_err(|error| error.to_string())
    });
    let trace = match read {
        Ok(MarshalTrace { marshal, trace_id }) => {
            judged.trace_id = trace_id;
            Ok(marshal)
        }
        Err(reason) => {
            judged.is_unreadable = true;
            Err(EvalError::new(ErrorKind::Validation, reason))
        }
    };
    (judged, trace)
}

/// Judged traces in input order. Dropping the stream stops the threads.
pub struct JudgementStream<K, E> {
    messages: UnboundedReceiver<Message<E>>,
    judged_queue: Arc<JudgedQueue<K>>,
    /// Each permit lets the reader send one more batch.
    permits: Sender<()>,
    /// Traces that were judged out of order.
    out_of_order: BTreeMap<(u64, usize), Judged<K>>,
    /// Number of traces in each completed batch.
    sizes: BTreeMap<u64, usize>,
    /// The next batch number and index to return.
    next: (u64, usize),
    end: Option<(u64, Option<E>)>,
    stop: Arc<AtomicBool>,
}

impl<K, E> Drop for JudgementStream<K, E> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl<K, E> JudgementStream<K, E> {
    /// Waits for the next judged traces; returns an empty list at the end. Cancel safe.
    pub async fn next(&mut self) -> Result<Vec<Judged<K>>, StreamError<E>> {
        loop {
            let ready = self.take_ready();
            if !ready.is_empty() {
                return Ok(ready);
            }
            if let Some((_, error)) = self.end.take_if(|(number, _)| *number == self.next.0) {
                // Further calls also return the end.
                self.end = Some((self.next.0, None));
                return error.map_or(Ok(Vec::new()), |error| Err(StreamError::Source(error)));
            }
            match tokio::time::timeout(POLL_INTERVAL, self.messages.recv()).await {
                Ok(Some(Message::BatchDone(number, count))) => {
                    self.sizes.insert(number, count);
                }
                Ok(Some(Message::End(number, error))) => self.end = Some((number, error)),
                Ok(None) => {
                    let reason = "a sandbox thread ended before it finished its work".to_owned();
                    return Err(SandboxError::Engine(reason).into());
                }
                // Look for traces of an unfinished batch.
                Err(_) => {}
            }
        }
    }

    /// Returns the next judged traces without waiting.
    pub fn take_ready(&mut self) -> Vec<Judged<K>> {
        let judged = std::mem::take(&mut *self.judged_queue.lock().unwrap_or_else(PoisonError::into_inner));
        self.out_of_order.extend(judged.into_iter().map(|(number, index, judged)| ((number, index), judged)));
        let mut ready = Vec::new();
        loop {
            let (number, index) = self.next;
            if let Some(judged) = self.out_of_order.remove(&(number, index)) {
                self.next.1 += 1;
                ready.push(judged);
            } else if self.sizes.get(&number) == Some(&index) {
                self.sizes.remove(&number);
                self.next = (number + 1, 0);
                let _ = self.permits.send(());
            } else {
                return ready;
            }
        }
    }
}
