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

/// Prints a value as one JSON document.
fn print_json(value: &impl serde::Serialize, printer: &Printer) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::errored(error.to_string()))?;
    printer.out(&format!("{text}\n")).map_err(|error| Failure::errored(error.to_string()))
}
