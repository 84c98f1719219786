//! `karat eval doctor`: which Python runs eval functions, and whether the sandbox holds.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use karat_core::exit::ExitStatus;
use karat_core::judgement::Limits;
use karat_report::{ConsoleSettings, Palette, counted, cut, pad, printable};
use karat_sandbox::{Guest, Sandbox, Trial, try_promises};
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::{EvalDoctorArgs, OutputFormat};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::runtime_that_ends;
use crate::printer::Printer;
use karat_workflows::context::sandbox::{find_guest, open_sandbox};

/// What of a function's output is kept, in KB.
const OUTPUT_KB: u64 = 64;

/// What `karat eval doctor --format json` prints.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat eval doctor report")]
pub(crate) struct DoctorReport {
    /// Whether functions can be run, and every promise held.
    is_healthy: bool,
    /// Why functions cannot be run; null when they can.
    problem: Option<String>,
    /// The Python that runs functions; null when there is none.
    guest: Option<GuestReport>,
    /// How long it took to load the guest; null when it could not be loaded.
    load_ms: Option<u64>,
    limits: LimitsReport,
    /// How traces can be kept apart; the first is what happens unless another is asked for.
    isolation: [&'static str; 2],
    /// What was tried for real.
    promises: Vec<PromiseReport>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GuestReport {
    /// The first twelve hex digits of its SHA-256, as they stand in each execution.
    hash: String,
    /// Null when it cannot be told.
    python_version: Option<String>,
    /// What the build made it with; null when it is a file.
    made_by: Option<&'static str>,
    /// The file that `KARAT_GUEST` names; null when it is part of the program.
    file: Option<String>,
}

/// The most that a function may use for one trace.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LimitsReport {
    time_ms: u64,
    memory_mb: u64,
    /// Of stdout, and of stderr.
    output_kb: u64,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PromiseReport {
    name: &'static str,
    held: bool,
    /// What happened instead; null when it held.
    instead: Option<String>,
    elapsed_ms: u64,
}

pub(crate) fn run(args: &EvalDoctorArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    // The trials take a while.
    let _runtime = runtime_that_ends()?;
    let mut report = DoctorReport::new();
    let examined = examine(&mut report, args.format, environment, printer);
    if let Err(failure) = &examined {
        report.problem = Some(failure.message.clone());
    }
    report.is_healthy = examined.is_ok() && report.promises.iter().all(|promise| promise.held);
    match args.format {
        OutputFormat::Json => printer.print_json(&report)?,
        OutputFormat::Human if examined.is_ok() => printer.print(&report.totals(printer.stdout_palette))?,
        OutputFormat::Human => {}
    }
    examined?;
    Ok(if report.is_healthy { ExitStatus::Success } else { ExitStatus::Errored })
}

/// Looks at everything in turn, and tells a person of each at once.
fn examine(
    report: &mut DoctorReport,
    format: OutputFormat,
    environment: &Environment,
    printer: &Printer,
) -> Result<(), Failure> {
    let tell = |text: &str| match format {
        OutputFormat::Human => printer.print(text),
        OutputFormat::Json => Ok(()),
    };
    let guest = find_guest(environment.process.guest.as_deref())
        .map_err(|failure| Failure { status: ExitStatus::Errored, ..failure.into() })?;
    tell(&report.guest.insert(GuestReport::of(&guest)).text())?;
    let start = Instant::now();
    let sandbox = open_sandbox(environment.process.guest.as_deref())
        .map_err(|failure| Failure { status: ExitStatus::Errored, ..failure.into() })?;
    let load_ms = milliseconds(start.elapsed());
    report.load_ms = Some(load_ms);
    tell(&row("", &format!("loaded in {load_ms} ms")))?;
    tell(&report.limits.text())?;
    report.promises = try_all(&sandbox, printer, &tell)?;
    Ok(())
}

fn try_all(
    sandbox: &Sandbox,
    printer: &Printer,
    tell: &dyn Fn(&str) -> Result<(), Failure>,
) -> Result<Vec<PromiseReport>, Failure> {
    let mut told = Ok(());
    let trials = try_promises(sandbox, |trial| {
        let shown = !printer.quiet || trial.broken.is_some();
        if told.is_ok() && shown {
            told = tell(&line(trial, &printer.console()));
        }
    });
    told?;
    let trials = trials?;
    Ok(trials.into_iter().map(PromiseReport::of).collect())
}

fn row(name: &str, text: &str) -> String {
    format!("{name:<13} {}\n", printable(text))
}

fn line(trial: &Trial, console: &ConsoleSettings) -> String {
    let ConsoleSettings { columns, symbols, palette, .. } = *console;
    let elapsed = format!("{}ms", trial.elapsed.as_millis());
    let (symbol, elapsed) = match trial.broken {
        None => (palette.good(symbols.passed), palette.dim(format!("{elapsed:>8}"))),
        Some(_) => (palette.bad(symbols.failed), palette.bad(format!("{elapsed:>8}  FAILED"))),
    };
    let mut text = format!("  {symbol} {}{elapsed}\n", pad(trial.promise, 42));
    if let Some(instead) = &trial.broken {
        let instead = printable(instead);
        let instead = cut(&instead, columns.saturating_sub(8), symbols.ellipsis);
        let _ = writeln!(text, "    {} {instead}", symbols.arrow);
    }
    text
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
        }
    }

    fn totals(&self, palette: Palette) -> String {
        let broken = self.promises.iter().filter(|promise| !promise.held).count();
        let tried = counted(self.promises.len(), "promise");
        match broken {
            0 => palette.good(format!("{tried} tried, all held\n")),
            _ => palette.bad(format!("{tried} tried, {broken} broken: do not run what you do not trust\n")),
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

    fn text(&self) -> String {
        let version = self.python_version.as_deref().unwrap_or("of an unknown version");
        let python = match self.made_by {
            Some(made_by) => format!("{version}, made by {made_by}"),
            None => version.to_owned(),
        };
        let origin = self.file.as_deref().unwrap_or("part of this program");
        row("Python", &python) + &row("guest", &format!("{}, {origin}", self.hash))
    }
}

impl LimitsReport {
    fn text(&self) -> String {
        let Self { time_ms, memory_mb, output_kb } = self;
        row("limits", &format!("{time_ms} ms and {memory_mb} MB for a trace, {output_kb} KB of output"))
            + &row("isolation", "namespace; --isolation strict: a Python for each trace")
            + "\n"
    }
}

impl PromiseReport {
    fn of(trial: Trial) -> Self {
        Self {
            name: trial.promise,
            held: trial.broken.is_none(),
            instead: trial.broken,
            elapsed_ms: milliseconds(trial.elapsed),
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use karat_report::{Symbols, Verbosity};

    use super::*;

    #[test]
    fn shows_broken_promises() {
        let palette = Palette { color: false };
        let console = ConsoleSettings { columns: 80, symbols: Symbols::ASCII, palette, verbosity: Verbosity::Normal };
        let trial =
            |broken: Option<String>| Trial { promise: "time: a loop", broken, elapsed: Duration::from_millis(7) };
        let broken = trial(Some(format!("internal: {}", "x".repeat(100))));
        let shown = line(&broken, &console);
        assert!(
            shown.starts_with("  FAIL time: a loop ") && shown.contains("7ms  FAILED\n    -> internal: "),
            "{shown}"
        );
        assert!(shown.lines().all(|line| line.len() <= 80), "{shown}");

        let mut report = DoctorReport::new();
        report.promises = [broken, trial(None)].into_iter().map(PromiseReport::of).collect();
        assert_eq!(report.totals(palette), "2 promises tried, 1 broken: do not run what you do not trust\n");
        report.promises.remove(0);
        assert_eq!(report.totals(palette), "1 promise tried, all held\n");
    }
}
