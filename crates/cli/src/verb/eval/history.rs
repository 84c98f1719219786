//! `karat eval history`: lists the versions of an eval.

use karat_core::exit::ExitStatus;
use karat_report::eval_history_text;
use karat_workflows::evals::history;

use crate::args::{EvalHistoryArgs, OutputFormat};
use crate::failure::Failure;
use crate::surface::Surface;

pub(super) fn run(args: &EvalHistoryArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.store_context(&args.store)?;
    let history = surface.run(history(&args.name, &context))?;
    let printer = surface.printer;
    match args.format {
        OutputFormat::Json => printer.print_json(&history)?,
        OutputFormat::Human => printer.print(&eval_history_text(&history, printer.console()))?,
    }
    Ok(ExitStatus::Success)
}
