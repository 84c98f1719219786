//! `karat schema`: prints the JSON Schemas of file and output formats.

use karat_core::exit::ExitStatus;
use karat_workflows::schema::FORMATS;

use crate::args::SchemaArgs;
use crate::failure::Failure;
use crate::printer::Printer;

pub(crate) fn run(args: &SchemaArgs, printer: &Printer) -> Result<ExitStatus, Failure> {
    for (_, _, schema) in FORMATS.iter().filter(|(name, ..)| *name == args.format) {
        printer.print_json(&schema())?;
    }
    Ok(ExitStatus::Success)
}
