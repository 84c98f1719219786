//! A trace's conversation: who says what, which tools are called, and what comes of it.

use std::collections::BTreeSet;

use karat_core::document::{CallView, MessageView, StepView, TraceDocument};
use karat_json::text::text_form;
use serde_json::Value;

use super::block::{Canvas, Length};
use super::duration;
use super::spaced::text_of;
use crate::console::ConsoleSettings;
use crate::terminal_text::printable;

/// How many lines of each are shown where a text is shortened.
const SPOKEN: usize = 12;
const SYSTEM: usize = 4;
const ARGUMENTS: usize = 4;
const RESULT: usize = 6;
const ERROR: usize = 6;
const ASIDE: usize = 4;

/// Draws the steps of a trace's document.
pub fn conversation_text(document: &TraceDocument, length: Length, settings: ConsoleSettings) -> String {
    let mut canvas = Canvas::new(settings, length);
    draw(document, &mut canvas);
    canvas.out
}

/// Draws the steps, and says with the canvas whether something was left out.
pub(super) fn draw(document: &TraceDocument, canvas: &mut Canvas) {
    let steps = document.steps();
    let all = steps.len();
    let mut known = Known::default();
    for (index, step) in steps.enumerate() {
        if index > 0 {
            canvas.line("");
        }
        canvas.rule(&title(step, index + 1, all));
        draw_input(step, &known, canvas);
        draw_output(step, canvas);
        known.learn(step);
        if let Some(error) = step.error() {
            draw_error(&text_of(error), 0, canvas);
        }
    }
    if let Some(error) = document.error() {
        canvas.line("");
        draw_error(&text_of(error), 0, canvas);
    }
}

/// The calls that were drawn with their results, so that a tool's message does not say them again.
#[derive(Default)]
struct Known {
    ids: BTreeSet<String>,
    results: BTreeSet<String>,
}

impl Known {
    fn learn(&mut self, step: StepView<'_>) {
        for call in step.calls() {
            let (result, error) = (result_of(call), call.error());
            if result.is_none() && error.is_none() {
                continue;
            }
            self.ids.extend(call.id().map(str::to_owned));
            self.results.extend(result.map(|result| text_form(result).into_owned()));
            self.results.extend(error.map(|error| text_of(error).into_owned()));
        }
    }

    fn has(&self, message: MessageView<'_>) -> bool {
        let said = |content: &Value| self.results.contains(text_form(content).as_ref());
        message.tool_call_id().is_some_and(|id| self.ids.contains(id))
            || message
                .content()
                .is_some_and(|content| said(content) || laid_out(content).is_some_and(|value| said(&value)))
    }
}

/// Returns the object or list that a content is the JSON of, in whatever layout.
fn laid_out(content: &Value) -> Option<Value> {
    let value: Value = serde_json::from_str(content.as_str()?).ok()?;
    (value.is_object() || value.is_array()).then_some(value)
}

fn title(step: StepView<'_>, number: usize, all: usize) -> String {
    let mut title = format!("step {number} of {all}");
    for said in [step.agent(), step.model()].into_iter().flatten().filter(|text| !text.is_empty()) {
        title.push_str(", ");
        title.push_str(&printable(said));
    }
    if let Some(took) = took(step) {
        title.push_str(", ");
        title.push_str(&took);
    }
    title
}

fn took(step: StepView<'_>) -> Option<String> {
    let took = step.ended_at()?.duration_since(step.started_at()?);
    (!took.is_negative()).then(|| duration(took.as_secs_f64() * 1000.0))
}

fn draw_input(step: StepView<'_>, known: &Known, canvas: &mut Canvas) {
    let messages = step.messages();
    if messages.len() > 0 {
        for message in messages {
            let role = message.role().unwrap_or("message");
            if role != "tool" || !known.has(message) {
                draw_message(role, message, canvas);
            }
        }
    } else if let Some(text) = step.message() {
        speak("user", text, SPOKEN, canvas);
    } else if let Some(value) = step.input_value() {
        speak("input", &text_of(value), SPOKEN, canvas);
    }
}

fn draw_message(role: &str, message: MessageView<'_>, canvas: &mut Canvas) {
    let who = message.name().map_or_else(|| role.to_owned(), |name| format!("{role} {name}"));
    let content = message.content().map(text_of).unwrap_or_default();
    let (calls, parts) = (message.calls(), message.part_types());
    if message.is_error() {
        speaker(&who, canvas);
        draw_error(&content, 2, canvas);
    } else if !content.trim().is_empty() {
        speak(&who, &content, if role == "system" { SYSTEM } else { SPOKEN }, canvas);
    } else if calls.len() > 0 || parts.len() > 0 {
        speaker(&who, canvas);
    }
    for kind in parts {
        let line = format!("  [{}]", printable(kind.unwrap_or("part")));
        let line = canvas.settings.palette.dim(line);
        canvas.line(&line);
    }
    for call in calls {
        draw_arguments(call, canvas);
    }
}

fn draw_output(step: StepView<'_>, canvas: &mut Canvas) {
    let calls = step.calls();
    let response = step.response().map(text_of).unwrap_or_default();
    let reasoning = step.reasoning().filter(|text| !text.trim().is_empty());
    let value = step.output_value().filter(|_| response.trim().is_empty());
    if reasoning.is_some() || !response.trim().is_empty() || value.is_some() || calls.len() > 0 {
        speaker("assistant", canvas);
    }
    let palette = canvas.settings.palette;
    if let Some(reasoning) = reasoning {
        let text = format!("(thinks) {reasoning}");
        canvas.painted_text(&text, ("  ", 2), ASIDE, &|line| palette.dim(line));
    }
    if !response.trim().is_empty() {
        canvas.text(&response, "  ", 2, SPOKEN);
    }
    if let Some(value) = value {
        canvas.text(&text_of(value), "  ", 2, SPOKEN);
    }
    for call in calls {
        draw_arguments(call, canvas);
        draw_result(call, canvas);
    }
}

fn draw_arguments(call: CallView<'_>, canvas: &mut Canvas) {
    let settings = canvas.settings;
    let name = call.name().unwrap_or("(a tool without a name)");
    let sign = if call.error().is_some() {
        settings.palette.bad(settings.symbols.arrow)
    } else {
        settings.symbols.arrow.to_owned()
    };
    let line = format!("{}({})", printable(name), call.arguments().map(text_of).unwrap_or_default());
    let before = format!("  {sign} ");
    canvas.text(&line, &before, 3 + settings.symbols.arrow.chars().count(), ARGUMENTS);
}

fn draw_result(call: CallView<'_>, canvas: &mut Canvas) {
    let indent = 3 + canvas.settings.symbols.arrow.chars().count();
    let error = call.error().map(text_of);
    let result = result_of(call).map(text_of);
    let palette = canvas.settings.palette;
    match (&error, result) {
        (Some(error), Some(result)) if *error == result => {}
        (_, Some(result)) => {
            let result = if result.trim().is_empty() { "(an empty text)".into() } else { result };
            canvas.text(&result, &format!("{}= ", " ".repeat(indent)), indent + 2, RESULT);
        }
        (None, None) => {
            let line = palette.dim("(no result is known)");
            canvas.line(&format!("{}{line}", " ".repeat(indent)));
        }
        (Some(_), None) => {}
    }
    if let Some(error) = error {
        draw_error(&error, indent, canvas);
    }
}

fn draw_error(error: &str, indent: usize, canvas: &mut Canvas) {
    let settings = canvas.settings;
    let sign = if settings.symbols.ascii { "!!" } else { settings.symbols.failed };
    let before = format!("{}{} ", " ".repeat(indent), settings.palette.bad(sign));
    let error = error.trim_start();
    // Many begin so themselves.
    let says_so = error.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error"));
    let text = if says_so { error.to_owned() } else { format!("error: {error}") };
    let columns = indent + sign.chars().count() + 1;
    canvas.painted_text(&text, (&before, columns), ERROR, &|line| settings.palette.bad(line));
}

fn speaker(who: &str, canvas: &mut Canvas) {
    let line = canvas.settings.palette.bold(printable(who));
    canvas.line(&line);
}

fn speak(who: &str, text: &str, most_lines: usize, canvas: &mut Canvas) {
    speaker(who, canvas);
    canvas.text(text, "  ", 2, most_lines);
}

/// Returns what a tool answered, where that is known.
fn result_of(call: CallView<'_>) -> Option<&Value> {
    call.result().filter(|result| !result.is_null())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::console::Verbosity;
    use crate::style::{Palette, Symbols};

    fn settings(symbols: Symbols) -> ConsoleSettings {
        ConsoleSettings { columns: 60, symbols, palette: Palette { color: false }, verbosity: Verbosity::Normal }
    }

    fn read(document: &Value) -> TraceDocument {
        TraceDocument::read(document.to_string()).expect("a trace")
    }

    fn drawn(document: &Value) -> String {
        conversation_text(&read(document), Length::Short, settings(Symbols::UNICODE))
    }

    #[test]
    fn a_conversation_is_drawn_once() {
        let document = json!({"steps": [
            {
                "model": "m-1", "started_at": "2026-01-02T03:04:05Z", "ended_at": "2026-01-02T03:04:06.25Z",
                "input": {"message": "Where is W1?", "messages": [
                    {"role": "system", "content": "You help."},
                    {"role": "user", "content": "Where is W1?\nI am in a hurry.", "parts": [{"type": "image"}]}
                ]},
                "output": {"response": "", "reasoning": "An order."},
                "tool_calls": [
                    {"name": "get_order", "arguments": {"id": "W1"}, "result": {"status": "sent"}, "error": null, "id": "c1"},
                    {"name": "get_order", "arguments": {"id": "W2"}, "result": "Error: no", "error": "Error: no", "id": "c2"},
                    {"name": "ping", "arguments": null, "result": null, "error": null}
                ],
                "error": null
            },
            {
                "input": {"message": null, "messages": [
                    {"role": "tool", "content": "{\"status\":\"sent\"}", "tool_call_id": "c1"},
                    {"role": "tool", "content": "pong", "name": "ping"}
                ]},
                "output": {"response": "It was sent."}, "tool_calls": [], "error": "cut off"
            }
        ]});
        insta::assert_snapshot!(drawn(&document), @r#"
        ── step 1 of 2, m-1, 1.2 s ─────────────────────────────────
        system
          You help.
        user
          Where is W1?
          I am in a hurry.
          [image]
        assistant
          (thinks) An order.
          → get_order({"id": "W1"})
            = {"status": "sent"}
          → get_order({"id": "W2"})
            ✗ Error: no
          → ping()
            (no result is known)

        ── step 2 of 2 ─────────────────────────────────────────────
        tool ping
          pong
        assistant
          It was sent.
        ✗ error: cut off
        "#);
        let ascii = conversation_text(&read(&document), Length::Full, settings(Symbols::ASCII));
        assert!(ascii.is_ascii(), "{ascii}");
    }

    #[test]
    fn a_result_that_is_laid_out_otherwise_is_drawn_once() {
        let document = json!({"steps": [
            {"input": "go", "output": "", "tool_calls": [{"name": "f", "result": [{"title": "once"}]}]},
            {"input": {"messages": [{"role": "tool", "content": "[\n  {\n    \"title\": \"once\"\n  }\n]"}]}, "output": "ok"}
        ]});
        let text = drawn(&document);
        assert_eq!(text.matches("once").count(), 1, "{text}");
    }

    #[test]
    fn plain_documents_are_drawn_as_they_are() {
        let document = json!({"steps": [
            {"input": "hello", "output": "hi", "tool_calls": [{"name": "a"}]},
            {"input": {"q": 1}, "output": {"answer": [1, 2]}},
            {"input": [1], "output": 3},
            {"input": {"message": null}, "output": {"response": null}},
            {}
        ], "error": {"code": 3}});
        insta::assert_snapshot!(drawn(&document), @r#"
        ── step 1 of 5 ─────────────────────────────────────────────
        user
          hello
        assistant
          hi
          → a()
            (no result is known)

        ── step 2 of 5 ─────────────────────────────────────────────
        input
          {"q": 1}
        assistant
          {"answer": [1, 2]}

        ── step 3 of 5 ─────────────────────────────────────────────
        input
          [1]
        assistant
          3

        ── step 4 of 5 ─────────────────────────────────────────────

        ── step 5 of 5 ─────────────────────────────────────────────

        ✗ error: {"code": 3}
        "#);
    }

    #[test]
    fn nothing_in_a_trace_steers_the_terminal_or_floods_it() {
        let long = "word ".repeat(200_000);
        let document = json!({"steps": [{
            "model": "\u{1b}[2J", "agent": "a\nb",
            "input": {"messages": [{"role": "us\u{7}er", "name": "\u{202e}", "content": "\u{1b}]0;x\u{7}\r\nback\ttab"}]},
            "output": {"response": long},
            "tool_calls": [{"name": "\u{1b}c", "arguments": "x".repeat(1_000_000), "result": "\u{9b}31m", "error": "\u{8}"}],
        }]});
        let document = read(&document);
        for length in [Length::Short, Length::Full] {
            let text = conversation_text(&document, length, settings(Symbols::UNICODE));
            let hostile = text.chars().find(|character| character.is_control() && *character != '\n');
            assert_eq!(hostile, None);
            assert!(text.lines().all(|line| crate::terminal_text::width(line) <= 60));
            assert_eq!(text.lines().count() < 40, length == Length::Short);
        }
    }
}
