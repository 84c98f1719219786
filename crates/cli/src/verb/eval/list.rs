//! `karat eval list`: the evals in the store.

use karat_core::exit::ExitStatus;
use karat_core::port::EvalStore;
use karat_core::stored::EvalList;
use karat_report::eval_list_text;

use crate::args::{EvalListArgs, OutputFormat};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::runtime_that_ends;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use crate::store::{open_store_to_read, with_store};

pub(crate) fn run(args: &EvalListArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    let settings = resolve_settings(&args.store.config_args(), &[], environment, printer)?;
    let listing = with_store(open_store_to_read(&settings), async |store| store.evals().await.map_err(Failure::from));
    let list = EvalList { evals: runtime_that_ends()?.block_on(listing)? };
    match args.format {
        OutputFormat::Json => printer.print_json(&list)?,
        OutputFormat::Human => printer.print(&eval_list_text(&list, printer.console()))?,
    }
    if list.evals.is_empty() {
        printer.note("there are no evals in the store; 'karat eval add FILE' puts an eval function into the store");
    }
    Ok(ExitStatus::Success)
}
