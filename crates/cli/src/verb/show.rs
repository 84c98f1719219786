//! `karat show`: shows a run or a case in full.

use karat_core::exit::ExitStatus;
use karat_report::saved_run_text;
use karat_workflows::show_run::{Request, show_run};

use crate::args::ShowArgs;
use crate::failure::Failure;
use crate::surface::Surface;

pub(crate) fn run(args: &ShowArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&[])?;
    let request = Request { run: args.run.clone(), case: args.case.clone(), only_failed: args.failed };
    let run = show_run(&request, &context)?;
    let printer = surface.printer;
    printer.print_result(args.format, &run, saved_run_text)?;
    Ok(ExitStatus::Success)
}
