//! `karat eval show`: shows the code of an eval and the verdicts of each version.

use karat_core::exit::ExitStatus;
use karat_report::eval_details_text;
use karat_workflows::evals::{ShowRequest, show};

use crate::args::{EvalShowArgs, OutputFormat};
use crate::failure::Failure;
use crate::surface::Surface;

pub(super) fn run(args: &EvalShowArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.store_context(&args.store)?;
    let request = ShowRequest { eval: args.name.clone(), version: args.version };
    let details = surface.run(show(request, &context))?;
    let printer = surface.printer;
    match args.format {
        OutputFormat::Json => printer.print_json(&details)?,
        OutputFormat::Human => printer.print(&eval_details_text(&details, printer.console()))?,
    }
    Ok(ExitStatus::Success)
}
