//! `karat feedback list`: what people said.

use karat_core::exit::ExitStatus;
use karat_core::feedback::Feedback;
use karat_core::port::FeedbackStore;
use karat_report::feedback_list_text;
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::{FeedbackListArgs, FeedbackListFormat};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::runtime_that_ends;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use crate::store::{open_store_to_read, with_store};
use karat_workflows::trace_id::resolve_trace_id;

/// More than these no person reads.
const FOR_PEOPLE: u64 = 50;

/// What people said.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "karat feedback list")]
pub(crate) struct FeedbackList {
    /// The newest first. Without --history, each author's newest statement on each trace.
    feedback: Vec<Feedback>,
    /// There are more than --limit let through.
    more: bool,
}

pub(super) fn run(
    args: &FeedbackListArgs,
    environment: &Environment,
    printer: &Printer,
) -> Result<ExitStatus, Failure> {
    let settings = resolve_settings(&args.store.config_args(), &[], environment, printer)?;
    let is_for_people = args.format == FeedbackListFormat::Human;
    let limit = args.limit.or(is_for_people.then_some(FOR_PEOPLE));
    let runtime = runtime_that_ends()?;
    let reading = with_store(open_store_to_read(&settings), async |store| {
        let feedback = read(args, limit, store).await?;
        // Nothing that is asked for is not nothing at all.
        let is_empty = feedback.is_empty() && store.list_feedback(None, false, Some(1)).await?.is_empty();
        Ok((feedback, is_empty))
    });
    let (mut feedback, is_empty) = runtime.block_on(reading)?;
    let most = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let more = feedback.len() > most;
    feedback.truncate(most);
    match args.format {
        FeedbackListFormat::Human => {
            if is_empty {
                printer.note("nobody said anything yet: 'karat feedback add TRACE RATING', or 'karat review'");
            } else if feedback.is_empty() && args.history {
                printer.note("there is no such statement; without --trace and --author there are others");
            } else if feedback.is_empty() {
                printer.note("there is no such statement that counts; --history shows also what was taken back");
            }
            printer.print(&feedback_list_text(&feedback, printer.console(), printer.screen))?;
            if more {
                printer.note(&format!("there are more than these {most}: --limit N shows more of them"));
            }
        }
        FeedbackListFormat::Json => printer.print_json(&FeedbackList { feedback, more })?,
        FeedbackListFormat::Jsonl => printer.print(&json_lines(&feedback)?)?,
        FeedbackListFormat::Csv => printer.print(&table(&feedback)?)?,
    }
    Ok(ExitStatus::Success)
}

/// Returns what is asked for, the newest first, and one more than the limit where there are more.
async fn read(
    args: &FeedbackListArgs,
    limit: Option<u64>,
    store: &karat_store::Store,
) -> Result<Vec<Feedback>, Failure> {
    let author = args.author.as_deref();
    let Some(trace) = &args.trace else {
        let limit = limit.map(|limit| limit.saturating_add(1));
        return store.list_feedback(author, !args.history, limit).await.map_err(Failure::from);
    };
    let trace_id = resolve_trace_id(store, trace).await?;
    let mut feedback = store.feedback_of(&trace_id).await?;
    feedback.reverse();
    feedback.retain(|feedback| author.is_none_or(|author| feedback.author == author));
    if !args.history {
        let mut known = std::collections::BTreeSet::new();
        feedback.retain(|feedback| known.insert(feedback.author.clone()) && feedback.rating.is_some());
    }
    Ok(feedback)
}

fn json_lines(list: &[Feedback]) -> Result<String, Failure> {
    let mut text = String::new();
    for feedback in list {
        text.push_str(&serde_json::to_string(feedback).map_err(|error| Failure::errored(error.to_string()))?);
        text.push('\n');
    }
    Ok(text)
}

fn table(list: &[Feedback]) -> Result<String, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::errored(format!("cannot write the table: {error}"));
    let mut table = csv::Writer::from_writer(Vec::new());
    let header = ["trace_id", "rating", "note", "author", "created_at", "source"];
    table.write_record(header).map_err(|error| failed(&error))?;
    for feedback in list {
        let (note, time) = (feedback.note.as_deref().unwrap_or_default(), feedback.created_at.to_string());
        let row = [&feedback.trace_id, feedback.word(), note, &feedback.author, &time, &feedback.source];
        table.write_record(row).map_err(|error| failed(&error))?;
    }
    let bytes = table.into_inner().map_err(|error| failed(&error))?;
    String::from_utf8(bytes).map_err(|error| failed(&error))
}
