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

use karat_core::judgement::{ErrorKind, EvalError, Judgement, Limits};
use karat_json::hash::short_hash;

use crate::Isolation;
use crate::engine::{Sandbox, THREAD_STACK};
use crate::error::SandboxError;
use crate::function::Function;
use crate::lines::Input;
use crate::transcode::{Transcoded, transcode};
use crate::worker::{MOST_SEATS, Worker, errored};

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
type Batch = (u64, Vec<Input>);

/// What the listener's thread is told by the others.
enum Word {
    /// All of a batch was judged: its number, and how many traces it held.
    Done(u64, usize),
    /// There is no batch with this number nor after it, and perhaps there should be.
    End(u64, Option<io::Error>),
}

/// Where the threads lay down what they have judged, by the number of its batch and its place there. The listener is
/// woken for whole batches only, and finds the rest when it looks: what was judged is never held back by a trace that
/// takes long.
type Outbox = Mutex<Vec<(u64, usize, Judged)>>;

/// Judges traces until there are no more, or the listener has heard enough.
pub fn judge_in_order(
    sandbox: &Sandbox,
    task: &Task,
    traces: impl Iterator<Item = io::Result<Vec<Input>>> + Send + 'static,
    mut listener: impl Listener,
) -> Result<(), SandboxError> {
    let jobs = task.jobs.max(1);
    let (words, heard) = channel();
    let (work, taken) = sync_channel::<Batch>(jobs);
    let (permits, allowed) = channel::<()>();
    (0..jobs * AHEAD).for_each(|_| {
        let _ = permits.send(());
    });
    let stop = Stop(Arc::new(AtomicBool::new(false)));

    spawn("karat-traces", 1 << 20, read(traces, allowed, work, words.clone()))?;
    let taken = Arc::new(Mutex::new(taken));
    let task = Arc::new(task.clone());
    let outbox = Arc::new(Outbox::default());
    for _ in 0..jobs {
        let thread = Thread {
            worker: Worker::new(sandbox.clone(), task.limits, task.isolation),
            task: Arc::clone(&task),
            outbox: Arc::clone(&outbox),
            stop: Arc::clone(&stop.0),
        };
        spawn("karat-eval", THREAD_STACK, thread.work_on(Arc::clone(&taken), words.clone()))?;
    }
    drop(words);
    Hearing { heard, outbox, permits, order: Order::default() }.listen(&mut listener)
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
    work: SyncSender<Batch>,
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

struct Thread {
    worker: Worker,
    task: Arc<Task>,
    outbox: Arc<Outbox>,
    stop: Arc<AtomicBool>,
}

impl Thread {
    fn work_on(mut self, taken: Arc<Mutex<Receiver<Batch>>>, words: Sender<Word>) -> impl FnOnce() {
        move || {
            while !self.is_stopped() {
                let next = taken.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok((number, batch)) = next else { return };
                let count = batch.len();
                if self.judge_batch(number, batch).is_break() || words.send(Word::Done(number, count)).is_err() {
                    return;
                }
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn judge_batch(&mut self, number: u64, batch: Vec<Input>) -> ControlFlow<()> {
        let task = Arc::clone(&self.task);
        if task.functions.len() <= MOST_SEATS {
            for (index, input) in batch.into_iter().enumerate() {
                let (mut judged, trace) = read_trace(input);
                for function in &task.functions {
                    self.judge(function, &mut judged, &trace)?;
                }
                self.lay_down(number, index, judged);
            }
            return ControlFlow::Continue(());
        }
        // Function by function, so that a thread need not start Python for each trace.
        let mut traces: Vec<_> = batch.into_iter().map(read_trace).collect();
        for function in &task.functions {
            for (judged, trace) in &mut traces {
                self.judge(function, judged, trace)?;
            }
        }
        for (index, (judged, _)) in traces.into_iter().enumerate() {
            self.lay_down(number, index, judged);
        }
        ControlFlow::Continue(())
    }

    fn judge(&mut self, function: &Arc<Function>, judged: &mut Judged, trace: &Trace) -> ControlFlow<()> {
        if self.is_stopped() {
            return ControlFlow::Break(());
        }
        judged.judgements.push(match trace {
            Ok(trace) => self.worker.judge(function, trace),
            Err(error) => errored(error.clone()),
        });
        ControlFlow::Continue(())
    }

    fn lay_down(&self, number: u64, index: usize, judged: Judged) {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner).push((number, index, judged));
    }
}

/// A trace as Python takes it, or why there is none.
type Trace = Result<Vec<u8>, EvalError>;

fn read_trace(input: Input) -> (Judged, Trace) {
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

/// The listener's side.
struct Hearing {
    heard: Receiver<Word>,
    outbox: Arc<Outbox>,
    /// Lets the reader go on.
    permits: Sender<()>,
    order: Order,
}

/// What was judged before its turn, and whose turn it is.
#[derive(Default)]
struct Order {
    early: BTreeMap<(u64, usize), Judged>,
    /// How many traces each batch held that was judged as a whole.
    sizes: BTreeMap<u64, usize>,
    /// The batch and the place in it that are to be handed on next.
    next: (u64, usize),
}

impl Hearing {
    fn listen(mut self, listener: &mut impl Listener) -> Result<(), SandboxError> {
        let mut end: Option<(u64, Option<io::Error>)> = None;
        loop {
            if self.hand_on(listener).is_break() {
                return Ok(());
            }
            if let Some((_, unreadable)) = end.take_if(|(number, _)| *number == self.order.next.0) {
                // What was read before it was judged.
                return unreadable.map_or(Ok(()), |error| Err(SandboxError::Traces(error)));
            }
            let word = match self.heard.try_recv() {
                Ok(word) => Ok(word),
                Err(TryRecvError::Disconnected) => return Err(gone()),
                Err(TryRecvError::Empty) => {
                    if listener.idle().is_break() {
                        // What was judged is not lost because somebody asked to stop.
                        let _ = self.hand_on(listener);
                        return Ok(());
                    }
                    self.heard.recv_timeout(IDLE)
                }
            };
            match word {
                Ok(Word::Done(number, count)) => {
                    self.order.sizes.insert(number, count);
                }
                Ok(Word::End(number, error)) => end = Some((number, error)),
                Err(RecvTimeoutError::Disconnected) => return Err(gone()),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Hands on all whose turn it is, also when the listener wants to hear no more after one of them.
    fn hand_on(&mut self, listener: &mut impl Listener) -> ControlFlow<()> {
        let laid_down = std::mem::take(&mut *self.outbox.lock().unwrap_or_else(PoisonError::into_inner));
        self.order.early.extend(laid_down.into_iter().map(|(number, index, judged)| ((number, index), judged)));
        let mut flow = ControlFlow::Continue(());
        loop {
            let (number, index) = self.order.next;
            if let Some(judged) = self.order.early.remove(&(number, index)) {
                self.order.next.1 += 1;
                if listener.judged(judged).is_break() {
                    flow = ControlFlow::Break(());
                }
            } else if self.order.sizes.get(&number) == Some(&index) {
                self.order.sizes.remove(&number);
                self.order.next = (number + 1, 0);
                let _ = self.permits.send(());
            } else {
                return flow;
            }
        }
    }
}

fn gone() -> SandboxError {
    SandboxError::Engine("a thread ended before its work was done".to_owned())
}
