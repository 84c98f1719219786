//! `karat contradictions`: verdicts that contradict ratings.

mod list;
mod resolve;

use karat_core::exit::ExitStatus;

use crate::args::{ContradictionsAction, ContradictionsArgs};
use crate::failure::Failure;
use crate::surface::Surface;

pub(crate) fn run(args: ContradictionsArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    match args.action {
        None => list::run(&args.list, surface),
        Some(ContradictionsAction::Resolve(args)) => resolve::run(&args, surface),
    }
}
