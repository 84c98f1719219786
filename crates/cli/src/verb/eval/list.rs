//! `karat eval list`: lists the evals in the store.

use karat_core::exit::ExitStatus;
use karat_report::eval_list_text;
use karat_workflows::Hint;
use karat_workflows::evals::list;

use crate::args::{EvalListArgs, OutputFormat};
use crate::failure::Failure;
use crate::hint::hint_text;
use crate::surface::Surface;

pub(super) fn run(args: &EvalListArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.store_context(&args.store)?;
    let list = surface.run(list(&context))?;
    let printer = surface.printer;
    match args.format {
        OutputFormat::Json => printer.print_json(&list)?,
        OutputFormat::Human => printer.print(&eval_list_text(&list, printer.console()))?,
    }
    if list.evals.is_empty() {
        let hint = hint_text(Hint::AddEval { file: None });
        printer.note(&format!("no evals in the store; {hint}"));
    }
    Ok(ExitStatus::Success)
}
