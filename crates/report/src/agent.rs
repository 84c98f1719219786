//! The output of `karat agent`.

use std::fmt::Write as _;

use karat_core::cost::dollars;
use karat_core::trace::Usage;
use karat_workflows::agent::detect::Detection;
use karat_workflows::agent::presets::{PresetConfig, PresetList, Reported};
use karat_workflows::agent::try_message::{AgentTrial, TrialAnswer, TrialExchange, TrialTurn};
use serde_json::Value;

use crate::call_text::call_text;
use crate::console::{ConsoleSettings, Verbosity};
use crate::duration::rounded_duration_text;
use crate::message::write_wrapped;
use crate::terminal_text::{pad, printable, truncate, wrap};

/// Width of labels, with the space after them.
const LABEL_WIDTH: usize = 14;
/// Maximum number of lines of a request or reply.
const MAX_BODY_LINES: usize = 16;
/// Maximum number of lines of an answer or a call.
const MAX_TEXT_LINES: usize = 10;
/// Space between two columns of the table of presets.
const GAP: usize = 2;

/// Renders the requests to an agent, its replies, and the answers that were read from them.
pub fn agent_trial_text(trial: &AgentTrial, settings: ConsoleSettings) -> String {
    let page = Page { settings };
    let mut out = String::new();
    for (index, turn) in trial.turns.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        if trial.turns.len() > 1 {
            let title = format!("turn {}: {}", index + 1, printable(&turn.message));
            let title = truncate(&title, settings.columns, settings.symbols.ellipsis);
            let _ = writeln!(out, "{}\n", settings.palette.bold(title));
        }
        page.write_turn(turn, trial, index + 1 == trial.turns.len(), &mut out);
    }
    out
}

struct Page {
    settings: ConsoleSettings,
}

impl Page {
    fn write_turn(&self, turn: &TrialTurn, trial: &AgentTrial, is_last: bool, out: &mut String) {
        let mut exchanges = turn.exchanges.iter().peekable();
        let mut polls = 0;
        while let Some(exchange) = exchanges.next() {
            if exchange.purpose == "poll" {
                polls += 1;
                // Only the last poll has the answer.
                let is_repeated = exchanges.peek().is_some_and(|next| next.purpose == "poll");
                if is_repeated && self.settings.verbosity != Verbosity::Full {
                    continue;
                }
            }
            self.write_exchange(exchange, trial, polls, out);
            out.push('\n');
        }
        if let Some(answer) = &turn.answer {
            self.write_answer(answer, out);
        }
        if let Some(id) = trial.conversation_id.as_ref().filter(|_| is_last) {
            self.write_field("conversation", id, out);
        }
        if let Some(answer) = &turn.answer {
            self.write_missing(answer, out);
        }
        // An exchange ends with an empty line.
        if turn.answer.is_some() && !turn.notes.is_empty() {
            out.push('\n');
        }
        if let Some(error) = &turn.error {
            let mark = self.settings.symbols.errored.trim_end();
            self.write_message(&self.settings.palette.error(mark), mark, error, out);
        }
        for note in &turn.notes {
            let mark = self.settings.symbols.warning.trim_end();
            self.write_message(&self.settings.palette.warning(mark), mark, note, out);
        }
    }

    fn write_exchange(&self, exchange: &TrialExchange, trial: &AgentTrial, polls: usize, out: &mut String) {
        let request = &exchange.request;
        let label = if exchange.purpose == "message" { "request" } else { &exchange.purpose };
        let mut target = match (&request.method, &request.url) {
            (Some(method), Some(url)) => format!("{method} {url}"),
            _ => trial.agent.clone(),
        };
        if polls > 1 && exchange.purpose == "poll" {
            let _ = write!(target, " ({polls} times)");
        }
        self.write_field(label, &target, out);
        for (name, value) in &request.headers {
            self.write_line(&format!("  {name}: {value}"), out);
        }
        if let Some(body) = &request.body {
            self.write_body(body, out);
        }
        let elapsed = rounded_duration_text(exchange.elapsed_ms);
        if let Some(reply) = &exchange.reply {
            let parts = [
                reply.status.map(|status| status.to_string()),
                reply.content_type.clone(),
                Some(elapsed.clone()),
                Some(byte_text(reply.bytes)),
            ];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            self.write_field("reply", &parts.join(", "), out);
            self.write_body(&reply.body, out);
            if let Some(stderr) = &reply.stderr {
                self.write_field("stderr", "", out);
                self.write_body(&Value::from(stderr.as_str()), out);
            }
        } else {
            self.write_field("reply", &format!("none, {elapsed}"), out);
        }
    }

    /// Writes pretty-printed JSON, or the lines of a string.
    fn write_body(&self, body: &Value, out: &mut String) {
        let text = match body {
            Value::String(text) => text.clone(),
            json => serde_json::to_string_pretty(json).unwrap_or_default(),
        };
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let is_full = self.settings.verbosity == Verbosity::Full;
        let line_count = if is_full || lines.len() <= MAX_BODY_LINES + 1 { lines.len() } else { MAX_BODY_LINES };
        for line in &lines[..line_count] {
            self.write_line(&format!("  {line}"), out);
        }
        if lines.len() > line_count {
            let (ellipsis, more) = (self.settings.symbols.ellipsis, lines.len() - line_count);
            let more = format!("{ellipsis} {more} more lines (pass -v to show all)");
            let _ = writeln!(out, "  {}", self.settings.palette.dim(more));
        }
    }

    /// Writes a line of a request or reply, cut to the width of the terminal.
    fn write_line(&self, line: &str, out: &mut String) {
        let line = printable(line);
        let (columns, ellipsis) = (self.settings.columns, self.settings.symbols.ellipsis);
        let line = if self.settings.verbosity == Verbosity::Full {
            line
        } else {
            truncate(&line, columns, ellipsis).into_owned().into()
        };
        let _ = writeln!(out, "{}", self.settings.palette.dim(line));
    }

    fn write_field(&self, label: &str, text: &str, out: &mut String) {
        self.write_fields(label, &[text.to_owned()], out);
    }

    /// Writes several values below each other, next to a label.
    fn write_fields(&self, label: &str, values: &[String], out: &mut String) {
        let columns = self.settings.columns.saturating_sub(LABEL_WIDTH).max(20);
        let is_full = self.settings.verbosity == Verbosity::Full;
        let mut label = label;
        for value in values {
            let lines: Vec<String> = value.lines().flat_map(|line| wrap(&printable(line), columns)).collect();
            let line_count = if is_full || lines.len() <= MAX_TEXT_LINES + 1 { lines.len() } else { MAX_TEXT_LINES };
            let more = (line_count < lines.len()).then(|| self.settings.symbols.ellipsis.to_owned());
            let empty = lines.is_empty().then(String::new);
            for line in lines.iter().take(line_count).chain(&more).chain(&empty) {
                let name = self.settings.palette.bold(pad(label, LABEL_WIDTH));
                let line = format!("{name}{line}");
                let _ = writeln!(out, "{}", line.trim_end());
                label = "";
            }
        }
    }

    fn write_answer(&self, answer: &TrialAnswer, out: &mut String) {
        let response = if answer.response.trim().is_empty() { "(empty)" } else { &answer.response };
        self.write_field(if answer.waits_for_approval { "question" } else { "answer" }, response, out);
        let calls: Vec<String> = match answer.tool_calls.as_slice() {
            [] if answer.calls_unreported => vec!["not reported".to_owned()],
            [] => vec!["none".to_owned()],
            calls => calls.iter().map(|call| call_text(call, true)).collect(),
        };
        self.write_fields("tool calls", &calls, out);
        if let Some(usage) = &answer.usage {
            self.write_field("usage", &usage_text(usage), out);
        }
        if let Some(model) = &answer.model {
            self.write_field("model", model, out);
        }
        if let Some(reason) = &answer.stop_reason {
            self.write_field("stop reason", reason, out);
        }
        let mut time = rounded_duration_text(answer.latency_ms);
        if let Some(first) = answer.first_token_ms {
            let _ = write!(time, ", first token after {}", rounded_duration_text(first));
        }
        self.write_field("latency", &time, out);
    }

    /// Lists the parts that the reply does not report.
    fn write_missing(&self, answer: &TrialAnswer, out: &mut String) {
        let parts = [
            ("usage", answer.usage.is_none()),
            ("model", answer.model.is_none()),
            ("stop reason", answer.stop_reason.is_none()),
        ];
        let missing: Vec<&str> = parts.iter().filter(|(_, is_missing)| *is_missing).map(|(name, _)| *name).collect();
        if !missing.is_empty() {
            self.write_field("not reported", &missing.join(", "), out);
        }
    }

    fn write_message(&self, painted: &str, mark: &str, text: &str, out: &mut String) {
        let mut lines = String::new();
        let label = format!("{mark} ");
        write_wrapped(&label, "  ", &printable(text), self.settings.columns, &mut lines);
        let lines = lines.strip_prefix(&label).unwrap_or(&lines);
        let _ = write!(out, "{painted} {lines}");
    }
}

fn byte_text(bytes: usize) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes.div_ceil(1024)),
        _ => format!("{} MiB", bytes.div_ceil(1_048_576)),
    }
}

fn usage_text(usage: &Usage) -> String {
    let counts = [
        (usage.input_tokens, "input tokens"),
        (usage.output_tokens, "output tokens"),
        (usage.cached_input_tokens, "cached input tokens"),
    ];
    let counts = counts.into_iter().filter_map(|(count, name)| Some(format!("{} {name}", count?)));
    counts.chain(usage.cost_usd.map(dollars)).collect::<Vec<_>>().join(", ")
}

/// Renders the presets as a table.
pub fn preset_list_text(list: &PresetList, settings: ConsoleSettings) -> String {
    let titles = ["kind", "product", "text", "calls", "failures", "turns", "approvals"].map(str::to_owned);
    let yes_or_no = |is_true: bool| if is_true { "yes" } else { "no" }.to_owned();
    let rows = list.presets.iter().map(|preset| {
        let (calls, failures) = (reported_text(preset.calls), reported_text(preset.failures));
        let (turns, approvals) = (yes_or_no(preset.turns), yes_or_no(preset.approvals));
        [preset.kind.clone(), preset.product.clone(), yes_or_no(true), calls, failures, turns, approvals]
    });
    let rows: Vec<[String; 7]> = std::iter::once(titles).chain(rows).collect();
    let widest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let mut out = String::new();
    for (index, row) in rows.iter().enumerate() {
        let cells = row.iter().enumerate().map(|(column, cell)| pad(cell, widest(column) + GAP));
        let line = cells.collect::<String>();
        let line = line.trim_end();
        let _ = writeln!(out, "{}", if index == 0 { settings.palette.dim(line) } else { line.to_owned() });
    }
    let notes = [
        "\"some\" depends on the agent; assertions that cannot be judged are skipped.",
        "To show a preset as configuration: karat agent show KIND",
    ];
    for note in notes {
        let _ = write!(out, "\n{note}");
    }
    out.push('\n');
    out
}

fn reported_text(reported: Reported) -> String {
    match reported {
        Reported::Always => "yes",
        Reported::Sometimes => "some",
        Reported::Never => "no",
    }
    .to_owned()
}

/// Renders the configuration of a preset, for `karat.json`.
pub fn preset_config_text(config: &PresetConfig) -> String {
    let config = serde_json::to_value(config).unwrap_or_default();
    karat_json::JsonText::of(&config).into_text()
}

/// Renders the line for `karat.json`.
pub fn detection_text(detection: &Detection) -> String {
    let endpoint = detection.agent_endpoint.as_deref().map(|endpoint| Value::from(endpoint).to_string());
    endpoint.map(|endpoint| format!("\"agentEndpoint\": {}\n", printable(&endpoint))).unwrap_or_default()
}
