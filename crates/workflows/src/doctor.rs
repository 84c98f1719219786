//! Checks the sandbox: which guest runs eval functions, and whether its guarantees hold.

use std::time::{Duration, Instant};

use karat_core::judgement::Limits;
use karat_sandbox::{GuaranteeCheck, Guest, RestoreMethod, check_guarantees};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::sandbox::{find_guest, open_sandbox};
use crate::error::{Error, ErrorKind};
use crate::event::EventSink;
use crate::settings::ProcessEnv;

/// Maximum stored output of a function, in KB.
const OUTPUT_KB: u64 = 64;

/// The output of `karat eval doctor --format json`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat eval doctor report")]
pub struct DoctorReport {
    /// Whether functions can be run and every guarantee holds.
    pub is_healthy: bool,
    /// Why functions cannot be run; null if they can.
    pub problem: Option<String>,
    /// The guest that runs functions; null if there is none.
    pub guest: Option<GuestReport>,
    /// The time to load the guest; null if it could not be loaded.
    pub load_ms: Option<u64>,
    pub limits: LimitsReport,
    /// The isolation modes; the first is the default.
    pub isolation: [&'static str; 2],
    /// How Python's memory is restored after each trace: `write-protection` (fastest), `private-pages` or `full-copy`.
    pub restore_method: &'static str,
    /// The guarantees of the sandbox, each tested.
    #[serde(rename = "promises")]
    pub guarantees: Vec<GuaranteeReport>,
    /// The error behind the problem.
    #[serde(skip)]
    pub error: Option<Error>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GuestReport {
    /// The first twelve hex digits of its SHA-256, as recorded in each execution.
    pub hash: String,
    /// Null if unknown.
    pub python_version: Option<String>,
    /// The tool that built the guest; null if the guest is a file.
    #[serde(rename = "madeBy")]
    pub build_tools: Option<&'static str>,
    /// The file from `KARAT_GUEST`; null for the built-in guest.
    pub file: Option<String>,
}

/// The limits of a function per trace.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LimitsReport {
    pub time_ms: u64,
    pub memory_mb: u64,
    /// For stdout and stderr each.
    pub output_kb: u64,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GuaranteeReport {
    pub name: &'static str,
    pub held: bool,
    /// The observed violation; null if the guarantee held.
    pub instead: Option<String>,
    pub elapsed_ms: u64,
}

/// A part of the report, emitted as soon as it is known.
pub enum Event {
    Guest(GuestReport),
    Loaded { load_ms: u64, limits: LimitsReport, restore_method: &'static str },
    Checked(GuaranteeReport),
}

/// Loads the guest and tests every guarantee. A sandbox that cannot be opened is reported, not an error.
pub fn doctor(process_env: &ProcessEnv, events: &mut dyn EventSink<Event>) -> DoctorReport {
    let mut report = DoctorReport::new();
    match examine(&mut report, process_env, events) {
        Ok(()) => report.is_healthy = report.guarantees.iter().all(|guarantee| guarantee.held),
        Err(error) => {
            report.problem = Some(error.message.clone());
            // Unavailable even if `KARAT_GUEST` is invalid: the sandbox cannot be used.
            report.error = Some(Error { kind: ErrorKind::Unavailable, ..error });
        }
    }
    report
}

fn examine(
    report: &mut DoctorReport,
    process_env: &ProcessEnv,
    events: &mut dyn EventSink<Event>,
) -> Result<(), Error> {
    let mut emit = |event| {
        if events.emit(event).is_break() { Err(Error::cancelled()) } else { Ok(()) }
    };
    let guest = GuestReport::of(&find_guest(process_env.guest.as_deref())?);
    report.guest = Some(guest.clone());
    emit(Event::Guest(guest))?;
    let start = Instant::now();
    let sandbox = open_sandbox(process_env.guest.as_deref())?;
    let load_ms = milliseconds(start.elapsed());
    report.load_ms = Some(load_ms);
    emit(Event::Loaded { load_ms, limits: report.limits, restore_method: report.restore_method })?;
    let mut emitted = Ok(());
    let checks = check_guarantees(&sandbox, |check| {
        if emitted.is_ok() {
            emitted = emit(Event::Checked(GuaranteeReport::of(check)));
        }
    })?;
    emitted?;
    report.guarantees = checks.iter().map(GuaranteeReport::of).collect();
    Ok(())
}

impl DoctorReport {
    fn new() -> Self {
        let largest = Limits::MAX;
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
            isolation: ["fresh", "shared"],
            restore_method: RestoreMethod::detect().name(),
            guarantees: Vec::new(),
            error: None,
        }
    }
}

impl GuestReport {
    fn of(guest: &Guest) -> Self {
        Self {
            hash: guest.hash().to_owned(),
            python_version: guest.python_version(),
            build_tools: guest.build_tools(),
            file: guest.file().map(|path| path.display().to_string()),
        }
    }
}

impl GuaranteeReport {
    fn of(check: &GuaranteeCheck) -> Self {
        Self {
            name: check.guarantee,
            held: check.violation.is_none(),
            instead: check.violation.clone(),
            elapsed_ms: milliseconds(check.elapsed),
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
