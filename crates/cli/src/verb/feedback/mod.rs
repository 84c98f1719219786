//! `karat feedback`: ratings of traces.

mod add;
mod import;
mod list;

use karat_core::exit::ExitStatus;

use crate::args::{FeedbackAction, FeedbackArgs};
use crate::failure::Failure;
use crate::surface::Surface;

pub(crate) fn run(args: &FeedbackArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    match &args.action {
        FeedbackAction::Add(args) => add::run(args, surface),
        FeedbackAction::Retract(args) => add::retract(args, surface),
        FeedbackAction::Import(args) => import::run(args, surface),
        FeedbackAction::List(args) => list::run(args, surface),
    }
}
