//! `karat eval agreement`: measures how often verdicts agree with ratings.

use karat_core::exit::ExitStatus;
use karat_evals::agreement::AgreementReport;
use karat_report::agreement_text;
use karat_workflows::agreement::{MeasureRequest, measure};

use crate::args::{EvalAgreementArgs, OutputFormat};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::surface::Surface;

pub(super) fn run(args: &EvalAgreementArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(args, &[])?;
    let request = MeasureRequest { eval: args.name.clone(), version: args.version, origin: args.source.into() };
    let report = surface.run(measure(request, &context))?;
    let printer = surface.printer;
    match args.format {
        OutputFormat::Json => printer.print_json(&report)?,
        OutputFormat::Human => {
            printer.print(&agreement_text(&report, printer.console()))?;
            note_next_steps(&report, printer);
        }
    }
    Ok(report.status())
}

fn note_next_steps(report: &AgreementReport, printer: &Printer) {
    let contradicted = report.evals.iter().filter(|eval| eval.counts.contradictions() > 0);
    // Contradictions are listed for the newest version only.
    let names: Vec<&str> =
        contradicted.filter(|eval| eval.version == eval.newest_version).map(|eval| eval.eval_id.as_str()).collect();
    match names.as_slice() {
        [] => {}
        [only] => printer.note(&format!("run 'karat contradictions {only}' to list contradictions")),
        _ => printer.note("run 'karat contradictions' to list contradictions"),
    }
    if report.evals.iter().any(|eval| eval.counts.executions() == 0) {
        printer.note("run 'karat eval run NAME --stored' to judge the stored traces");
    } else if report.evals.iter().any(|eval| eval.compared == 0) {
        printer.note("run 'karat review' or 'karat feedback add' to rate traces");
    }
}
