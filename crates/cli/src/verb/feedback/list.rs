//! `karat feedback list`: lists ratings.

use karat_core::csv::guard_formula;
use karat_core::exit::ExitStatus;
use karat_evals::feedback::Feedback;
use karat_report::{escape_invisible, escape_json, feedback_list_text};
use karat_workflows::feedback::{FeedbackList, ListRequest, list};

use crate::args::{FeedbackListArgs, FeedbackListFormat};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::surface::Surface;

/// Ratings in text output by default.
const DEFAULT_LIMIT: u64 = 50;

pub(super) fn run(args: &FeedbackListArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.store_context(&args.store)?;
    let is_human = args.format == FeedbackListFormat::Human;
    let request = ListRequest {
        trace: args.trace.clone(),
        author: args.author.clone(),
        history: args.history,
        short_ids: is_human,
        limit: args.limit.or(is_human.then_some(DEFAULT_LIMIT)).filter(|limit| *limit > 0),
    };
    let list = surface.run(list(request, &context))?;
    let printer = surface.printer;
    match args.format {
        FeedbackListFormat::Human => print_text(&list, args.history, printer)?,
        FeedbackListFormat::Json => printer.print_json(&list)?,
        FeedbackListFormat::Jsonl => printer.print(&json_lines(&list.feedback)?)?,
        FeedbackListFormat::Csv => printer.print(&csv_table(&list.feedback)?)?,
    }
    Ok(ExitStatus::Success)
}

fn print_text(list: &FeedbackList, history: bool, printer: &Printer) -> Result<(), Failure> {
    if list.is_store_empty {
        printer.note("no ratings yet; run 'karat feedback add TRACE RATING' or 'karat review'");
    } else if list.feedback.is_empty() && history {
        printer.note("no ratings match the filters");
    } else if list.feedback.is_empty() {
        printer.note("no current ratings match; pass --history to include replaced and retracted ones");
    }
    printer.print(&feedback_list_text(&list.feedback, &list.short_ids, printer.console(), printer.terminal_columns))?;
    if list.more {
        let ratings = match list.feedback.len() {
            1 => "rating".to_owned(),
            count => format!("{count} ratings"),
        };
        printer.note(&format!("showing only the newest {ratings}; pass --limit N for more"));
    }
    Ok(())
}

fn json_lines(list: &[Feedback]) -> Result<String, Failure> {
    let mut text = String::new();
    for feedback in list {
        let line = serde_json::to_string(feedback).map_err(|error| Failure::errored(error.to_string()))?;
        text.push_str(&escape_json(&line));
        text.push('\n');
    }
    Ok(text)
}

fn csv_table(list: &[Feedback]) -> Result<String, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::errored(format!("cannot write the table: {error}"));
    let mut table = csv::Writer::from_writer(Vec::new());
    let header = ["trace_id", "rating", "note", "author", "created_at", "source"];
    table.write_record(header).map_err(|error| failed(&error))?;
    for feedback in list {
        let (note, time) = (feedback.note.as_deref().unwrap_or_default(), feedback.created_at.to_string());
        let row: [&str; 6] =
            [&feedback.trace_id, feedback.rating_name(), note, &feedback.author, &time, &feedback.source];
        // Neither a spreadsheet nor a terminal must act on the text of a rating.
        let row = row.map(|text| guard_formula(&escape_invisible(text)).into_owned());
        table.write_record(row).map_err(|error| failed(&error))?;
    }
    let bytes = table.into_inner().map_err(|error| failed(&error))?;
    String::from_utf8(bytes).map_err(|error| failed(&error))
}
