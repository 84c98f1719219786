//! `karat overlap`: overlaps between tools.

use karat_core::exit::ExitStatus;
use karat_report::{counted, overlap_edit_text, overlap_list_text, suggestions_text};
use karat_tools::overlap::{OverlapChange, shell_quote};
use karat_workflows::overlaps::{AddRequest, RemoveRequest, SuggestOutcome, add, list, remove, suggest};

use super::list_limit;
use crate::args::{
    OutputFormat, OverlapAction, OverlapAddArgs, OverlapArgs, OverlapListArgs, OverlapRemoveArgs, OverlapSuggestArgs,
};
use crate::failure::Failure;
use crate::surface::Surface;

/// Default number of suggestions in text output.
const DEFAULT_LIMIT: usize = 20;

pub(crate) fn run(args: OverlapArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    match args.action {
        None => run_list(&args.list, surface),
        Some(OverlapAction::List(args)) => run_list(&args, surface),
        Some(OverlapAction::Suggest(args)) => run_suggest(&args, surface),
        Some(OverlapAction::Add(args)) => run_add(args, surface),
        Some(OverlapAction::Remove(args)) => run_remove(args, surface),
    }
}

fn run_list(args: &OverlapListArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&[])?;
    let list = list(&context)?;
    let printer = surface.printer;
    printer.print_result(args.format, &list, overlap_list_text)?;
    if list.path.is_none() {
        let path = context.settings.display_path(&context.settings.overlap_map.path);
        printer.note(&format!("{path} does not exist; run 'karat overlap suggest' for suggestions"));
    }
    if list.issues > 0 {
        printer.note(&format!("{} in the map; run 'karat check' for details", counted(list.issues, "finding")));
    }
    Ok(ExitStatus::Success)
}

fn run_suggest(args: &OverlapSuggestArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    if !(args.at_least > 0.0 && args.at_least <= 1.0) {
        return Err(Failure::invalid("--at-least must be greater than 0 and at most 1"));
    }
    let context = surface.context(&[])?;
    let is_human = args.format == OutputFormat::Human;
    let limit = list_limit(args.limit, is_human, DEFAULT_LIMIT).unwrap_or(usize::MAX);
    let SuggestOutcome { report, has_gaps, is_broken } = surface.run(suggest(args.at_least, limit, &context))?;
    let printer = surface.printer;
    printer.print_result(args.format, &report, suggestions_text)?;
    if !report.suggestions.is_empty() && is_human {
        printer.note(
            "for each overlap that you declare, 'karat check' requires an ambiguous case that names both tools \
             (untested-overlap); 'karat forge TOOL --tier labeled' drafts it",
        );
    }
    if has_gaps {
        printer.warn("part of the tool registry cannot be read, so suggestions may be missing");
    }
    if let [first, rest @ ..] = report.without_description.as_slice() {
        let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        printer.note(&format!("no description of '{first}'{more}: compared by name only"));
    }
    // The missing tools may be the confused ones.
    Ok(if is_broken { ExitStatus::Errored } else { ExitStatus::Success })
}

fn run_add(args: OverlapAddArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&[])?;
    let OverlapAddArgs { tool, others, cluster, reason, convert, .. } = args;
    let request = AddRequest { tool, others, cluster, reason, convert };
    let edited = surface.run(add(request, &context))?;
    surface.printer.print(&overlap_edit_text(&edited, "already declared"))?;
    let added = edited.changes.iter().find_map(|change| match change {
        OverlapChange::OverlapAdded { tool, .. } => Some(tool),
        _ => None,
    });
    if let Some(tool) = added {
        surface.printer.note(&format!(
            "'karat check' now requires an ambiguous case that names both tools in 'toolsAcceptable' \
             (untested-overlap); to draft it: karat forge {} --tier labeled",
            shell_quote(tool)
        ));
    }
    Ok(ExitStatus::Success)
}

fn run_remove(args: OverlapRemoveArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&[])?;
    let OverlapRemoveArgs { tool, others, cluster, convert, .. } = args;
    let request = RemoveRequest { tool, others, cluster, convert };
    let edited = surface.run(remove(&request, &context))?;
    surface.printer.print(&overlap_edit_text(&edited, "no such overlap is declared"))?;
    Ok(ExitStatus::Success)
}
