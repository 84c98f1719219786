//! `karat eval`: Python functions that judge traces.

mod add_case;
mod adopt;
mod agreement;
mod batch;
mod check;
mod compare;
mod doctor;
mod new;
mod output;
mod refine;
mod run;
mod stored;
mod stored_evals;
mod test;

use karat_core::exit::ExitStatus;

use crate::args::{EvalAction, EvalArgs};
use crate::failure::Failure;
use crate::surface::Surface;

pub(crate) fn run(args: EvalArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    match args.action {
        EvalAction::Run(args) if args.stored => stored::run(&args, surface),
        EvalAction::Run(args) => run::run(&args, surface),
        EvalAction::Add(args) => stored_evals::add(args, surface),
        EvalAction::List(args) => stored_evals::list(&args, surface),
        EvalAction::Show(args) => stored_evals::show(args, surface),
        EvalAction::History(args) => stored_evals::history(&args, surface),
        EvalAction::New(args) => new::run(&args, surface),
        EvalAction::Adopt(args) => adopt::run(&args, surface),
        EvalAction::AddCase(args) => add_case::run(&args, surface),
        EvalAction::Test(args) => test::run(&args, surface),
        EvalAction::Agreement(args) => agreement::run(args, surface),
        EvalAction::Compare(args) => compare::run(&args, surface),
        EvalAction::Refine(args) => refine::run(&args, surface),
        EvalAction::Batch(args) => batch::run(&args, surface),
        EvalAction::Doctor(args) => doctor::run(&args, surface),
        EvalAction::Check(args) => check::run(&args, surface),
    }
}
