//! A list of traces, one per line.

use karat_core::rating::Rating;
use karat_core::stored::TraceListItem;
use karat_evals::traces::TraceList;

use super::format_minute;
use crate::console::ConsoleSettings;
use crate::table::Table;
use crate::terminal_text::{printable, truncate};

/// Positions of columns.
const STARTED: usize = 1;
const STEPS: usize = 2;
const CALLS: usize = 3;

/// Minimum width of the message.
const MIN_MESSAGE_WIDTH: usize = 16;

const TITLES: [&str; 6] = ["trace", "started", "steps", "calls", "errors", "rating"];

/// Renders a list of traces. `ids` are the shortened ids, in list order.
pub fn trace_list_text(list: &TraceList, ids: &[String], settings: ConsoleSettings) -> String {
    let rows: Vec<[String; 6]> = list.traces.iter().zip(ids).map(|(item, id)| row(item, id)).collect();
    let mut table = Table::new(TITLES, 2, &rows);
    // Drop columns of numbers for long ids: ids are never truncated, and the message distinguishes traces.
    for column in [STEPS, CALLS, STARTED] {
        if table.width() + MIN_MESSAGE_WIDTH > settings.columns {
            table.hide(column);
        }
    }
    let available = settings.columns.saturating_sub(table.width());
    let mut out = table.heading("message", settings);
    for (row, item) in rows.iter().zip(&list.traces) {
        let head = &item.head;
        let texts = [&head.input_preview, head.name.as_ref().unwrap_or(&head.output_preview)];
        let message = texts.into_iter().find(|text| !text.is_empty()).map(|text| printable(text)).unwrap_or_default();
        out.push_str(&table.line(row, &truncate(&message, available, settings.symbols.ellipsis)));
        out.push('\n');
    }
    out
}

fn row(item: &TraceListItem, id: &str) -> [String; 6] {
    let head = &item.head;
    let non_zero = |number: u64| if number == 0 { String::new() } else { number.to_string() };
    let rating = item.rating.map(Rating::label).unwrap_or_default();
    [
        printable(id).into_owned(),
        head.started_at.map(format_minute).unwrap_or_default(),
        head.steps.to_string(),
        non_zero(head.tool_calls),
        non_zero(head.errors),
        rating.to_owned(),
    ]
}
