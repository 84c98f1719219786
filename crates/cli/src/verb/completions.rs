//! `karat completions`: prints shell completions.

use clap::CommandFactory;
use karat_core::exit::ExitStatus;

use crate::args::{Cli, CompletionsArgs};
use crate::failure::Failure;
use crate::printer::Printer;

pub(crate) fn run(args: &CompletionsArgs, printer: &Printer) -> Result<ExitStatus, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "karat", &mut script);
    printer.print(&String::from_utf8_lossy(&script))?;
    Ok(ExitStatus::Success)
}
