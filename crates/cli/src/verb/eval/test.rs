//! `karat eval test`: runs the test cases of eval functions.

use karat_core::exit::ExitStatus;
use karat_evals::function_test::EvalTestReport;
use karat_report::eval_test_text;
use karat_workflows::functions::path_arguments;
use karat_workflows::test_evals::{Request, test_evals};

use crate::args::{EvalTestArgs, OutputFormat};
use crate::failure::Failure;
use crate::surface::Surface;

pub(super) fn run(args: &EvalTestArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let paths = path_arguments(&args.functions, &surface.environment.process.current_dir);
    let context = surface.context(args, &paths)?;
    let options = args.limits.options(context.settings.eval_limits)?;
    let request = Request { functions: args.functions.clone(), options };
    let report = surface.run(test_evals(&request, &context))?;
    let printer = surface.printer;
    match args.format {
        OutputFormat::Json => printer.print_json(&report)?,
        OutputFormat::Human => printer.print(&eval_test_text(&report, printer.console()))?,
    }
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
