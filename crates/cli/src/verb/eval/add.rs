//! `karat eval add`: adds eval functions to the store.

use karat_core::exit::ExitStatus;
use karat_report::evals_added_text;
use karat_workflows::evals::{AddRequest, add};
use karat_workflows::functions::path_arguments;

use crate::args::{EvalAddArgs, OutputFormat};
use crate::failure::Failure;
use crate::surface::Surface;

pub(super) fn run(args: &EvalAddArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let paths = path_arguments(&args.functions, &surface.environment.process.current_dir);
    let context = surface.context(&args.store, &paths)?;
    let request = AddRequest { functions: args.functions.clone(), note: args.note.clone() };
    let added = surface.run(add(request, &context))?;
    let printer = surface.printer;
    match args.format {
        OutputFormat::Json => printer.print_json(&added)?,
        OutputFormat::Human => printer.print(&evals_added_text(&added, printer.console()))?,
    }
    Ok(ExitStatus::Success)
}
