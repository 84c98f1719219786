//! Many traces, judged on all cores, answered in their order.
//!
//! Memory is bounded whatever the number of traces: the reader stops as soon as it is a few batches ahead of what was
//! handed on.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use karat_core::hash::short_hash;
use karat_core::judgement::{ErrorKind, EvalError, Judgement, Limits};

use crate::Isolation;
use crate::engine::{Sandbox, THREAD_STACK};
use crate::error::SandboxError;
use crate::function::Function;
use crate::lines::Input;
use crate::transcode::{Transcoded, transcode};
use crate::worker::{Worker, errored};

/// How many batches are under way for each thread.
const AHEAD: usize = 4;

/// How often a listener is asked while nothing happens.
const IDLE: Duration = Duration::from_millis(50);

/// What is to be done with each trace.
#[derive(Debug, Clone)]
pub struct Task {
    pub functions: Vec<Arc<Function>>,
    pub limits: Limits,
    pub isolation: Isolation,
    /// How many threads.
    pub jobs: usize,
}

/// What came of one trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// Its line's or row's number, from 1.
    pub number: u64,
    pub trace_id: Option<String>,
    /// SHA-256 of its text, the first twelve hex digits.
    pub trace_hash: String,
    /// One for each function, in the functions' order.
    pub judgements: Vec<Judgement>,
}

/// Hears what came of each trace.
pub trait Listener {
    /// Is told in the traces' order.
    fn judged(&mut self, judged: Judged) -> ControlFlow<()>;

    /// Is asked when nothing further is at hand, and from time to time while that lasts.
    fn idle(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<F: FnMut(Judged) -> ControlFlow<()>> Listener for F {
    fn judged(&mut self, judged: Judged) -> ControlFlow<()> {
        self(judged)
    }
}

/// A batch with its place in the order.
type Batch<T> = (u64, Vec<T>);

/// What the listener's thread is told by the others.
enum Word {
    Judged(Batch<Judged>),
    /// There is no batch with this number nor after it, and perhaps there should be.
    End(u64, Option<io::Error>),
}

/// Judges traces until there are no more, or the listener has heard enough.
pub fn judge_in_order(
    sandbox: &Sandbox,
    task: &Task,
    traces: impl Iterator<Item = io::Result<Vec<Input>>> + Send + 'static,
    mut listener: impl Listener,
) -> Result<(), SandboxError> {
    let jobs = task.jobs.max(1);
    let (words, heard) = channel();
    let (work, taken) = sync_channel::<Batch<Input>>(jobs);
    let (permits, allowed) = channel::<()>();
    (0..jobs * AHEAD).for_each(|_| {
        let _ = permits.send(());
    });
    let stop = Stop(Arc::new(AtomicBool::new(false)));

    spawn("karat-traces", 1 << 20, read(traces, allowed, work, words.clone()))?;
    let taken = Arc::new(Mutex::new(taken));
    let task = Arc::new(task.clone());
    for _ in 0..jobs {
        spawn("karat-eval", THREAD_STACK, {
            let worker = Worker::new(sandbox.clone(), task.limits, task.isolation);
            work_on(worker, Arc::clone(&task), Arc::clone(&taken), words.clone(), Arc::clone(&stop.0))
        })?;
    }
    drop(words);
    listen(&heard, &permits, &mut listener)
}

/// Stops the threads when nobody listens any more.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn spawn(name: &str, stack: usize, work: impl FnOnce() + Send + 'static) -> Result<(), SandboxError> {
    let started = thread::Builder::new().name(name.to_owned()).stack_size(stack).spawn(work);
    started.map(drop).map_err(|error| SandboxError::Engine(error.to_string()))
}

/// Hands batches to the workers as long as they are not too far ahead. Nobody waits for this thread, for it may wait for
/// input.
fn read(
    traces: impl Iterator<Item = io::Result<Vec<Input>>>,
    allowed: Receiver<()>,
    work: SyncSender<Batch<Input>>,
    words: Sender<Word>,
) -> impl FnOnce() {
    move || {
        let mut number = 0;
        for batch in traces {
            let batch = match batch {
                Ok(batch) => batch,
                Err(error) => {
                    let _ = words.send(Word::End(number, Some(error)));
                    return;
                }
            };
            if allowed.recv().is_err() || work.send((number, batch)).is_err() {
                return;
            }
            number += 1;
        }
        let _ = words.send(Word::End(number, None));
    }
}

fn work_on(
    mut worker: Worker,
    task: Arc<Task>,
    taken: Arc<Mutex<Receiver<Batch<Input>>>>,
    words: Sender<Word>,
    stop: Arc<AtomicBool>,
) -> impl FnOnce() {
    move || {
        while !stop.load(Ordering::Relaxed) {
            let next = taken.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok((number, batch)) = next else { return };
            let Some(judged) = judge_batch(&mut worker, &task, batch, &stop) else { return };
            if words.send(Word::Judged((number, judged))).is_err() {
                return;
            }
        }
    }
}

/// Judges a batch function by function, so that a thread with many functions need not start Python for each trace.
fn judge_batch(worker: &mut Worker, task: &Task, batch: Vec<Input>, stop: &AtomicBool) -> Option<Vec<Judged>> {
    let (mut judged, traces): (Vec<Judged>, Vec<Result<Vec<u8>, EvalError>>) =
        batch.into_iter().map(read_trace).unzip();
    for function in &task.functions {
        for (judged, trace) in judged.iter_mut().zip(&traces) {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            judged.judgements.push(match trace {
                Ok(trace) => worker.judge(function, trace),
                Err(error) => errored(error.clone()),
            });
        }
    }
    Some(judged)
}

fn read_trace(input: Input) -> (Judged, Result<Vec<u8>, EvalError>) {
    let (unit, number) = (input.unit, input.number);
    let mut judged = Judged { number, trace_id: None, trace_hash: String::new(), judgements: Vec::new() };
    let read = input.text.and_then(|text| {
        judged.trace_hash = short_hash(&text);
        transcode(&text).map_err(|error| error.to_string())
    });
    let trace = match read {
        Ok(Transcoded { marshal, trace_id }) => {
            judged.trace_id = trace_id;
            Ok(marshal)
        }
        Err(why) => Err(EvalError::new(ErrorKind::Validation, format!("{unit} {number}: {why}"))),
    };
    (judged, trace)
}

fn listen(heard: &Receiver<Word>, permits: &Sender<()>, listener: &mut impl Listener) -> Result<(), SandboxError> {
    let mut early: BTreeMap<u64, Vec<Judged>> = BTreeMap::new();
    let mut next = 0;
    let mut end = None;
    let mut unreadable = None;
    while end != Some(next) {
        let Some(word) = next_word(heard, listener) else { return Ok(()) };
        match word? {
            Word::Judged((number, batch)) => {
                early.insert(number, batch);
            }
            Word::End(number, error) => {
                end = Some(number);
                unreadable = error;
            }
        }
        while let Some(batch) = early.remove(&next) {
            next += 1;
            let _ = permits.send(());
            for judged in batch {
                if listener.judged(judged).is_break() {
                    return Ok(());
                }
            }
        }
    }
    // What was read before it was judged.
    unreadable.map_or(Ok(()), |error| Err(SandboxError::Traces(error)))
}

/// Waits for the next word, while the listener wants to hear it.
fn next_word(heard: &Receiver<Word>, listener: &mut impl Listener) -> Option<Result<Word, SandboxError>> {
    match heard.try_recv() {
        Ok(word) => return Some(Ok(word)),
        Err(TryRecvError::Disconnected) => return Some(Err(gone())),
        Err(TryRecvError::Empty) => {}
    }
    loop {
        if listener.idle().is_break() {
            return None;
        }
        match heard.recv_timeout(IDLE) {
            Ok(word) => return Some(Ok(word)),
            Err(RecvTimeoutError::Disconnected) => return Some(Err(gone())),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

fn gone() -> SandboxError {
    SandboxError::Engine("a thread ended before its work was done".to_owned())
}
