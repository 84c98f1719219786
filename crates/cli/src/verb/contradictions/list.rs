//! `karat contradictions`: lists contradictions.

use karat_core::exit::ExitStatus;
use karat_evals::agreement::ContradictionList;
use karat_report::contradictions_text;
use karat_workflows::contradictions::{ListRequest, list};

use crate::args::{ContradictionsListArgs, OutputFormat};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::surface::Surface;

/// Contradictions in text output by default.
const DEFAULT_LIMIT: u64 = 20;

pub(super) fn run(args: &ContradictionsListArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.store_context(&args.store)?;
    let limit = match (args.limit, args.format) {
        (None, OutputFormat::Human) => Some(DEFAULT_LIMIT),
        (limit, _) => limit.filter(|limit| *limit > 0),
    };
    let request = ListRequest { eval: args.name.clone(), all: args.all, origin: args.source.into(), limit };
    let found = surface.run(list(request, &context))?;
    let printer = surface.printer;
    match args.format {
        OutputFormat::Json => printer.print_json(&found)?,
        OutputFormat::Human => {
            printer.print(&contradictions_text(&found, printer.console()))?;
            note_next_steps(&found, printer);
        }
    }
    Ok(ExitStatus::Success)
}

/// Prints the commands to show and resolve the first contradiction.
fn note_next_steps(list: &ContradictionList, printer: &Printer) {
    let Some(first) = list.contradictions.iter().find(|contradiction| contradiction.resolution.is_none()) else {
        return;
    };
    let trace = shell_words::quote(&first.trace_id);
    printer.note(&format!("to show the first:     karat trace show {trace}"));
    let name = &first.eval_id;
    printer.note(&format!("to resolve the first:  karat contradictions resolve {name} {trace} RESOLUTION"));
}
