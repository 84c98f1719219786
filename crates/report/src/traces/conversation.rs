//! The conversation of a trace: messages, tool calls and results.

use std::collections::BTreeSet;

use karat_core::document::{CallView, MessageView, StepView, TraceDocument};
use karat_json::text::text_form;
use serde_json::Value;

use super::block::{Canvas, Length};
use super::json_text::json_text;
use crate::console::ConsoleSettings;
use crate::duration::rounded_duration_text;
use crate::terminal_text::printable;

// Maximum numbers of lines of shortened texts.
const MAX_MESSAGE_LINES: usize = 12;
const MAX_SYSTEM_LINES: usize = 4;
const MAX_ARGUMENT_LINES: usize = 4;
const MAX_RESULT_LINES: usize = 6;
const MAX_ERROR_LINES: usize = 6;
const MAX_REASONING_LINES: usize = 4;

/// Renders the steps of a trace document.
pub(crate) fn conversation_text(document: &TraceDocument, length: Length, settings: ConsoleSettings) -> String {
    let mut canvas = Canvas::new(settings, length);
    draw(document, &mut canvas);
    canvas.out
}

/// Renders the steps onto the canvas.
pub(super) fn draw(document: &TraceDocument, canvas: &mut Canvas) {
    let steps = document.steps();
    let all = steps.len();
    let mut printed = PrintedResults::default();
    for (index, step) in steps.enumerate() {
        if index > 0 {
            canvas.line("");
        }
        canvas.rule(&title(step, index + 1, all));
        draw_input(step, &printed, canvas);
        draw_output(step, canvas);
        printed.add_step(step);
        if let Some(error) = step.error() {
            draw_error(&json_text(error), 0, canvas);
        }
    }
    if let Some(error) = document.error() {
        canvas.line("");
        draw_error(&json_text(error), 0, canvas);
    }
}

/// The calls that were printed with their results, so that tool messages do not repeat them.
#[derive(Default)]
struct PrintedResults {
    ids: BTreeSet<String>,
    results: BTreeSet<String>,
}

impl PrintedResults {
    fn add_step(&mut self, step: StepView<'_>) {
        for call in step.calls() {
            let (result, error) = (result_of(call), call.error());
            if result.is_none() && error.is_none() {
                continue;
            }
            self.ids.extend(call.id().map(str::to_owned));
            self.results.extend(result.map(|result| text_form(result).into_owned()));
            self.results.extend(error.map(|error| json_text(error).into_owned()));
        }
    }

    fn contains(&self, message: MessageView<'_>) -> bool {
        let is_shown = |content: &Value| self.results.contains(text_form(content).as_ref());
        message.tool_call_id().is_some_and(|id| self.ids.contains(id))
            || message
                .content()
                .is_some_and(|content| is_shown(content) || parse_json(content).is_some_and(|value| is_shown(&value)))
    }
}

/// Parses content that is a JSON object or list.
fn parse_json(content: &Value) -> Option<Value> {
    let value: Value = serde_json::from_str(content.as_str()?).ok()?;
    (value.is_object() || value.is_array()).then_some(value)
}

fn title(step: StepView<'_>, number: usize, all: usize) -> String {
    let mut title = format!("step {number} of {all}");
    for name in [step.agent(), step.model()].into_iter().flatten().filter(|text| !text.is_empty()) {
        title.push_str(", ");
        title.push_str(&printable(name));
    }
    if let Some(duration) = step_duration(step) {
        title.push_str(", ");
        title.push_str(&duration);
    }
    title
}

fn step_duration(step: StepView<'_>) -> Option<String> {
    let elapsed = step.ended_at()?.duration_since(step.started_at()?);
    (!elapsed.is_negative()).then(|| rounded_duration_text(elapsed.as_secs_f64() * 1000.0))
}

fn draw_input(step: StepView<'_>, printed: &PrintedResults, canvas: &mut Canvas) {
    let messages = step.messages();
    if messages.len() > 0 {
        for message in messages {
            let role = message.role().unwrap_or("message");
            if role != "tool" || !printed.contains(message) {
                draw_message(role, message, canvas);
            }
        }
    } else if let Some(text) = step.message() {
        write_message("user", text, MAX_MESSAGE_LINES, canvas);
    } else if let Some(value) = step.input_value() {
        write_message("input", &json_text(value), MAX_MESSAGE_LINES, canvas);
    }
}

fn draw_message(role: &str, message: MessageView<'_>, canvas: &mut Canvas) {
    let speaker = message.name().map_or_else(|| role.to_owned(), |name| format!("{role} {name}"));
    let content = message.content().map(json_text).unwrap_or_default();
    let (calls, parts) = (message.calls(), message.part_types());
    if message.is_error() {
        write_speaker(&speaker, canvas);
        draw_error(&content, 2, canvas);
    } else if !content.trim().is_empty() {
        write_message(&speaker, &content, if role == "system" { MAX_SYSTEM_LINES } else { MAX_MESSAGE_LINES }, canvas);
    } else if calls.len() > 0 || parts.len() > 0 {
        write_speaker(&speaker, canvas);
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
    let response = step.response().map(json_text).unwrap_or_default();
    let reasoning = step.reasoning().filter(|text| !text.trim().is_empty());
    let value = step.output_value().filter(|_| response.trim().is_empty());
    if reasoning.is_some() || !response.trim().is_empty() || value.is_some() || calls.len() > 0 {
        write_speaker("assistant", canvas);
    }
    let palette = canvas.settings.palette;
    if let Some(reasoning) = reasoning {
        let text = format!("(reasoning) {reasoning}");
        canvas.painted_text(&text, ("  ", 2), MAX_REASONING_LINES, &|line| palette.dim(line));
    }
    if !response.trim().is_empty() {
        canvas.text(&response, "  ", 2, MAX_MESSAGE_LINES);
    }
    if let Some(value) = value {
        canvas.text(&json_text(value), "  ", 2, MAX_MESSAGE_LINES);
    }
    for call in calls {
        draw_arguments(call, canvas);
        draw_result(call, canvas);
    }
}

fn draw_arguments(call: CallView<'_>, canvas: &mut Canvas) {
    let settings = canvas.settings;
    let name = call.name().unwrap_or("(unnamed tool)");
    let sign = if call.error().is_some() {
        settings.palette.failure(settings.symbols.arrow)
    } else {
        settings.symbols.arrow.to_owned()
    };
    let line = format!("{}({})", printable(name), call.arguments().map(json_text).unwrap_or_default());
    let before = format!("  {sign} ");
    canvas.text(&line, &before, 3 + settings.symbols.arrow.chars().count(), MAX_ARGUMENT_LINES);
}

fn draw_result(call: CallView<'_>, canvas: &mut Canvas) {
    let indent = 3 + canvas.settings.symbols.arrow.chars().count();
    let error = call.error().map(json_text);
    let result = result_of(call).map(json_text);
    let palette = canvas.settings.palette;
    match (&error, result) {
        (Some(error), Some(result)) if *error == result => {}
        (_, Some(result)) => {
            let result = if result.trim().is_empty() { "(empty text)".into() } else { result };
            canvas.text(&result, &format!("{}= ", " ".repeat(indent)), indent + 2, MAX_RESULT_LINES);
        }
        (None, None) => {
            let line = palette.dim("(no result)");
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
    let before = format!("{}{} ", " ".repeat(indent), settings.palette.failure(sign));
    let error = error.trim_start();
    // Many errors already start with "error".
    let has_prefix = error.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error"));
    let text = if has_prefix { error.to_owned() } else { format!("error: {error}") };
    let columns = indent + sign.chars().count() + 1;
    canvas.painted_text(&text, (&before, columns), MAX_ERROR_LINES, &|line| settings.palette.failure(line));
}

fn write_speaker(speaker: &str, canvas: &mut Canvas) {
    let line = canvas.settings.palette.bold(printable(speaker));
    canvas.line(&line);
}

fn write_message(speaker: &str, text: &str, max_lines: usize, canvas: &mut Canvas) {
    write_speaker(speaker, canvas);
    canvas.text(text, "  ", 2, max_lines);
}

/// Returns the result of a call, if known.
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
        TraceDocument::parse(document.to_string()).expect("a trace")
    }

    fn rendered(document: &Value) -> String {
        conversation_text(&read(document), Length::Short, settings(Symbols::UNICODE))
    }

    #[test]
    fn renders_each_message_once() {
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
        insta::assert_snapshot!(rendered(&document), @r#"
        ── step 1 of 2, m-1, 1.2 s ─────────────────────────────────
        system
          You help.
        user
          Where is W1?
          I am in a hurry.
          [image]
        assistant
          (reasoning) An order.
          → get_order({"id": "W1"})
            = {"status": "sent"}
          → get_order({"id": "W2"})
            ✗ Error: no
          → ping()
            (no result)

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
    fn renders_reformatted_results_once() {
        let document = json!({"steps": [
            {"input": "go", "output": "", "tool_calls": [{"name": "f", "result": [{"title": "once"}]}]},
            {"input": {"messages": [{"role": "tool", "content": "[\n  {\n    \"title\": \"once\"\n  }\n]"}]}, "output": "ok"}
        ]});
        let text = rendered(&document);
        assert_eq!(text.matches("once").count(), 1, "{text}");
    }

    #[test]
    fn renders_plain_documents() {
        let document = json!({"steps": [
            {"input": "hello", "output": "hi", "tool_calls": [{"name": "a"}]},
            {"input": {"q": 1}, "output": {"answer": [1, 2]}},
            {"input": [1], "output": 3},
            {"input": {"message": null}, "output": {"response": null}},
            {}
        ], "error": {"code": 3}});
        insta::assert_snapshot!(rendered(&document), @r#"
        ── step 1 of 5 ─────────────────────────────────────────────
        user
          hello
        assistant
          hi
          → a()
            (no result)

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
    fn escapes_and_shortens_hostile_traces() {
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
