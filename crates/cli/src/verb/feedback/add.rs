//! `karat feedback add` and `retract`: one statement of one person.

use std::fmt::Write as _;

use karat_core::exit::ExitStatus;
use karat_core::feedback::{Feedback, Rating, consensus_of};
use karat_core::port::{Clock, FeedbackStore};
use karat_report::printable;
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::{AuthorArgs, FeedbackAddArgs, FeedbackRetractArgs, OutputFormat, StoreArgs};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::runtime_that_ends;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use crate::store::{open_store_to_read, with_store};
use karat_workflows::context::clock::SystemClock;
use karat_workflows::trace_id::resolve_trace_id;

/// What came of saying something.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "karat feedback add")]
pub(crate) struct FeedbackChange {
    /// False: the author had said the same already, and nothing was written.
    added: bool,
    /// What the author had said before.
    before: Option<Feedback>,
    /// What counts now.
    now: Option<Feedback>,
    /// What people say of the trace together.
    rating: Option<Rating>,
    /// How many people that is.
    authors: u64,
}

/// What somebody wants to say.
struct Wish<'w> {
    trace: &'w str,
    rating: Option<Rating>,
    note: Option<&'w str>,
    author: &'w AuthorArgs,
    format: OutputFormat,
    store: &'w StoreArgs,
}

pub(super) fn run(args: &FeedbackAddArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    let FeedbackAddArgs { trace, rating, note, author, format, store } = args;
    let note = note.as_deref();
    let wish = Wish { trace, rating: Some((*rating).into()), note, author, format: *format, store };
    say(&wish, environment, printer)
}

pub(super) fn retract(
    args: &FeedbackRetractArgs,
    environment: &Environment,
    printer: &Printer,
) -> Result<ExitStatus, Failure> {
    let FeedbackRetractArgs { trace, note, author, format, store } = args;
    let note = note.as_deref();
    say(&Wish { trace, rating: None, note, author, format: *format, store }, environment, printer)
}

fn say(wish: &Wish<'_>, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    let author = wish.author.name(environment)?;
    let settings = resolve_settings(&wish.store.config_args(), &[], environment, printer)?;
    let runtime = runtime_that_ends()?;
    let (trace_id, change) = runtime.block_on(with_store(open_store_to_read(&settings), async |store| {
        let trace_id = resolve_trace_id(store, wish.trace).await?;
        let change = change(wish, &trace_id, author, store).await?;
        Ok((trace_id, change))
    }))?;
    match wish.format {
        OutputFormat::Json => printer.print_json(&change)?,
        OutputFormat::Human => printer.print(&told(&trace_id, &change))?,
    }
    Ok(ExitStatus::Success)
}

/// Adds the statement, unless it says nothing new.
async fn change(
    wish: &Wish<'_>,
    trace_id: &str,
    author: String,
    store: &impl FeedbackStore,
) -> Result<FeedbackChange, Failure> {
    let mut statements = store.feedback_of(trace_id).await?;
    let before = statements.iter().rev().find(|feedback| feedback.author == author).cloned();
    if wish.rating.is_none() && before.as_ref().is_none_or(|before| before.rating.is_none()) {
        return Err(Failure::invalid(format!("{author} has said nothing of trace '{trace_id}'"))
            .hint("'karat feedback list' shows who said what; --author NAME says whose rating it is"));
    }
    let feedback = Feedback {
        trace_id: trace_id.to_owned(),
        author,
        rating: wish.rating,
        note: wish.note.filter(|note| !note.trim().is_empty()).map(str::to_owned),
        source: "cli".to_owned(),
        created_at: Feedback::time_after(before.as_ref(), SystemClock.now()),
    };
    let added = !feedback.repeats(before.as_ref());
    if added {
        store.add_feedback(std::slice::from_ref(&feedback)).await?;
        statements.push(feedback.clone());
    }
    let (rating, authors) = consensus_of(&statements);
    let now = if added { Some(feedback) } else { before.clone() };
    Ok(FeedbackChange { added, before, now, rating, authors })
}

fn told(trace_id: &str, change: &FeedbackChange) -> String {
    let Some(now) = &change.now else { return String::new() };
    let (author, word) = (printable(&now.author), now.word());
    let before = change.before.as_ref().filter(|before| before.rating.is_some()).map(Feedback::word);
    let said = match (change.added, before) {
        (false, _) => format!("{author} says {word} already; nothing changed"),
        (true, None) => format!("{author} says {word}"),
        (true, Some(before)) if now.rating.is_none() => format!("{author} takes {before} back; the history is kept"),
        (true, Some(before)) if before == word => format!("{author} says {word} as before, with another note"),
        (true, Some(before)) => format!("{author} said {before}, and now {word}; the history is kept"),
    };
    let mut text = format!("{}: {said}\n", printable(trace_id));
    if change.authors > 1
        && let Some(rating) = change.rating
    {
        let _ = writeln!(text, "{} people together: {rating}", change.authors);
    }
    text
}
