//! `karat eval doctor`: shows the Python version and tests the sandbox.

use std::ops::ControlFlow;

use karat_core::exit::ExitStatus;
use karat_report::{guarantee_text, guarantees_text, guest_text, limits_text};
use karat_workflows::doctor::{Event, doctor};

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
            Event::Loaded { load_ms, limits, restore_method } => limits_text(load_ms, limits, restore_method),
            Event::Checked(guarantee) if guarantee.held && printer.quiet => return ControlFlow::Continue(()),
            Event::Checked(guarantee) => guarantee_text(&guarantee, console),
        };
        written = printer.print(&text);
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    // Slow, so it runs where an interrupt can end it.
    let mut report = surface.run(async { Ok::<_, Failure>(doctor(&surface.environment.process, &mut print)) })?;
    written?;
    let error = report.error.take();
    match args.format {
        OutputFormat::Json => printer.print_json(&report)?,
        OutputFormat::Human if error.is_none() => {
            printer.print(&guarantees_text(&report.guarantees, printer.stdout_palette))?;
        }
        OutputFormat::Human => {}
    }
    match error {
        Some(error) => Err(error.into()),
        None if report.is_healthy => Ok(ExitStatus::Success),
        None => Ok(ExitStatus::Errored),
    }
}
