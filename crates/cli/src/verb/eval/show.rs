//! `karat eval show`: an eval's code, and what each version said.

use karat_core::exit::ExitStatus;
use karat_core::port::EvalStore;
use karat_core::stored::EvalShown;
use karat_report::eval_shown_text;

use crate::args::{EvalShowArgs, OutputFormat};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::runtime_that_ends;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use crate::store::{open_store_to_read, with_store};
use karat_workflows::stored_eval::{find_eval, version_among, versions_of};

pub(crate) fn run(args: &EvalShowArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    let settings = resolve_settings(&args.store.config_args(), &[], environment, printer)?;
    let reading = with_store(open_store_to_read(&settings), async |store| {
        let eval = find_eval(store, &args.name).await?;
        let versions = versions_of(store, &eval).await?;
        let version = version_among(&versions, args.version)?;
        let counts = store.version_counts(&eval.eval_id).await?;
        Ok(EvalShown::new(version, &versions, &counts))
    });
    let shown = runtime_that_ends()?.block_on(reading)?;
    match args.format {
        OutputFormat::Json => printer.print_json(&shown)?,
        OutputFormat::Human => printer.print(&eval_shown_text(&shown, printer.console()))?,
    }
    Ok(ExitStatus::Success)
}
