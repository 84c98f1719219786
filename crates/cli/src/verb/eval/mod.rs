//! `karat eval`: Python functions that judge traces.

mod add;
mod agreement;
mod batch;
mod check;
mod compare;
mod doctor;
mod history;
mod list;
mod listening;
mod new;
mod progress;
mod refine;
mod rows;
mod run;
mod show;
mod stored;
mod test;

use karat_core::exit::ExitStatus;

pub(crate) use self::check::EvalCheckReport;
pub(crate) use self::doctor::DoctorReport;
use crate::args::{EvalAction, EvalArgs};
use crate::failure::Failure;
use crate::surface::Surface;

pub(crate) fn run(args: EvalArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let (environment, printer) = (surface.environment, surface.printer);
    match args.action {
        EvalAction::Run(args) if args.stored => stored::run(&args, environment, printer),
        EvalAction::Run(args) => run::run(&args, environment, printer),
        EvalAction::Add(args) => add::run(&args, environment, printer),
        EvalAction::List(args) => list::run(&args, environment, printer),
        EvalAction::Show(args) => show::run(&args, environment, printer),
        EvalAction::History(args) => history::run(&args, environment, printer),
        EvalAction::New(args) => new::run(&args, environment, printer),
        EvalAction::Test(args) => test::run(&args, environment, printer),
        EvalAction::Agreement(args) => agreement::run(&args, surface),
        EvalAction::Compare(args) => compare::run(&args, surface),
        EvalAction::Refine(args) => refine::run(&args, environment, printer),
        EvalAction::Batch(args) => batch::run(&args, environment, printer),
        EvalAction::Doctor(args) => doctor::run(&args, environment, printer),
        EvalAction::Check(args) => check::run(&args, environment, printer),
    }
}
