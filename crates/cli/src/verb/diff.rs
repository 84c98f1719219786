//! `karat diff`: compares two results.

use karat_core::exit::ExitStatus;
use karat_core::result::Outcome;
use karat_report::run_comparison_text;
use karat_workflows::compare_runs::{Request, RunComparison, compare_runs};

use crate::args::DiffArgs;
use crate::failure::Failure;
use crate::surface::Surface;

pub(crate) fn run(args: &DiffArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&[])?;
    let request = Request { before: args.before.clone(), now: args.now.clone() };
    let comparison = compare_runs(&request, &context)?;
    let printer = surface.printer;
    printer.print_result(args.format, &comparison, run_comparison_text)?;
    if comparison.compared == 0 {
        printer.warn("nothing to compare: no case has a verdict in both runs");
    }
    Ok(status(&comparison))
}

/// An error in the later run ranks above a regression, which it may hide. If no case was compared, there is no result.
fn status(comparison: &RunComparison) -> ExitStatus {
    let mut cases = comparison.suites.iter().flat_map(|suite| &suite.cases);
    if cases.any(|case| case.now == Some(Outcome::Errored)) || comparison.compared == 0 {
        ExitStatus::Errored
    } else if comparison.regressions > 0 {
        ExitStatus::Failed
    } else {
        ExitStatus::Success
    }
}
