//! A list of traces, one per line.

use karat_core::rating::Rating;
use karat_core::stored::TraceListItem;
use karat_evals::traces::TraceList;

use super::minute;
use crate::console::{ConsoleSettings, Verbosity};
use crate::terminal_text::{pad, printable, truncate, width};

/// Positions of columns.
const STARTED: usize = 1;
const STEPS: usize = 2;
const CALLS: usize = 3;

/// Minimum width of the message.
const MIN_MESSAGE_WIDTH: usize = 16;

/// Renders a list of traces. `ids` are the shortened ids, in list order.
pub fn trace_list_text(list: &TraceList, ids: &[String], settings: ConsoleSettings) -> String {
    let rows: Vec<Vec<String>> = list.traces.iter().zip(ids).map(|(listed, id)| row(listed, id)).collect();
    let titles = ["trace", "started", "steps", "calls", "errors", "rating"];
    let is_number = |column: usize| (2..=5).contains(&column);
    // Leave out empty columns.
    let mut shown: Vec<usize> =
        (0..titles.len()).filter(|&column| rows.iter().any(|row| !row[column].is_empty())).collect();
    let widths: Vec<usize> = (0..titles.len())
        .map(|column| rows.iter().map(|row| width(&row[column])).max().unwrap_or(0).max(titles[column].len()))
        .collect();
    let mut available = settings.columns.saturating_sub(shown.iter().map(|&column| widths[column] + 2).sum());
    // Long ids take the place of numbers: an id is never cut, and the message tells traces apart.
    for column in [STEPS, CALLS, STARTED] {
        if available < MIN_MESSAGE_WIDTH && shown.contains(&column) {
            shown.retain(|shown| *shown != column);
            available = settings.columns.saturating_sub(shown.iter().map(|&column| widths[column] + 2).sum());
        }
    }
    let render = |cells: &[&str], message: &str| {
        let mut line = String::new();
        for &column in &shown {
            let cell = cells[column];
            if is_number(column) {
                line.push_str(&" ".repeat(widths[column].saturating_sub(width(cell))));
                line.push_str(cell);
            } else {
                line.push_str(&pad(cell, widths[column]));
            }
            line.push_str("  ");
        }
        line.push_str(message);
        line.trim_end().to_owned()
    };
    let mut out = String::new();
    if settings.verbosity != Verbosity::Quiet {
        out.push_str(&settings.palette.dim(render(&titles, "message")));
        out.push('\n');
    }
    for (row, listed) in rows.iter().zip(&list.traces) {
        let cells: Vec<&str> = row.iter().map(String::as_str).collect();
        let head = &listed.head;
        let texts = [&head.input_preview, head.name.as_ref().unwrap_or(&head.output_preview)];
        let message = texts.into_iter().find(|text| !text.is_empty()).map(|text| printable(text)).unwrap_or_default();
        let line = render(&cells, &truncate(&message, available, settings.symbols.ellipsis));
        out.push_str(&line);
        out.push('\n');
    }
    out
}

fn row(listed: &TraceListItem, id: &str) -> Vec<String> {
    let head = &listed.head;
    let non_zero = |number: u64| if number == 0 { String::new() } else { number.to_string() };
    let rating = listed.rating.map(Rating::word).unwrap_or_default();
    vec![
        printable(id).into_owned(),
        head.started_at.map(minute).unwrap_or_default(),
        head.steps.to_string(),
        non_zero(head.tool_calls),
        non_zero(head.errors),
        rating.to_owned(),
    ]
}
