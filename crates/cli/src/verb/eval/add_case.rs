//! `karat eval add-case`: adds a stored trace to the test cases of an eval function.

use karat_core::exit::ExitStatus;
use karat_report::printable;
use karat_workflows::evals::{AddCaseRequest, add_case};

use crate::args::EvalAddCaseArgs;
use crate::failure::Failure;
use crate::surface::Surface;

pub(super) fn run(args: &EvalAddCaseArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.function_context(std::slice::from_ref(&args.function))?;
    let request = AddCaseRequest {
        function: args.function.clone(),
        trace: args.trace.clone(),
        expected: args.expected,
        reason: args.reason.clone(),
        name: args.name.clone(),
    };
    let added = surface.run(add_case(request, &context))?;
    let new_file = if added.new_file { " (new file)" } else { "" };
    let verdict = if added.expected { "pass" } else { "fail" };
    let (name, file) = (printable(&added.name), printable(&added.cases_file));
    surface.printer.print(&format!("added {name} to {file}{new_file}: expected verdict {verdict}\n"))?;
    surface.printer.note(&format!("to run it: karat eval test {}", shell_words::quote(&args.function)));
    Ok(ExitStatus::Success)
}
