//! `karat eval doctor`: shows the Python version and tests the sandbox.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use karat_core::exit::ExitStatus;
use karat_report::{ConsoleSettings, Palette, counted, duration_text, pad, printable, wrap};
use karat_workflows::doctor::{Event, GuaranteeReport, GuestReport, LimitsReport, doctor};

use crate::args::{EvalDoctorArgs, OutputFormat};
use crate::failure::Failure;
use crate::surface::Surface;

pub(super) fn run(args: &EvalDoctorArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let printer = surface.printer.as_ref();
    let console = printer.console();
    let mut written = Ok(());
    let mut print = |event: Event| {
        let text = match event {
            _ if args.format == OutputFormat::Json => return ControlFlow::Continue(()),
            Event::Guest(guest) => guest_text(&guest),
            Event::Loaded { load_ms, limits } => loaded_text(load_ms, limits),
            Event::Checked(guarantee) if guarantee.held && printer.quiet => return ControlFlow::Continue(()),
            Event::Checked(guarantee) => guarantee_text(&guarantee, &console),
        };
        written = printer.print(&text);
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    // Slow, so it runs where an interrupt can end it.
    let mut report = surface.run(async { Ok(doctor(&surface.environment.process, &mut print)) })?;
    written?;
    let error = report.error.take();
    match args.format {
        OutputFormat::Json => printer.print_json(&report)?,
        OutputFormat::Human if error.is_none() => printer.print(&totals(&report.guarantees, printer.stdout_palette))?,
        OutputFormat::Human => {}
    }
    match error {
        Some(error) => Err(error.into()),
        None if report.is_healthy => Ok(ExitStatus::Success),
        None => Ok(ExitStatus::Errored),
    }
}

fn row(name: &str, text: &str) -> String {
    format!("{name:<13} {}\n", printable(text))
}

fn guest_text(guest: &GuestReport) -> String {
    let version = guest.python_version.as_deref().unwrap_or("unknown version");
    let python = match guest.build_tools {
        Some(build_tools) => format!("{version}, built by {build_tools}"),
        None => version.to_owned(),
    };
    let origin = guest.file.as_deref().unwrap_or("built in");
    row("Python", &python) + &row("guest", &format!("{}, {origin}", guest.hash))
}

fn loaded_text(load_ms: u64, limits: LimitsReport) -> String {
    let LimitsReport { time_ms, memory_mb, output_kb } = limits;
    row("", &format!("loaded in {}", duration_text(load_ms)))
        + &row("limits", &format!("{time_ms} ms and {memory_mb} MB per trace, {output_kb} KB of output"))
        + &row("isolation", "namespace (--isolation strict starts a new Python for each trace)")
        + "\n"
}

fn guarantee_text(guarantee: &GuaranteeReport, console: &ConsoleSettings) -> String {
    let ConsoleSettings { columns, symbols, palette, .. } = *console;
    let elapsed = duration_text(guarantee.elapsed_ms);
    let (symbol, elapsed) = if guarantee.held {
        (palette.success(symbols.passed), palette.dim(format!("{elapsed:>8}")))
    } else {
        (palette.failure(symbols.failed), palette.failure(format!("{elapsed:>8}  FAILED")))
    };
    let mut text = format!("  {symbol} {}{elapsed}\n", pad(guarantee.name, 42));
    if let Some(instead) = &guarantee.instead {
        let lines = wrap(&printable(instead), columns.saturating_sub(8).max(20));
        let _ = writeln!(text, "    {} {}", symbols.arrow, lines.join("\n       "));
    }
    text
}

fn totals(guarantees: &[GuaranteeReport], palette: Palette) -> String {
    let failed = guarantees.iter().filter(|guarantee| !guarantee.held).count();
    let count = counted(guarantees.len(), "check");
    match failed {
        0 => palette.success(format!("{count} passed\n")),
        _ => palette.failure(format!("{count}, {failed} failed: do not run untrusted code\n")),
    }
}

#[cfg(test)]
mod tests {
    use karat_report::{Symbols, Verbosity};

    use super::*;

    #[test]
    fn shows_failed_checks() {
        let palette = Palette { color: false };
        let console = ConsoleSettings { columns: 80, symbols: Symbols::ASCII, palette, verbosity: Verbosity::Normal };
        let guarantee = |instead: Option<String>| GuaranteeReport {
            name: "time: a loop",
            held: instead.is_none(),
            instead,
            elapsed_ms: 7,
        };
        let failed = guarantee(Some(format!("internal: {}", "x".repeat(100))));
        let shown = guarantee_text(&failed, &console);
        assert!(
            shown.starts_with("  FAIL time: a loop ") && shown.contains("7 ms  FAILED\n    -> internal:"),
            "{shown}"
        );
        assert!(shown.lines().all(|line| line.len() <= 80), "{shown}");

        let all = [failed, guarantee(None)];
        assert_eq!(totals(&all, palette), "2 checks, 1 failed: do not run untrusted code\n");
        assert_eq!(totals(&all[1..], palette), "1 check passed\n");
    }
}
