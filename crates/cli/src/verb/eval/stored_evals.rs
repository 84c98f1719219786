//! `karat eval add`, `list`, `show` and `history`: the evals in the store.

use karat_core::exit::ExitStatus;
use karat_report::{eval_details_text, eval_history_text, eval_list_text, evals_added_text};
use karat_workflows::Hint;
use karat_workflows::evals;

use crate::args::{EvalAddArgs, EvalHistoryArgs, EvalListArgs, EvalShowArgs};
use crate::failure::Failure;
use crate::hint::hint_text;
use crate::surface::Surface;

pub(super) fn add(args: EvalAddArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.function_context(&args.functions)?;
    let request = evals::AddRequest { functions: args.functions, note: args.note };
    let added = surface.run(evals::add(request, &context))?;
    surface.printer.print_result(args.format, &added, evals_added_text)?;
    Ok(ExitStatus::Success)
}

pub(super) fn list(args: &EvalListArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&[])?;
    let list = surface.run(evals::list(&context))?;
    surface.printer.print_result(args.format, &list, eval_list_text)?;
    if list.evals.is_empty() {
        let hint = hint_text(Hint::AddEval { file: None });
        surface.printer.note(&format!("no evals in the store; {hint}"));
    }
    Ok(ExitStatus::Success)
}

pub(super) fn show(args: EvalShowArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&[])?;
    let request = evals::ShowRequest { eval: args.name, version: args.version };
    let details = surface.run(evals::show(request, &context))?;
    surface.printer.print_result(args.format, &details, eval_details_text)?;
    Ok(ExitStatus::Success)
}

pub(super) fn history(args: &EvalHistoryArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&[])?;
    let history = surface.run(evals::history(&args.name, &context))?;
    surface.printer.print_result(args.format, &history, eval_history_text)?;
    Ok(ExitStatus::Success)
}
