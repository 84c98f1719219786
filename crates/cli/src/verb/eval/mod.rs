//! `karat eval`: Python functions that judge traces.

mod add;
mod add_case;
mod agreement;
mod batch;
mod check;
mod compare;
mod doctor;
mod history;
mod list;
mod new;
mod progress;
mod refine;
mod rows;
mod run;
mod show;
mod stored;
mod test;

use karat_core::exit::ExitStatus;

use crate::args::{EvalAction, EvalArgs};
use crate::failure::Failure;
use crate::surface::Surface;

pub(crate) fn run(args: EvalArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    match args.action {
        EvalAction::Run(args) if args.stored => stored::run(&args, surface),
        EvalAction::Run(args) => run::run(&args, surface),
        EvalAction::Add(args) => add::run(&args, surface),
        EvalAction::List(args) => list::run(&args, surface),
        EvalAction::Show(args) => show::run(&args, surface),
        EvalAction::History(args) => history::run(&args, surface),
        EvalAction::New(args) => new::run(&args, surface),
        EvalAction::AddCase(args) => add_case::run(&args, surface),
        EvalAction::Test(args) => test::run(&args, surface),
        EvalAction::Agreement(args) => agreement::run(&args, surface),
        EvalAction::Compare(args) => compare::run(&args, surface),
        EvalAction::Refine(args) => refine::run(&args, surface),
        EvalAction::Batch(args) => batch::run(&args, surface),
        EvalAction::Doctor(args) => doctor::run(&args, surface),
        EvalAction::Check(args) => check::run(&args, surface),
    }
}
