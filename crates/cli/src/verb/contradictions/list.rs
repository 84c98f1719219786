//! `karat contradictions`: the list.

use karat_core::exit::ExitStatus;
use karat_evals::agreement::ContradictionList;
use karat_report::contradictions_text;
use karat_workflows::contradictions::{ListRequest, list};

use crate::args::{ContradictionsListArgs, OutputFormat};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::surface::Surface;

/// How many people are shown at once.
const DEFAULT_LIMIT: u64 = 20;

pub(super) fn run(args: &ContradictionsListArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.store_context(&args.store)?;
    let limit = match (args.limit, args.format) {
        (None, OutputFormat::Human) => Some(DEFAULT_LIMIT),
        (limit, _) => limit.filter(|limit| *limit > 0),
    };
    let request = ListRequest { eval: args.name.clone(), all: args.all, limit };
    let found = surface.run(list(request, &context))?;
    let printer = surface.printer;
    match args.format {
        OutputFormat::Json => printer.print_json(&found)?,
        OutputFormat::Human => {
            printer.print(&contradictions_text(&found, printer.console()))?;
            advise(&found, printer);
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
