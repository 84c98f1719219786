//! `karat trace`: what agents did, in the store.

mod import;
mod list;
mod progress;
mod receive;
mod show;

use karat_core::exit::ExitStatus;

use crate::args::{TraceAction, TraceArgs};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;

pub(crate) fn run(args: TraceArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    match args.action {
        TraceAction::Import(args) => import::run(&args, environment, printer),
        TraceAction::List(args) => list::run(&args, environment, printer),
        TraceAction::Receive(args) => receive::run(&args, environment, printer),
        TraceAction::Show(args) => show::run(&args, environment, printer),
    }
}
