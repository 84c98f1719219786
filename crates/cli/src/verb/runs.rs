//! `karat runs`: lists runs and deletes old ones.

use karat_core::exit::ExitStatus;
use karat_report::{counted, run_list_text};
use karat_workflows::runs::{ListedRuns, PruneRequest, list, prune};

use crate::args::{OutputFormat, RunsAction, RunsArgs, RunsListArgs, RunsPruneArgs};
use crate::failure::Failure;
use crate::surface::Surface;

/// Default number of runs in text output.
const DEFAULT_LIMIT: usize = 20;

pub(crate) fn run(args: RunsArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    match args.action {
        None => run_list(&args.list, surface),
        Some(RunsAction::List(args)) => run_list(&args, surface),
        Some(RunsAction::Prune(args)) => run_prune(&args, surface),
    }
}

fn run_list(args: &RunsListArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&args.results.config_args(), &[])?;
    let is_human = args.format == OutputFormat::Human;
    let limit = args.limit.or(is_human.then_some(DEFAULT_LIMIT)).filter(|limit| *limit > 0);
    let ListedRuns { list, short_ids } = list(limit, &context)?;
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

fn run_prune(args: &RunsPruneArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&args.results.config_args(), &[])?;
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
