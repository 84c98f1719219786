//! `karat feedback add` and `karat feedback retract`.

use std::fmt::Write as _;

use karat_core::exit::ExitStatus;
use karat_evals::feedback::Feedback;
use karat_report::printable;
use karat_workflows::feedback::{FeedbackChange, RateRequest, rate};

use crate::args::{FeedbackAddArgs, FeedbackRetractArgs, OutputFormat, StoreArgs};
use crate::failure::Failure;
use crate::surface::Surface;

/// Source of ratings from the command line.
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
        OutputFormat::Human => surface.printer.print(&change_text(&change))?,
    }
    Ok(ExitStatus::Success)
}

fn change_text(change: &FeedbackChange) -> String {
    let Some(now) = &change.now else { return String::new() };
    let (author, rating) = (printable(&now.author), now.rating_word());
    let rated = if now.rating.is_some() { format!("rated {rating}") } else { rating.to_owned() };
    let before = change.before.as_ref().filter(|before| before.rating.is_some()).map(Feedback::rating_word);
    let message = match (change.added, before) {
        (false, _) => format!("already {rated} by {author}"),
        (true, None) => format!("{rated} by {author}"),
        (true, Some(before)) if before == rating => format!("{rated} by {author}, with a new note"),
        (true, Some(before)) => format!("{rated} by {author} (was {before})"),
    };
    let mut text = format!("{}: {message}\n", printable(&now.trace_id));
    if change.authors > 1
        && let Some(rating) = change.rating
    {
        let _ = writeln!(text, "overall rating by {} authors: {rating}", change.authors);
    }
    text
}
