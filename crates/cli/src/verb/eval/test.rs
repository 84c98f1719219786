//! `karat eval test`: runs the test cases of eval functions.

use karat_core::exit::ExitStatus;
use karat_evals::function_test::EvalTestReport;
use karat_report::eval_test_text;
use karat_workflows::test_evals::{Request, test_evals};

use crate::args::EvalTestArgs;
use crate::failure::Failure;
use crate::surface::Surface;

pub(super) fn run(args: &EvalTestArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.function_context(&args.functions)?;
    let options = args.limits.options(context.settings.eval_limits)?;
    let request = Request { functions: args.functions.clone(), options };
    let report = surface.run(test_evals(&request, &context))?;
    let printer = surface.printer;
    printer.print_result(args.format, &report, eval_test_text)?;
    Ok(status(&report))
}

/// An error ranks above a mismatch: there is no verdict to compare.
fn status(report: &EvalTestReport) -> ExitStatus {
    let summary = &report.summary;
    match (summary.passed, summary.failed, summary.errored) {
        (_, _, 1..) => ExitStatus::Errored,
        (_, 1.., _) => ExitStatus::Failed,
        (0, _, _) => ExitStatus::NothingSelected,
        _ => ExitStatus::Success,
    }
}
