//! `karat eval new`: writes an eval function and test cases, without overwriting files.

use karat_core::exit::ExitStatus;
use karat_workflows::evals::{NewEval, new_eval};

use crate::args::EvalNewArgs;
use crate::failure::Failure;
use crate::surface::Surface;

pub(super) fn run(args: &EvalNewArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&[])?;
    let NewEval { name, function_file, wrote_function, cases_file } = new_eval(&args.name, &context)?;
    let first =
        if wrote_function { format!("wrote {function_file}") } else { format!("{function_file} already exists") };
    let text = format!(
        "{first}\nwrote {cases_file}\n\n\
         next: write the check in the function and example traces in the cases, then\n  \
         karat eval test {name}\n  karat eval run {name} --traces traces.jsonl\n\
         or, to judge stored traces,\n  \
         karat eval add {name}\n  karat eval run {name} --stored\n",
    );
    surface.printer.print(&text)?;
    Ok(ExitStatus::Success)
}
