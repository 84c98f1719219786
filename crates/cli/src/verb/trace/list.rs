//! `karat trace list`: the traces of the store.

use std::fmt::Write as _;

use karat_core::exit::ExitStatus;
use karat_core::port::{Clock, TraceStore};
use karat_core::stored::{TraceFilter, TraceList};
use karat_report::trace_list_text;

use crate::args::{RunFormat, TraceListArgs};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::runtime_that_ends;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use crate::store::{open_store_to_read, with_store};
use crate::trace_filter::nothing_meant;
use karat_workflows::context::clock::SystemClock;
use karat_workflows::trace_id::shortest_ids;

/// More than these no person reads.
const FOR_PEOPLE: u64 = 20;

pub(crate) fn run(args: &TraceListArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    let filter = args.filter.filter(SystemClock.now())?;
    let settings = resolve_settings(&args.store.config_args(), &[], environment, printer)?;
    let runtime = runtime_that_ends()?;
    runtime.block_on(with_store(open_store_to_read(&settings), async |store| {
        let total = store.count_traces(&filter).await?;
        // Programs count on getting everything.
        let for_people = (args.format == RunFormat::Human).then_some(FOR_PEOPLE);
        let limit = args.limit.or(for_people).filter(|limit| *limit > 0);
        let shown = TraceFilter { limit, ..filter };
        let list = TraceList { total, traces: store.list_traces(&shown).await? };
        match args.format {
            RunFormat::Json => printer.print_json(&list)?,
            RunFormat::Jsonl => {
                let mut lines = String::new();
                for trace in &list.traces {
                    let line = serde_json::to_string(trace).map_err(|error| Failure::errored(error.to_string()))?;
                    let _ = writeln!(lines, "{line}");
                }
                printer.print(&lines)?;
            }
            RunFormat::Human => {
                let ids: Vec<&str> = list.traces.iter().map(|listed| listed.head.trace_id.as_str()).collect();
                let ids = shortest_ids(store, &ids).await?;
                if total > 0 {
                    printer.print(&trace_list_text(&list, &ids, printer.console()))?;
                }
                let count = list.traces.len() as u64;
                if count < total {
                    printer.note(&format!("the newest {count} of {total} traces; --limit N shows more"));
                }
            }
        }
        if total > 0 {
            return Ok(ExitStatus::Success);
        }
        let failure = if args.filter.is_narrow() {
            nothing_meant(&shown, store).await?
        } else {
            Failure::nothing_selected("there are no traces in the store")
                .hint("karat trace import FILE, or karat trace receive")
        };
        Err(failure)
    }))
}
