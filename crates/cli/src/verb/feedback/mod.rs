//! `karat feedback`: what people say of traces.

mod add;
mod import;
mod list;

use karat_core::exit::ExitStatus;

pub(crate) use self::add::FeedbackChange;
pub(crate) use self::import::FeedbackImportReport;
pub(crate) use self::list::FeedbackList;
use crate::args::{FeedbackAction, FeedbackArgs};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;

pub(crate) fn run(args: &FeedbackArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    match &args.action {
        FeedbackAction::Add(args) => add::run(args, environment, printer),
        FeedbackAction::Retract(args) => add::retract(args, environment, printer),
        FeedbackAction::Import(args) => import::run(args, environment, printer),
        FeedbackAction::List(args) => list::run(args, environment, printer),
    }
}
