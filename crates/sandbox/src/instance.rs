//! A Python instance with one eval function loaded.

use std::sync::Arc;
use std::time::{Duration, Instant};

use karat_core::judgement::{Conclusion, ErrorKind, EvalError, Judgement, Limits};
use tracing::trace;
use wasmtime::component::TypedFunc;
use wasmtime::{Store, Trap, UpdateDeadline};

use crate::engine::{Host, NoClock, Sandbox};
use crate::frame::{Frame, FrameKind};
use crate::function::Function;
use crate::memory::{Region, RestoreMethod, RestoreStats, Snapshot, take_allocated_regions};

/// Memory that Python may use to start, before the function's limit applies.
const STARTUP_MEMORY: usize = 64 << 20;

/// Limit for compiling a function: constant folding can take long even in a short source.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(5);

/// Overhead of the allocator for a large allocation.
const ALLOCATOR_OVERHEAD: usize = 1 << 20;

/// The start of the error for a return that `evalReturns` does not allow.
const FLEXIBLE_RETURN: &str = "must return a bool, a finite number, (bool or number, str), a dict with 'pass' or 'score' \
                               (and 'reason'), or None, but returned ";

/// A Python instance with a prepared function.
pub(crate) struct Instance {
    store: Store<Host>,
    judge: JudgeFunction,
    /// The memory before the first trace.
    snapshot: Snapshot,
}

/// Runs the function on a trace in Python's marshal format.
type JudgeFunction = TypedFunc<(Vec<u8>,), (Vec<u8>,)>;

/// When the function's source, which defines it, runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceRun {
    /// Before the first trace; every trace starts with the state after that.
    Once,
    /// For each trace, in a new namespace.
    EachTrace,
}

/// The reason why an instance cannot be prepared.
#[derive(Debug)]
pub(crate) enum PrepareError {
    /// The function cannot be prepared.
    Function(EvalError),
    /// The source cannot run before the first trace. If it runs for each trace, each gets its error.
    SourceRun,
}

impl From<EvalError> for PrepareError {
    fn from(error: EvalError) -> Self {
        Self::Function(error)
    }
}

/// The judgement of one trace, and whether the instance can be reused.
pub(crate) struct RunOutput {
    pub(crate) judgement: Judgement,
    pub(crate) state: InstanceState,
    /// Whether an allocation was denied, even if the function handled that.
    pub(crate) hit_memory_limit: bool,
}

/// State of an instance after a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InstanceState {
    /// The function returned a verdict.
    Clean,
    /// The function ended in another way: the memory must be restored.
    Dirty,
    /// The run was aborted: the instance cannot be used any more.
    Dead,
}

impl Instance {
    /// Starts Python and compiles a function in it.
    pub(crate) fn prepare(
        sandbox: &Sandbox,
        function: &Function,
        limits: Limits,
        source_run: SourceRun,
    ) -> Result<Self, PrepareError> {
        let mut store = new_store(sandbox);
        drop(take_allocated_regions());
        let instance = sandbox.start().instantiate(&mut store).map_err(|error| start_error(&error))?;
        let region = single_region(take_allocated_regions())?;
        let prepare: TypedFunc<(String, String, String), (Vec<u8>,)> =
            instance.get_typed_func(&mut store, "prepare").map_err(|error| start_error(&error))?;
        let reserve: TypedFunc<(u32,), ()> =
            instance.get_typed_func(&mut store, "reserve").map_err(|error| start_error(&error))?;
        let load: TypedFunc<(), (Vec<u8>,)> =
            instance.get_typed_func(&mut store, "load").map_err(|error| start_error(&error))?;
        let judge = instance.get_typed_func(&mut store, "judge").map_err(|error| start_error(&error))?;

        let (answer,) = prepare
            .call(&mut store, (function.source.as_ref().to_owned(), function.name.clone(), function.guest_options()))
            .map_err(|error| abort_error(&error, store.data(), PREPARE_TIMEOUT))?;
        check_prepared(&answer, store.data(), limits)?;
        // Reserve all memory that the function may use, so that the memory never grows: it could not shrink.
        let used = region.size();
        store.data_mut().max_memory = used.saturating_add(limits.memory_bytes).saturating_add(ALLOCATOR_OVERHEAD);
        let reserved = u32::try_from(limits.memory_bytes).unwrap_or(u32::MAX);
        reserve.call(&mut store, (reserved,)).map_err(|error| abort_error(&error, store.data(), PREPARE_TIMEOUT))?;
        store.data_mut().max_memory = region.size();
        if source_run == SourceRun::Once {
            start_call(&mut store, limits.time);
            let answer = load.call(&mut store, ()).map(|(answer,)| Frame::read(&answer).map(|frame| frame.kind));
            if !matches!(answer, Ok(Some(FrameKind::Ready))) || store.data().hit_memory_limit {
                return Err(PrepareError::SourceRun);
            }
        }
        let snapshot = Snapshot::capture(region, RestoreMethod::detect())
            .ok_or_else(|| EvalError::new(ErrorKind::Internal, "cannot capture Python's memory"))?;
        Ok(Self { store, judge, snapshot })
    }

    /// Runs the function on a trace in Python's marshal format.
    pub(crate) fn judge(&mut self, trace: Vec<u8>, limits: Limits) -> RunOutput {
        let start = Instant::now();
        start_call(&mut self.store, limits.time);
        let called = self.judge.call(&mut self.store, (trace,));
        let elapsed = start.elapsed();
        let (answer,) = match called {
            Ok(answer) => answer,
            Err(error) => {
                let error = abort_error(&error, self.store.data(), limits.time);
                let judgement = Judgement { elapsed, ..Judgement::not_run(error) };
                let hit_memory_limit = self.store.data().hit_memory_limit;
                return RunOutput { judgement, state: InstanceState::Dead, hit_memory_limit };
            }
        };
        let hit_memory_limit = self.store.data().hit_memory_limit;
        let Some(frame) = Frame::read(&answer) else {
            let error = EvalError::new(ErrorKind::Internal, "cannot decode Python's answer");
            let judgement = Judgement { elapsed, ..Judgement::not_run(error) };
            return RunOutput { judgement, state: InstanceState::Dead, hit_memory_limit };
        };
        let (score, reason) = frame.score();
        let reason = reason.to_owned();
        let conclusion = match frame.kind {
            FrameKind::Passed | FrameKind::PassedWithScore => Conclusion::Verdict { passed: true, reason },
            FrameKind::Failed | FrameKind::FailedWithScore => Conclusion::Verdict { passed: false, reason },
            FrameKind::NotApplicable => Conclusion::NotApplicable { reason },
            // Python 3.14 can raise other exceptions than MemoryError when a string cannot grow.
            FrameKind::Exception if hit_memory_limit => {
                let message = format!("{}, and then raised {}", out_of_memory(limits), frame.text);
                Conclusion::Error(EvalError::new(ErrorKind::Memory, message))
            }
            FrameKind::Exception => Conclusion::Error(EvalError::new(ErrorKind::Exception, frame.text)),
            FrameKind::Memory if hit_memory_limit => Conclusion::Error(out_of_memory(limits)),
            // The request exceeded the address space, or the function raised it.
            FrameKind::Memory => Conclusion::Error(EvalError::new(ErrorKind::Memory, "raised MemoryError")),
            FrameKind::Return => Conclusion::Error(EvalError::new(
                ErrorKind::Return,
                format!("must return (bool, str), but returned {}", frame.text),
            )),
            FrameKind::FlexibleReturn => {
                Conclusion::Error(EvalError::new(ErrorKind::Return, format!("{FLEXIBLE_RETURN}{}", frame.text)))
            }
            FrameKind::Syntax | FrameKind::Ready => {
                Conclusion::Error(EvalError::new(ErrorKind::Internal, "unexpected kind of answer from Python"))
            }
        };
        let is_verdict = !matches!(conclusion, Conclusion::Error(_));
        let state = if is_verdict && !hit_memory_limit { InstanceState::Clean } else { InstanceState::Dirty };
        let judgement = Judgement { conclusion, score, elapsed, stdout: frame.stdout, stderr: frame.stderr };
        RunOutput { judgement, state, hit_memory_limit }
    }

    /// Restores the memory from before the first trace. Returns false if that fails.
    ///
    /// This is all of an instance's state. The build of the guest verifies that its tables never change, nor its
    /// globals except for the stack pointer (`guest/component.py`). A call that returns resets the stack pointer, and
    /// an instance whose call did not return is not used again. No import that returns gives the guest a resource.
    pub(crate) fn restore(&mut self) -> bool {
        let stats = self.snapshot.restore();
        if let Some(RestoreStats { compared, changed }) = stats {
            trace!(compared, changed, "restored pages of Python's memory");
        }
        stats.is_some()
    }
}

fn new_store(sandbox: &Sandbox) -> Store<Host> {
    let host = Host { deadline: Instant::now() + PREPARE_TIMEOUT, max_memory: STARTUP_MEMORY, hit_memory_limit: false };
    let mut store = Store::new(sandbox.engine(), host);
    store.limiter(|host| host);
    // Compare with the clock instead of counting ticks, which are late on a busy machine.
    store.epoch_deadline_callback(|context| {
        if Instant::now() >= context.data().deadline {
            Err(Trap::Interrupt.into())
        } else {
            Ok(UpdateDeadline::Continue(1))
        }
    });
    store.set_epoch_deadline(1);
    store
}

/// Resets the host's state before a call with a time limit.
fn start_call(store: &mut Store<Host>, time: Duration) {
    let host = store.data_mut();
    host.deadline = Instant::now() + time;
    host.hit_memory_limit = false;
    store.set_epoch_deadline(1);
}

/// Checks the answer of `prepare`.
fn check_prepared(answer: &[u8], host: &Host, limits: Limits) -> Result<(), EvalError> {
    match Frame::read(answer).map(|frame| (frame.kind, frame.text)) {
        Some((FrameKind::Ready, _)) => Ok(()),
        Some((FrameKind::Syntax, text)) => Err(EvalError::new(ErrorKind::Syntax, text)),
        Some((FrameKind::Memory, _)) if host.hit_memory_limit => Err(out_of_memory(limits)),
        // Python's parser raises MemoryError when it runs out of nesting levels.
        Some((FrameKind::Memory, _)) => {
            Err(EvalError::new(ErrorKind::Syntax, "the source is nested too deeply for Python's parser"))
        }
        _ => Err(EvalError::new(ErrorKind::Internal, "Python did not start")),
    }
}

/// Returns the instance's memory, which must be the only one.
fn single_region(mut regions: Vec<Arc<Region>>) -> Result<Arc<Region>, EvalError> {
    match (regions.pop(), regions.is_empty()) {
        (Some(region), true) => Ok(region),
        _ => Err(EvalError::new(ErrorKind::Internal, "the guest must have exactly one memory")),
    }
}

fn start_error(error: &wasmtime::Error) -> EvalError {
    EvalError::new(ErrorKind::Internal, format!("cannot start Python: {error:#}"))
}

/// Returns the error for a call that did not return.
fn abort_error(error: &wasmtime::Error, host: &Host, limit: Duration) -> EvalError {
    match error.downcast_ref::<Trap>() {
        Some(Trap::Interrupt) => {
            EvalError::new(ErrorKind::Timeout, format!("took longer than {} ms", limit.as_millis()))
        }
        // Python lacked memory for its own needs, or tried to report that on a stderr that does not exist.
        Some(Trap::UnreachableCodeReached) | None if host.hit_memory_limit => {
            EvalError::new(ErrorKind::Memory, "ran out of memory")
        }
        // Python notices most recursions that are too deep, but not all.
        Some(Trap::StackOverflow) => EvalError::new(
            ErrorKind::Exception,
            "RecursionError: data is nested too deeply, or a recursion is too deep",
        ),
        Some(trap) => EvalError::new(ErrorKind::Internal, format!("Python crashed: {trap}")),
        None if error.is::<NoClock>() => EvalError::new(ErrorKind::Exception, format!("RuntimeError: {NoClock}")),
        None => EvalError::new(ErrorKind::Internal, format!("Python called a blocked system function: {error:#}")),
    }
}

fn out_of_memory(limits: Limits) -> EvalError {
    EvalError::new(ErrorKind::Memory, format!("needed more memory than {} MB", limits.memory_bytes >> 20))
}
