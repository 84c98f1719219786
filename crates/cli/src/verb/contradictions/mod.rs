//! `karat contradictions`: verdicts that people disagree with.

mod list;
mod resolve;

use karat_core::exit::ExitStatus;

use crate::args::{ContradictionsAction, ContradictionsArgs};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;

pub(crate) fn run(
    args: ContradictionsArgs,
    environment: &Environment,
    printer: &Printer,
) -> Result<ExitStatus, Failure> {
    match args.action {
        None => list::run(&args.list, environment, printer),
        Some(ContradictionsAction::Resolve(args)) => resolve::run(&args, environment, printer),
    }
}

/// Prints a report as programs read it.
fn print_json(report: &impl serde::Serialize, printer: &Printer) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(report).map_err(|error| Failure::errored(error.to_string()))?;
    printer.out(&format!("{text}\n")).map_err(|error| Failure::errored(error.to_string()))
}
