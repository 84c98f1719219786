//! `karat runs`: lists runs, merges the results of shards and deletes old results.

use karat_core::exit::ExitStatus;
use karat_report::{counted, run_list_text};
use karat_workflows::merge_runs::{Request, merge_runs};
use karat_workflows::runs::{PruneRequest, RunListing, list, prune};

use super::list_limit;
use super::run::{finish, parse_reports, report_result_files, reporters};
use crate::args::{OutputFormat, RunsAction, RunsArgs, RunsListArgs, RunsMergeArgs, RunsPruneArgs};
use crate::failure::Failure;
use crate::surface::Surface;

/// Default number of runs in text output.
const DEFAULT_LIMIT: usize = 20;

pub(crate) fn run(args: RunsArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    match args.action {
        None => run_list(&args.list, surface),
        Some(RunsAction::List(args)) => run_list(&args, surface),
        Some(RunsAction::Merge(args)) => run_merge(&args, surface),
        Some(RunsAction::Prune(args)) => run_prune(&args, surface),
    }
}

fn run_list(args: &RunsListArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&[])?;
    let is_human = args.format == OutputFormat::Human;
    let limit = list_limit(args.limit, is_human, DEFAULT_LIMIT);
    let RunListing { list, short_ids } = list(limit, &context)?;
    let printer = surface.printer;
    match args.format {
        OutputFormat::Json => printer.print_json(&list)?,
        OutputFormat::Human => {
            printer.print(&run_list_text(&list, &short_ids, printer.console()))?;
            let count = list.runs.len();
            if count < list.total {
                printer.note(&format!("showing the newest {count} of {} runs; pass --limit N for more", list.total));
            }
        }
    }
    Ok(ExitStatus::Success)
}

fn run_merge(args: &RunsMergeArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&[])?;
    let reports = parse_reports(&args.report, args.format)?;
    let request = Request { shards: args.shards.clone() };
    let outcome = merge_runs(&request, &context, |cases| reporters(args.format, reports, cases, surface))?;
    surface.printer.set_progress_bar(None);
    let status = finish(&outcome, &context, surface.printer);
    report_result_files(&outcome, status, &context, surface.printer);
    Ok(status)
}

fn run_prune(args: &RunsPruneArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&[])?;
    let pruned = prune(&PruneRequest { keep: args.keep, dry_run: args.dry_run }, &context)?;
    let printer = surface.printer;
    match args.format {
        OutputFormat::Json => printer.print_json(&pruned)?,
        OutputFormat::Human => {
            let deleted = if pruned.dry_run { "would delete" } else { "deleted" };
            let (runs, files) = (counted(pruned.deleted.len(), "run"), counted(pruned.files, "file"));
            printer.print(&format!("{deleted} {runs} ({files}); {} kept\n", pruned.kept))?;
        }
    }
    Ok(ExitStatus::Success)
}
