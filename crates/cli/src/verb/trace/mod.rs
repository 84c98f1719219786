//! `karat trace`: stored traces.

mod import;
mod list;
mod receive;
mod show;

use karat_core::exit::ExitStatus;

use crate::args::{TraceAction, TraceArgs};
use crate::failure::Failure;
use crate::surface::Surface;

pub(crate) fn run(args: TraceArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    match args.action {
        TraceAction::Import(args) => import::run(&args, surface),
        TraceAction::List(args) => list::run(&args, surface),
        TraceAction::Receive(args) => receive::run(&args, surface),
        TraceAction::Show(args) => show::run(&args, surface),
    }
}
