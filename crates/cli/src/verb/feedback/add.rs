//! `karat feedback add` and `retract`: one statement of one person.

use std::fmt::Write as _;

use karat_core::exit::ExitStatus;
use karat_evals::feedback::Feedback;
use karat_report::printable;
use karat_workflows::feedback::{FeedbackChange, RateRequest, rate};

use crate::args::{FeedbackAddArgs, FeedbackRetractArgs, OutputFormat, StoreArgs};
use crate::failure::Failure;
use crate::surface::Surface;

/// The source of ratings that are given on the command line.
const SOURCE: &str = "cli";

pub(super) fn run(args: &FeedbackAddArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let FeedbackAddArgs { trace, rating, note, author, format, store } = args;
    let author = author.name(surface.environment)?;
    let request = RateRequest {
        trace: trace.clone(),
        rating: Some((*rating).into()),
        note: note.clone(),
        author,
        source: SOURCE,
    };
    rate_and_print(request, *format, store, surface)
}

pub(super) fn retract(args: &FeedbackRetractArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let FeedbackRetractArgs { trace, note, author, format, store } = args;
    let author = author.name(surface.environment)?;
    let request = RateRequest { trace: trace.clone(), rating: None, note: note.clone(), author, source: SOURCE };
    rate_and_print(request, *format, store, surface)
}

fn rate_and_print(
    request: RateRequest,
    format: OutputFormat,
    store: &StoreArgs,
    surface: &Surface<'_>,
) -> Result<ExitStatus, Failure> {
    let context = surface.store_context(store)?;
    let change = surface.run(rate(request, &context))?;
    match format {
        OutputFormat::Json => surface.printer.print_json(&change)?,
        OutputFormat::Human => surface.printer.print(&text_of(&change))?,
    }
    Ok(ExitStatus::Success)
}

fn text_of(change: &FeedbackChange) -> String {
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
    let mut text = format!("{}: {said}\n", printable(&now.trace_id));
    if change.authors > 1
        && let Some(rating) = change.rating
    {
        let _ = writeln!(text, "{} people together: {rating}", change.authors);
    }
    text
}
