//! `karat schema`: prints the JSON Schemas of file and output formats.

use karat_core::exit::ExitStatus;
use karat_workflows::schema::schema_of;

use crate::args::SchemaArgs;
use crate::failure::Failure;
use crate::printer::Printer;

pub(crate) fn run(args: &SchemaArgs, printer: &Printer) -> Result<ExitStatus, Failure> {
    if let Some(schema) = schema_of(&args.format) {
        printer.print_json(&schema)?;
    }
    Ok(ExitStatus::Success)
}
