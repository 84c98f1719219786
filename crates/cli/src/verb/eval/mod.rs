//! `karat eval`: Python functions that judge traces.

mod check;

use karat_core::exit::ExitStatus;

pub(crate) use self::check::EvalCheckReport;
use crate::args::{EvalAction, EvalArgs};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;

pub(crate) fn run(args: EvalArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    match args.action {
        EvalAction::Check(args) => check::run(&args, environment, printer),
    }
}
