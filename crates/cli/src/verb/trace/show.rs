//! `karat trace show`: one trace, with what evals and people said of it.

use karat_core::exit::ExitStatus;
use karat_core::port::{EvalStore, FeedbackStore, TraceStore};
use karat_core::stored::{ShownTrace, TraceFilter};
use karat_report::{Length, trace_text};
use karat_store::Store;
use serde_json::value::RawValue;

use crate::args::{OutputFormat, TraceShowArgs};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::runtime_that_ends;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use crate::store::{open_store_to_read, with_store};
use karat_workflows::trace_id::resolve_trace_id;

pub(crate) fn run(args: &TraceShowArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    let settings = resolve_settings(&args.store.config_args(), &[], environment, printer)?;
    let runtime = runtime_that_ends()?;
    runtime.block_on(with_store(open_store_to_read(&settings), async |store| {
        let id = resolve_trace_id(store, &args.id).await?;
        if args.raw {
            let raw = store.raw(&id).await?.unwrap_or_default();
            printer.out_bytes(&raw).map_err(|error| Failure::errored(error.to_string()))?;
            return Ok(ExitStatus::Success);
        }
        let shown = read(store, &id).await?;
        match args.format {
            OutputFormat::Json => printer.print_json(&shown)?,
            OutputFormat::Human => {
                let length = if args.full { Length::Full } else { Length::Short };
                printer.print(&trace_text(&shown, length, printer.console()))?;
            }
        }
        Ok(ExitStatus::Success)
    }))
}

/// Reads all that is known of a trace.
async fn read(store: &Store, id: &str) -> Result<ShownTrace, Failure> {
    let gone = || Failure::errored(format!("the trace '{id}' is not in the store any more"));
    let filter = TraceFilter { ids: vec![id.to_owned()], ..TraceFilter::default() };
    let listed = store.list_traces(&filter).await?.into_iter().next().ok_or_else(gone)?;
    let stored = store.trace(id).await?.ok_or_else(gone)?;
    let document = RawValue::from_string(stored.document)
        .map_err(|error| Failure::errored(format!("the document of the trace '{id}' is no JSON: {error}")))?;
    Ok(ShownTrace {
        listed,
        document,
        executions: store.executions_of_trace(id).await?,
        feedback: store.feedback_of(id).await?,
    })
}
