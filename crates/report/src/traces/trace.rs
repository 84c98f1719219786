//! One trace: metadata, conversation, verdicts and feedback.

use karat_core::cost::dollars;
use karat_evals::traces::TraceDetails;
use karat_evals::version::StoredExecution;

use super::block::{Canvas, Length};
use super::{conversation, format_minute};
use crate::console::ConsoleSettings;
use crate::duration::duration_text;
use crate::terminal_text::printable;
use crate::tools::counted;

/// Maximum number of lines of a reason, an error or a note.
const MAX_NOTE_LINES: usize = 6;

/// Renders a trace.
pub fn trace_text(details: &TraceDetails, length: Length, settings: ConsoleSettings) -> String {
    let mut canvas = Canvas::new(settings, length);
    draw_head(details, &mut canvas);
    canvas.line("");
    conversation::draw(&details.document, &mut canvas);
    if !details.executions.is_empty() {
        canvas.line("");
        canvas.rule("evals");
        let hash = &details.item.head.hash;
        details.executions.iter().for_each(|execution| draw_execution(execution, hash, &mut canvas));
    }
    if !details.feedback.is_empty() {
        canvas.line("");
        canvas.rule("feedback");
        for (index, feedback) in details.feedback.iter().enumerate() {
            let author = printable(&feedback.author);
            // The oldest come first, and an author's last rating counts.
            let is_earlier = details.feedback[index + 1..].iter().any(|later| later.author == feedback.author);
            let earlier = if is_earlier { settings.palette.dim("  (earlier)") } else { String::new() };
            let line =
                format!("{}  {author}, {}{earlier}", feedback.rating_label(), format_minute(feedback.created_at));
            canvas.line(&line);
            if let Some(note) = &feedback.note {
                canvas.text(note, "  ", 2, MAX_NOTE_LINES);
            }
        }
    }
    if canvas.is_shortened {
        canvas.line("");
        let note = settings.palette.dim("shortened; pass --full to show everything");
        canvas.line(&note);
    }
    canvas.out
}

fn draw_head(details: &TraceDetails, canvas: &mut Canvas) {
    let (head, document) = (&details.item.head, &details.document);
    let title = format!("trace {}", canvas.settings.palette.bold(printable(&head.trace_id)));
    canvas.line(&title);
    let mut fact = |name: &str, value: &str| canvas.text(value, &format!("  {name:<9}"), 11, 2);
    if let Some(name) = &head.name {
        fact("name", name);
    }
    fact("source", &format!("{}, imported {}", details.item.source, format_minute(details.item.imported_at)));
    let duration = head.duration_ms.map(duration_text);
    match (head.started_at, duration) {
        (Some(started), Some(duration)) => fact("started", &format!("{}, took {duration}", format_minute(started))),
        (Some(started), None) => fact("started", &format_minute(started)),
        (None, _) => {}
    }
    if let Some(model) = &head.model {
        fact("model", model);
    }
    if let Some(session) = &head.session_id {
        fact("session", session);
    }
    if let Some(user) = document.user_id() {
        fact("user", user);
    }
    let tags = document.tags();
    if !tags.is_empty() {
        fact("tags", &tags.join(", "));
    }
    let tokens = |number: Option<u64>, way: &str| number.map(|number| format!("{} {way}", counted(number, "token")));
    let cost = head.cost_usd.map(dollars);
    let usage: Vec<String> =
        [tokens(head.input_tokens, "in"), tokens(head.output_tokens, "out"), cost].into_iter().flatten().collect();
    if !usage.is_empty() {
        fact("usage", &usage.join(", "));
    }
    let content = [counted(head.steps, "step"), counted(head.tool_calls, "tool call"), counted(head.errors, "error")];
    fact("content", &content.join(", "));
    if let Some(rating) = details.item.rating {
        fact("rating", rating.label());
    }
}

/// Renders the verdict of an eval; `hash` is the current hash of the trace.
fn draw_execution(execution: &StoredExecution, hash: &str, canvas: &mut Canvas) {
    let (palette, symbols) = (canvas.settings.palette, canvas.settings.symbols);
    let (sign, word) = match execution.result {
        Some(true) => (palette.success(symbols.passed), "passed"),
        Some(false) => (palette.failure(symbols.failed), "failed"),
        None if !execution.applicable => (palette.dim(symbols.dash), "not applicable"),
        None => (palette.error(symbols.errored), "errored"),
    };
    let score = execution.score.map(|score| format!(", score {score}")).unwrap_or_default();
    let stale = if execution.trace_hash == hash { "" } else { ", for an earlier version of the trace" };
    let line =
        format!("{sign} {} version {}: {word}{score}{stale}", printable(&execution.eval_id), execution.eval_version);
    canvas.line(&line);
    let text = execution.reason.as_deref().or(execution.error.as_deref()).filter(|text| !text.trim().is_empty());
    if let Some(text) = text {
        canvas.text(text, "    ", 4, MAX_NOTE_LINES);
    }
}
