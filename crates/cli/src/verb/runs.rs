//! `karat runs`: merges the results of shards.

use karat_core::exit::ExitStatus;
use karat_workflows::merge_runs::{Request, merge_runs};

use super::run::{finish, parse_reports, report_result_files, reporters};
use crate::args::{RunsAction, RunsArgs, RunsMergeArgs};
use crate::failure::Failure;
use crate::surface::Surface;

pub(crate) fn run(args: &RunsArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    match &args.action {
        RunsAction::Merge(args) => merge(args, surface),
    }
}

fn merge(args: &RunsMergeArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&args.config, &[])?;
    let reports = parse_reports(&args.report, args.format)?;
    let request = Request { shards: args.shards.clone() };
    let outcome = merge_runs(&request, &context, |cases| reporters(args.format, reports, cases, surface))?;
    surface.printer.set_progress_bar(None);
    let status = finish(&outcome, surface.printer);
    report_result_files(&outcome, status, &context, surface.printer);
    Ok(status)
}
