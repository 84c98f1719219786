//! One Python with one eval function in it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use karat_core::judgement::{Conclusion, ErrorKind, EvalError, Judgement, Limits};
use wasmtime::component::TypedFunc;
use wasmtime::{Store, Trap, UpdateDeadline};

use crate::engine::{Host, Sandbox};
use crate::frame::{Answer, Frame};
use crate::function::Function;
use crate::memory::{Image, Region, handed_out};

/// How much memory Python may use to get ready, before a function's limit counts.
const TO_GET_READY: usize = 64 << 20;

/// How long compiling a function may take; a source is short, but a constant in it can be long to work out.
const TO_PREPARE: Duration = Duration::from_secs(5);

/// What the allocator adds to what it is asked for.
const MARGIN: usize = 1 << 20;

/// The last bytes of the memory, in which Python's allocator marks its end.
const END: usize = 64 << 10;

/// A Python with a function prepared in it.
pub(crate) struct Instance {
    // First, so that it is let go of before the store gives the memory back.
    region: Arc<Region>,
    store: Store<Host>,
    judge: TypedFunc<(Vec<u8>,), (Vec<u8>,)>,
    /// The memory as it was before the first trace.
    image: Image,
}

/// What came of a run, and whether the instance can be used again.
pub(crate) struct Ran {
    pub(crate) judgement: Judgement,
    pub(crate) left: Left,
    /// It asked for memory and was refused, whatever it made of that.
    pub(crate) was_refused: bool,
}

/// In which state a run left its instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// The function returned a verdict.
    InOrder,
    /// The function ended in some other way: the memory must be put back.
    Upset,
    /// It was ended from outside: it cannot be used any more.
    Dead,
}

impl Instance {
    /// Starts a Python and prepares a function in it.
    pub(crate) fn prepare(sandbox: &Sandbox, function: &Function, limits: Limits) -> Result<Self, EvalError> {
        let host = Host { deadline: Instant::now() + TO_PREPARE, most_memory: TO_GET_READY, refused: false };
        let mut store = Store::new(sandbox.engine(), host);
        store.limiter(|host| host);
        // By the clock and not by counting ticks, which come late on a busy machine.
        store.epoch_deadline_callback(|context| {
            if Instant::now() >= context.data().deadline {
                Err(Trap::Interrupt.into())
            } else {
                Ok(UpdateDeadline::Continue(1))
            }
        });
        store.set_epoch_deadline(1);
        drop(handed_out());
        let instance = sandbox.start().instantiate(&mut store).map_err(|error| broken(&error))?;
        let region = the_only(handed_out())?;
        let prepare: TypedFunc<(String, String), (Vec<u8>,)> =
            instance.get_typed_func(&mut store, "prepare").map_err(|error| broken(&error))?;
        let reserve: TypedFunc<(u32,), ()> =
            instance.get_typed_func(&mut store, "reserve").map_err(|error| broken(&error))?;
        let judge = instance.get_typed_func(&mut store, "judge").map_err(|error| broken(&error))?;

        let (answer,) = prepare
            .call(&mut store, (function.source.as_ref().to_owned(), function.name.clone()))
            .map_err(|error| ended(&error, store.data(), TO_PREPARE))?;
        match Frame::read(&answer).map(|frame| (frame.answer, frame.text)) {
            Some((Answer::Ready, _)) => {}
            Some((Answer::Syntax, text)) => return Err(EvalError::new(ErrorKind::Syntax, text)),
            Some((Answer::Memory, _)) if store.data().refused => return Err(out_of_memory(limits)),
            // Python's parser says so where it has no room for another level.
            Some((Answer::Memory, _)) => {
                return Err(EvalError::new(ErrorKind::Syntax, "something is nested too deeply for Python's parser"));
            }
            _ => return Err(EvalError::new(ErrorKind::Internal, "Python did not get ready")),
        }
        // All the memory that the function may use is its own from the start and never grows, so that it can be put
        // back to how it was.
        let low = region.size();
        store.data_mut().most_memory = low.saturating_add(limits.memory_bytes).saturating_add(MARGIN);
        let reserved = u32::try_from(limits.memory_bytes).unwrap_or(u32::MAX);
        reserve.call(&mut store, (reserved,)).map_err(|error| ended(&error, store.data(), TO_PREPARE))?;
        store.data_mut().most_memory = region.size();
        let image = Image::take(&region, low, END);
        Ok(Self { region, store, judge, image })
    }

    /// Runs the function over a trace, which comes in Python's marshal format.
    pub(crate) fn judge(&mut self, trace: Vec<u8>, limits: Limits) -> Ran {
        let start = Instant::now();
        self.store.data_mut().deadline = start + limits.time;
        self.store.data_mut().refused = false;
        self.store.set_epoch_deadline(1);
        let called = self.judge.call(&mut self.store, (trace,));
        let elapsed = start.elapsed();
        let (answer,) = match called {
            Ok(answer) => answer,
            Err(error) => {
                let conclusion = Conclusion::Error(ended(&error, self.store.data(), limits.time));
                let judgement = Judgement { conclusion, elapsed, stdout: String::new(), stderr: String::new() };
                return Ran { judgement, left: Left::Dead, was_refused: self.store.data().refused };
            }
        };
        let was_refused = self.store.data().refused;
        let Some(frame) = Frame::read(&answer) else {
            let error = EvalError::new(ErrorKind::Internal, "Python's answer cannot be read");
            let conclusion = Conclusion::Error(error);
            let judgement = Judgement { conclusion, elapsed, stdout: String::new(), stderr: String::new() };
            return Ran { judgement, left: Left::Dead, was_refused };
        };
        let conclusion = match frame.answer {
            Answer::Passed => Conclusion::Verdict { passed: true, reason: frame.text },
            Answer::Failed => Conclusion::Verdict { passed: false, reason: frame.text },
            // Python 3.14 says other things than MemoryError where a text could not grow, and goes on with what is none.
            Answer::Exception if was_refused => {
                let said = format!("{}, and then raised {}", out_of_memory(limits), frame.text);
                Conclusion::Error(EvalError::new(ErrorKind::Memory, said))
            }
            Answer::Exception => Conclusion::Error(EvalError::new(ErrorKind::Exception, frame.text)),
            Answer::Memory if was_refused => Conclusion::Error(out_of_memory(limits)),
            // More than any memory could hold, or the function's own doing.
            Answer::Memory => Conclusion::Error(EvalError::new(ErrorKind::Memory, "raised MemoryError")),
            Answer::Return => Conclusion::Error(EvalError::new(
                ErrorKind::Return,
                format!("must return (bool, str), but returned {}", frame.text),
            )),
            Answer::Syntax | Answer::Ready => {
                Conclusion::Error(EvalError::new(ErrorKind::Internal, "Python's answer is to another question"))
            }
        };
        let is_verdict = matches!(conclusion, Conclusion::Verdict { .. });
        let left = if is_verdict && !was_refused { Left::InOrder } else { Left::Upset };
        let judgement = Judgement { conclusion, elapsed, stdout: frame.stdout, stderr: frame.stderr };
        Ran { judgement, left, was_refused }
    }

    /// Makes Python as it was before the first trace; false when that cannot be.
    pub(crate) fn put_back(&mut self) -> bool {
        self.image.put_back(&self.region)
    }
}

/// Returns the memory of an instance, of which there is one.
fn the_only(mut regions: Vec<Arc<Region>>) -> Result<Arc<Region>, EvalError> {
    match (regions.pop(), regions.is_empty()) {
        (Some(region), true) => Ok(region),
        _ => Err(EvalError::new(ErrorKind::Internal, "the guest has not one memory")),
    }
}

fn broken(error: &wasmtime::Error) -> EvalError {
    EvalError::new(ErrorKind::Internal, format!("Python cannot be started: {error:#}"))
}

/// Tells why a call did not return.
fn ended(error: &wasmtime::Error, host: &Host, limit: Duration) -> EvalError {
    match error.downcast_ref::<Trap>() {
        Some(Trap::Interrupt) => {
            EvalError::new(ErrorKind::Timeout, format!("took longer than {} ms", limit.as_millis()))
        }
        // What Python itself needs was not there, or it wanted to say so on a stderr that it does not have.
        Some(Trap::UnreachableCodeReached) | None if host.refused => {
            EvalError::new(ErrorKind::Memory, "used up its memory")
        }
        Some(Trap::StackOverflow) => EvalError::new(ErrorKind::Memory, "used up the stack"),
        Some(trap) => EvalError::new(ErrorKind::Internal, format!("Python broke off: {trap}")),
        None => EvalError::new(ErrorKind::Internal, format!("Python called for what it may not have: {error:#}")),
    }
}

fn out_of_memory(limits: Limits) -> EvalError {
    EvalError::new(ErrorKind::Memory, format!("needed more memory than {} MB", limits.memory_bytes >> 20))
}
