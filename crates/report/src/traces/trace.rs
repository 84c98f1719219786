//! One trace: what is known of it, its conversation, what evals and people said.

use karat_evals::shown::ShownTrace;
use karat_evals::version::StoredExecution;

use super::block::{Canvas, Length};
use super::{conversation, count, duration, minute};
use crate::console::ConsoleSettings;
use crate::matrix::dollars;
use crate::terminal_text::printable;

/// How many lines of a reason, an error or a note are shown.
const NOTE: usize = 6;

/// Draws a trace.
pub fn trace_text(shown: &ShownTrace, length: Length, settings: ConsoleSettings) -> String {
    let mut canvas = Canvas::new(settings, length);
    draw_head(shown, &mut canvas);
    canvas.line("");
    conversation::draw(&shown.document, &mut canvas);
    if !shown.executions.is_empty() {
        canvas.line("");
        canvas.rule("evals");
        let hash = &shown.listed.head.hash;
        shown.executions.iter().for_each(|execution| draw_execution(execution, hash, &mut canvas));
    }
    if !shown.feedback.is_empty() {
        canvas.line("");
        canvas.rule("feedback");
        for (index, feedback) in shown.feedback.iter().enumerate() {
            let author = printable(&feedback.author);
            // The oldest come first, and of an author's statements the last one counts.
            let is_earlier = shown.feedback[index + 1..].iter().any(|later| later.author == feedback.author);
            let earlier = if is_earlier { settings.palette.dim("  (earlier)") } else { String::new() };
            let line = format!("{}  {author}, {}{earlier}", feedback.word(), minute(feedback.created_at));
            canvas.line(&line);
            if let Some(note) = &feedback.note {
                canvas.text(note, "  ", 2, NOTE);
            }
        }
    }
    if canvas.shortened {
        canvas.line("");
        let note = settings.palette.dim("shortened: --full shows everything");
        canvas.line(&note);
    }
    canvas.out
}

fn draw_head(shown: &ShownTrace, canvas: &mut Canvas) {
    let (head, document) = (&shown.listed.head, &shown.document);
    let title = format!("trace {}", canvas.settings.palette.bold(printable(&head.trace_id)));
    canvas.line(&title);
    let mut fact = |name: &str, value: &str| canvas.text(value, &format!("  {name:<9}"), 11, 2);
    if let Some(name) = &head.name {
        fact("name", name);
    }
    fact("source", &format!("{}, imported {}", shown.listed.source, minute(shown.listed.imported_at)));
    let took = head.duration_ms.map(|took| {
        #[expect(clippy::cast_precision_loss, reason = "a duration for a person")]
        let took = took as f64;
        duration(took)
    });
    match (head.started_at, took) {
        (Some(began), Some(took)) => fact("began", &format!("{}, took {took}", minute(began))),
        (Some(began), None) => fact("began", &minute(began)),
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
    let tokens = |number: Option<u64>, way: &str| number.map(|number| format!("{} {way}", count(number, "token")));
    let cost = head.cost_usd.map(dollars);
    let used: Vec<String> =
        [tokens(head.input_tokens, "in"), tokens(head.output_tokens, "out"), cost].into_iter().flatten().collect();
    if !used.is_empty() {
        fact("used", &used.join(", "));
    }
    let has = [count(head.steps, "step"), count(head.tool_calls, "tool call"), count(head.errors, "error")];
    fact("has", &has.join(", "));
    if let Some(rating) = shown.listed.rating {
        fact("rating", rating.name());
    }
}

/// Draws what an eval said; `hash` is the trace's as it is now.
fn draw_execution(execution: &StoredExecution, hash: &str, canvas: &mut Canvas) {
    let (palette, symbols) = (canvas.settings.palette, canvas.settings.symbols);
    let (sign, word) = match execution.result {
        Some(true) => (palette.good(symbols.passed), "passed"),
        Some(false) => (palette.bad(symbols.failed), "failed"),
        None => (palette.broken(symbols.errored), "errored"),
    };
    let stale = if execution.trace_hash == hash { "" } else { ", of the trace as it was before" };
    let line = format!("{sign} {} version {}: {word}{stale}", printable(&execution.eval_id), execution.eval_version);
    canvas.line(&line);
    let said = execution.reason.as_deref().or(execution.error.as_deref()).filter(|said| !said.trim().is_empty());
    if let Some(said) = said {
        canvas.text(said, "    ", 4, NOTE);
    }
}
