//! `karat eval check`: checks eval functions without running them.

use karat_core::exit::ExitStatus;
use karat_report::{checked_file_text, checked_functions_text};
use karat_workflows::check_functions::{CheckedFile, Request, check_functions};

use crate::args::{EvalCheckArgs, OutputFormat};
use crate::failure::Failure;
use crate::hint::hint_text;
use crate::surface::Surface;

pub(super) fn run(args: &EvalCheckArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.function_context(&args.functions)?;
    let report = check_functions(&Request { functions: args.functions.clone() }, &context)?;
    let printer = surface.printer;
    match args.format {
        OutputFormat::Json => printer.print_json(&report)?,
        OutputFormat::Human => {
            for file in &report.files {
                match &file.error {
                    Some(error) => {
                        let hints = file.hints.iter().cloned().map(hint_text).collect();
                        printer.failure(&Failure { hints, ..Failure::invalid(error) });
                    }
                    None => printer.print(&checked_file_text(file, printer.console()))?,
                }
            }
            printer.print(&format!("{}\n", checked_functions_text(&report, printer.console())))?;
        }
    }
    Ok(if report.files.iter().all(CheckedFile::is_valid) { ExitStatus::Success } else { ExitStatus::Invalid })
}
