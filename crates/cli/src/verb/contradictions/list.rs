//! `karat contradictions`: the list.

use karat_core::agreement::ContradictionList;
use karat_core::exit::ExitStatus;
use karat_core::port::ComparisonStore;
use karat_core::stored::ContradictionFilter;
use karat_report::contradictions_text;
use karat_store::Store;

use crate::args::{ContradictionsListArgs, OutputFormat};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::runtime_that_ends;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use crate::store::{open_store_to_read, with_store};
use crate::stored_eval::find_eval;

/// How many people are shown at once.
const USUAL_LIMIT: u64 = 20;

pub(super) fn run(
    args: &ContradictionsListArgs,
    environment: &Environment,
    printer: &Printer,
) -> Result<ExitStatus, Failure> {
    let settings = resolve_settings(&args.store.config_args(), &[], environment, printer)?;
    let list = with_store(open_store_to_read(&settings), async |store| read(args, store).await);
    let list = runtime_that_ends()?.block_on(list)?;
    match args.format {
        OutputFormat::Json => printer.print_json(&list)?,
        OutputFormat::Human => {
            let text = contradictions_text(&list, printer.console());
            printer.print(&text)?;
            advise(&list, printer);
        }
    }
    Ok(ExitStatus::Success)
}

/// Says how to look at the first one, and how to settle it.
fn advise(list: &ContradictionList, printer: &Printer) {
    let Some(first) = list.contradictions.iter().find(|contradiction| contradiction.resolution.is_none()) else {
        return;
    };
    let trace = shell_words::quote(&first.trace_id);
    printer.note(&format!("to look:    karat trace show {trace}"));
    let name = &first.eval_id;
    printer.note(&format!("to settle:  karat contradictions resolve {name} {trace} eval-wrong|label-wrong|dismissed"));
}

async fn read(args: &ContradictionsListArgs, store: &Store) -> Result<ContradictionList, Failure> {
    let eval_id = match &args.name {
        Some(name) => Some(find_eval(store, name).await?.eval_id),
        None => None,
    };
    let limit = match (args.limit, args.format) {
        (None, OutputFormat::Human) => Some(USUAL_LIMIT),
        (limit, _) => limit.filter(|limit| *limit > 0),
    };
    let open = ContradictionFilter { eval_id, trace_id: None, resolved: false, limit: None };
    let all = ContradictionFilter { resolved: true, ..open.clone() };
    let count_open = store.count_contradictions(&open).await?;
    let count_all = store.count_contradictions(&all).await?;
    let (filter, total, resolved) =
        if args.all { (all, count_all, 0) } else { (open, count_open, count_all.saturating_sub(count_open)) };
    let filter = ContradictionFilter { limit, ..filter };
    let contradictions = store.contradictions(&filter).await?;
    Ok(ContradictionList { contradictions, total, resolved })
}
