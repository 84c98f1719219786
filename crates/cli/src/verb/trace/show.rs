//! `karat trace show`: shows a trace with its verdicts and ratings.

use karat_core::exit::ExitStatus;
use karat_report::{Length, escape_json, trace_text};
use karat_workflows::traces::{raw, show};

use crate::args::{OutputFormat, TraceShowArgs};
use crate::failure::Failure;
use crate::surface::Surface;

pub(super) fn run(args: &TraceShowArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&[])?;
    let printer = surface.printer;
    if args.raw {
        let raw = surface.run(raw(&args.id, &context))?;
        let written = match std::str::from_utf8(&raw) {
            // Escaped, so that it controls neither a terminal nor a workflow; the value is the same.
            Ok(text) if printer.terminal_columns.is_some() || surface.environment.github_actions => {
                printer.write_stdout(&escape_json(text))
            }
            _ => printer.write_stdout_bytes(&raw),
        };
        written.map_err(|error| Failure::errored(error.to_string()))?;
        return Ok(ExitStatus::Success);
    }
    let details = surface.run(show(&args.id, &context))?;
    match args.format {
        OutputFormat::Json => printer.print_json(&details)?,
        OutputFormat::Human => {
            let length = if args.full { Length::Full } else { Length::Short };
            printer.print(&trace_text(&details, length, printer.console()))?;
        }
    }
    Ok(ExitStatus::Success)
}
