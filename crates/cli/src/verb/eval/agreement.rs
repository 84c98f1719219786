//! `karat eval agreement`: how far stored verdicts agree with what people said.

use karat_core::agreement::{AgreementReport, EvalAgreement, RaterAgreement, Thresholds, Trend, VersionAgreement};
use karat_core::exit::ExitStatus;
use karat_core::port::{ComparisonStore, EvalStore, FeedbackStore};
use karat_core::stored::EvalSummary;
use karat_report::agreement_text;
use karat_store::Store;

use crate::args::{EvalAgreementArgs, OutputFormat};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::runtime_that_ends;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use crate::store::{open_store_to_read, with_store};
use karat_workflows::settings::Settings;
use karat_workflows::stored_eval::{find_eval, version_among, versions_of};

pub(super) fn run(
    args: &EvalAgreementArgs,
    environment: &Environment,
    printer: &Printer,
) -> Result<ExitStatus, Failure> {
    let settings = resolve_settings(&args.config_args(), &[], environment, printer)?;
    let report = with_store(open_store_to_read(&settings), async |store| measure(args, store, &settings).await);
    let report = runtime_that_ends()?.block_on(report)?;
    match args.format {
        OutputFormat::Json => printer.print_json(&report)?,
        OutputFormat::Human => printer.print(&agreement_text(&report, printer.console()))?,
    }
    if args.format == OutputFormat::Human {
        advise(&report, printer);
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

async fn measure(args: &EvalAgreementArgs, store: &Store, settings: &Settings) -> Result<AgreementReport, Failure> {
    let evals = match &args.name {
        Some(name) => vec![find_eval(store, name).await?],
        None => store.evals().await?,
    };
    if evals.is_empty() {
        return Err(Failure::nothing_selected("there are no evals in the store")
            .hint("'karat eval add FILE' puts an eval function into the store"));
    }
    let mut measured = Vec::with_capacity(evals.len());
    for eval in evals {
        measured.extend(measure_eval(store, &eval, args.version, &settings.agreement).await?);
    }
    let patterns = store.rating_patterns().await?;
    Ok(AgreementReport::new(measured, RaterAgreement::of(&patterns), settings.agreement))
}

async fn measure_eval(
    store: &Store,
    eval: &EvalSummary,
    version: Option<u64>,
    thresholds: &Thresholds,
) -> Result<Option<EvalAgreement>, Failure> {
    let versions = versions_of(store, eval).await?;
    let shown = version_among(&versions, version)?.version;
    let mut lines = Vec::with_capacity(versions.len());
    for version in &versions {
        let counts = store.agreement(&eval.eval_id, version.version).await?;
        lines.push(VersionAgreement::new(version.version, version.created_at, counts));
    }
    let days = store.agreement_by_day(&eval.eval_id, shown).await?;
    Ok(EvalAgreement::new(&eval.eval_id, shown, lines, Trend::of(&days), thresholds))
}
