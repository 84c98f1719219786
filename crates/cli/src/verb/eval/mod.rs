//! `karat eval`: Python functions that judge traces.

mod agreement;
mod batch;
mod check;
mod compare;
mod doctor;
mod new;
mod progress;
mod rows;
mod run;
mod test;

use karat_core::exit::ExitStatus;

pub(crate) use self::check::EvalCheckReport;
pub(crate) use self::doctor::DoctorReport;
use crate::args::{EvalAction, EvalArgs};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;

pub(crate) fn run(args: EvalArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    match args.action {
        EvalAction::Run(args) => run::run(&args, environment, printer),
        EvalAction::New(args) => new::run(&args, environment, printer),
        EvalAction::Test(args) => test::run(&args, environment, printer),
        EvalAction::Agreement(args) => agreement::run(&args, environment, printer),
        EvalAction::Compare(args) => compare::run(&args, environment, printer),
        EvalAction::Batch(args) => batch::run(&args, environment, printer),
        EvalAction::Doctor(args) => doctor::run(&args, environment, printer),
        EvalAction::Check(args) => check::run(&args, environment, printer),
    }
}
