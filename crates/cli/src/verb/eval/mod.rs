//! `karat eval`: Python functions that judge traces.

mod doctor;

use karat_core::exit::ExitStatus;

pub(crate) use self::doctor::DoctorReport;
use crate::args::{EvalAction, EvalArgs};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;

pub(crate) fn run(args: EvalArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    match args.action {
        EvalAction::Doctor(args) => doctor::run(&args, environment, printer),
    }
}
