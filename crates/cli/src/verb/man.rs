//! `karat man`: writes manual pages, one for each verb.

use clap::CommandFactory as _;
use karat_core::exit::ExitStatus;

use crate::args::{Cli, ManArgs};
use crate::failure::Failure;
use crate::printer::Printer;

pub(crate) fn run(args: &ManArgs, printer: &Printer) -> Result<ExitStatus, Failure> {
    let folder = &args.dir;
    let written = std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(Cli::command(), folder));
    written
        .map_err(|error| Failure::errored(format!("cannot write the manual pages to {}: {error}", folder.display())))?;
    printer.note(&format!("wrote the manual pages to {}", folder.display()));
    Ok(ExitStatus::Success)
}
