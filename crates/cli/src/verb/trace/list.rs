//! `karat trace list`: lists stored traces.

use karat_core::exit::ExitStatus;
use karat_report::trace_list_text;
use karat_workflows::traces::{ListRequest, TraceListing, list};

use crate::args::{RunFormat, TraceListArgs};
use crate::failure::Failure;
use crate::surface::Surface;
use crate::verb::list_limit;

/// Default number of traces in text output.
const DEFAULT_LIMIT: u64 = 20;

pub(super) fn run(args: &TraceListArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&[])?;
    let is_human = args.format == RunFormat::Human;
    let request = ListRequest {
        filter: args.filter.filter(context.clock.now())?,
        limit: list_limit(args.limit, is_human, DEFAULT_LIMIT),
        short_ids: is_human,
    };
    let TraceListing { list, short_ids, empty_error } = surface.run(list(request, &context))?;
    let printer = surface.printer;
    match args.format {
        RunFormat::Json => printer.print_json(&list)?,
        RunFormat::Jsonl => {
            for trace in &list.traces {
                printer.print_json_line(trace)?;
            }
        }
        RunFormat::Human if list.total > 0 => {
            printer.print(&trace_list_text(&list, &short_ids, printer.console()))?;
            let count = list.traces.len() as u64;
            if count < list.total {
                printer.note(&format!("showing the newest {count} of {} traces; pass --limit N for more", list.total));
            }
        }
        RunFormat::Human => {}
    }
    match empty_error {
        Some(error) => Err(error.into()),
        None => Ok(ExitStatus::Success),
    }
}
