//! Which Python runs eval functions, and whether the sandbox keeps its promises.

use std::time::{Duration, Instant};

use karat_core::judgement::Limits;
use karat_sandbox::{Guest, Trial, try_promises};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::sandbox::{find_guest, open_sandbox};
use crate::error::{Error, ErrorKind};
use crate::event::EventSink;
use crate::settings::Surroundings;

/// How much of a function's output is kept, in KB.
const OUTPUT_KB: u64 = 64;

/// What `karat eval doctor --format json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat eval doctor report")]
pub struct DoctorReport {
    /// Whether functions can be run, and every promise held.
    pub is_healthy: bool,
    /// Why functions cannot be run; null when they can.
    pub problem: Option<String>,
    /// The Python that runs functions; null when there is none.
    pub guest: Option<GuestReport>,
    /// How long it took to load the guest; null when it could not be loaded.
    pub load_ms: Option<u64>,
    pub limits: LimitsReport,
    /// How traces can be kept apart; the first is what happens unless another is asked for.
    pub isolation: [&'static str; 2],
    /// What was tried for real.
    pub promises: Vec<PromiseReport>,
    /// The error behind the problem.
    #[serde(skip)]
    pub error: Option<Error>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GuestReport {
    /// The first twelve hex digits of its SHA-256, as they stand in each execution.
    pub hash: String,
    /// Null when it cannot be told.
    pub python_version: Option<String>,
    /// What the build made it with; null when it is a file.
    pub made_by: Option<&'static str>,
    /// The file that `KARAT_GUEST` names; null when it is part of the program.
    pub file: Option<String>,
}

/// The most that a function may use for one trace.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LimitsReport {
    pub time_ms: u64,
    pub memory_mb: u64,
    /// Of stdout, and of stderr.
    pub output_kb: u64,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromiseReport {
    pub name: &'static str,
    pub held: bool,
    /// What happened instead; null when it held.
    pub instead: Option<String>,
    pub elapsed_ms: u64,
}

/// A part of the report, as soon as it is known.
pub enum Event {
    Guest(GuestReport),
    Loaded { load_ms: u64, limits: LimitsReport },
    Tried(PromiseReport),
}

/// Looks at the guest, loads it and tries every promise. A sandbox that cannot be opened is a result too.
pub fn doctor(surroundings: &Surroundings, events: &mut dyn EventSink<Event>) -> DoctorReport {
    let mut report = DoctorReport::new();
    match examine(&mut report, surroundings, events) {
        Ok(()) => report.is_healthy = report.promises.iter().all(|promise| promise.held),
        Err(error) => {
            report.problem = Some(error.message.clone());
            // Also where the user named a wrong file: it is the sandbox that cannot be used.
            report.error = Some(Error { kind: ErrorKind::Unavailable, ..error });
        }
    }
    report
}

fn examine(
    report: &mut DoctorReport,
    surroundings: &Surroundings,
    events: &mut dyn EventSink<Event>,
) -> Result<(), Error> {
    let mut emit = |event| {
        if events.emit(event).is_break() { Err(Error::cancelled()) } else { Ok(()) }
    };
    let guest = GuestReport::of(&find_guest(surroundings.guest.as_deref())?);
    report.guest = Some(guest.clone());
    emit(Event::Guest(guest))?;
    let start = Instant::now();
    let sandbox = open_sandbox(surroundings.guest.as_deref())?;
    let load_ms = milliseconds(start.elapsed());
    report.load_ms = Some(load_ms);
    emit(Event::Loaded { load_ms, limits: report.limits })?;
    let mut emitted = Ok(());
    let trials = try_promises(&sandbox, |trial| {
        if emitted.is_ok() {
            emitted = emit(Event::Tried(PromiseReport::of(trial)));
        }
    })?;
    emitted?;
    report.promises = trials.iter().map(PromiseReport::of).collect();
    Ok(())
}

impl DoctorReport {
    fn new() -> Self {
        let largest = Limits::LARGEST;
        let limits = LimitsReport {
            time_ms: milliseconds(largest.time),
            memory_mb: largest.memory_bytes as u64 >> 20,
            output_kb: OUTPUT_KB,
        };
        Self {
            is_healthy: false,
            problem: None,
            guest: None,
            load_ms: None,
            limits,
            isolation: ["namespace", "strict"],
            promises: Vec::new(),
            error: None,
        }
    }
}

impl GuestReport {
    fn of(guest: &Guest) -> Self {
        Self {
            hash: guest.hash().to_owned(),
            python_version: guest.python_version(),
            made_by: guest.made_by(),
            file: guest.file().map(|path| path.display().to_string()),
        }
    }
}

impl PromiseReport {
    fn of(trial: &Trial) -> Self {
        Self {
            name: trial.promise,
            held: trial.broken.is_none(),
            instead: trial.broken.clone(),
            elapsed_ms: milliseconds(trial.elapsed),
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
