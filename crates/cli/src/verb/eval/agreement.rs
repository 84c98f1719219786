//! `karat eval agreement`: how far stored verdicts agree with what people said.

use karat_core::exit::ExitStatus;
use karat_evals::agreement::AgreementReport;
use karat_report::agreement_text;
use karat_workflows::agreement::{MeasureRequest, measure};

use crate::args::{EvalAgreementArgs, OutputFormat};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::surface::Surface;

pub(super) fn run(args: &EvalAgreementArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&args.config_args(), &[])?;
    let request = MeasureRequest { eval: args.name.clone(), version: args.version };
    let report = surface.run(measure(request, &context))?;
    let printer = surface.printer;
    match args.format {
        OutputFormat::Json => printer.print_json(&report)?,
        OutputFormat::Human => {
            printer.print(&agreement_text(&report, printer.console()))?;
            advise(&report, printer);
        }
    }
    Ok(report.status())
}

/// Says what can be done next.
fn advise(report: &AgreementReport, printer: &Printer) {
    let contradicted = report.evals.iter().filter(|eval| eval.counts.contradictions() > 0);
    // Contradictions are listed for the newest version only.
    let names: Vec<&str> =
        contradicted.filter(|eval| eval.version == eval.newest_version).map(|eval| eval.eval_id.as_str()).collect();
    match names.as_slice() {
        [] => {}
        [only] => printer.note(&format!("'karat contradictions {only}' shows where people disagree")),
        _ => printer.note("'karat contradictions' shows where people disagree"),
    }
    if report.evals.iter().any(|eval| eval.counts.executions() == 0) {
        printer.note("'karat eval run NAME --stored' judges the traces in the store");
    } else if report.evals.iter().any(|eval| eval.compared == 0) {
        printer.note("'karat review' and 'karat feedback add' take down what people find");
    }
}
