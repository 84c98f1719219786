//! `karat eval history`: an eval's versions.

use karat_core::exit::ExitStatus;
use karat_core::port::EvalStore;
use karat_core::stored::EvalHistory;
use karat_report::eval_history_text;

use crate::args::{EvalHistoryArgs, OutputFormat};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::runtime_that_ends;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use crate::store::{open_store_to_read, with_store};
use karat_workflows::stored_eval::{find_eval, versions_of};

pub(crate) fn run(args: &EvalHistoryArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    let settings = resolve_settings(&args.store.config_args(), &[], environment, printer)?;
    let reading = with_store(open_store_to_read(&settings), async |store| {
        let eval = find_eval(store, &args.name).await?;
        let versions = versions_of(store, &eval).await?;
        let counts = store.version_counts(&eval.eval_id).await?;
        Ok(EvalHistory::new(&eval.eval_id, &versions, &counts))
    });
    let history = runtime_that_ends()?.block_on(reading)?;
    match args.format {
        OutputFormat::Json => printer.print_json(&history)?,
        OutputFormat::Human => printer.print(&eval_history_text(&history, printer.console()))?,
    }
    Ok(ExitStatus::Success)
}
