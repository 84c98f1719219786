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
