//! `karat eval agreement`: measures how often verdicts agree with ratings.

use karat_core::exit::ExitStatus;
use karat_report::{agreement_notes, agreement_text};
use karat_workflows::agreement::{MeasureRequest, measure};

use crate::args::{EvalAgreementArgs, OutputFormat};
use crate::failure::Failure;
use crate::surface::Surface;

pub(super) fn run(args: EvalAgreementArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    if args.name.is_none() && !args.all {
        return Err(Failure::invalid("missing the name of an eval")
            .hint("karat eval agreement NAME, or karat eval agreement --all"));
    }
    let context = surface.context(&[])?;
    let request = MeasureRequest { eval: args.name, version: args.version, origin: args.source };
    let report = surface.run(measure(request, &context))?;
    surface.printer.print_result(args.format, &report, agreement_text)?;
    if args.format == OutputFormat::Human {
        surface.printer.notes(agreement_notes(&report));
    }
    Ok(report.status())
}
