//! A run or a case in full: message, answer, tool calls and the verdict of each assertion.

use karat_core::assertion::{AssertionOutcome, NearMiss};
use karat_core::result::{
    AssertionReport, Outcome, SavedCase, SavedRun, SavedSuite, SavedTrial, SkippedCase, TurnDetails, TurnOutcome,
};
use karat_core::security::SecurityDetails;
use karat_core::trace::{MAX_TURNS_REACHED, ToolCall};
use serde_json::Value;

use super::format_start;
use crate::call_alignment::AlignmentRenderer;
use crate::console::ConsoleSettings;
use crate::console::case_details::MAX_TURNS_TEXT;
use crate::duration::duration_text;
use crate::security::{injection_text, outcome_name};
use crate::simulated_user::simulation_text;
use crate::terminal_text::{printable, width};
use crate::tools::counted;
use crate::traces::{Canvas, Length, json_text};
use crate::transcript::outcome_text;

/// Renders a run, or the selected cases of it.
pub fn saved_run_text(run: &SavedRun, settings: ConsoleSettings) -> String {
    let mut page = Page { canvas: Canvas::new(settings, Length::Full) };
    let title = format!("run {}", settings.palette.bold(printable(&run.run_id)));
    let when = if run.timestamp.is_empty() { String::new() } else { format!(", {}", format_start(&run.timestamp)) };
    page.canvas.line(&format!("{title}{when}"));
    if let Some(incomplete) = &run.incomplete {
        let symbol = settings.symbols.warning;
        let before = format!("{} ", settings.palette.warning(symbol));
        page.canvas.text(&format!("incomplete: {incomplete}"), &before, 1 + width(symbol), NO_LINE_LIMIT);
    }
    page.totals(run);
    for suite in &run.suites {
        page.suite(suite);
    }
    for file in &run.rubric_files {
        page.canvas.line("");
        page.canvas.line(&format!("not shown: the rubric scores in {}", printable(file)));
    }
    page.canvas.out
}

/// No limit on lines: everything is printed in full.
const NO_LINE_LIMIT: usize = usize::MAX;

struct Page {
    canvas: Canvas,
}

impl Page {
    /// Counts the outcomes, if more than one case is shown.
    fn totals(&mut self, run: &SavedRun) {
        let palette = self.canvas.settings.palette;
        let cases: Vec<Outcome> = run.suites.iter().flat_map(|suite| &suite.cases).map(|case| case.outcome).collect();
        let count = |outcome| cases.iter().filter(|other| **other == outcome).count();
        let sum = |count: fn(&SavedSuite) -> usize| run.suites.iter().map(count).sum::<usize>();
        let (skipped, not_run) = (sum(|suite| suite.skipped.len()), sum(|suite| suite.not_run.len()));
        if cases.len() + skipped + not_run < 2 {
            return;
        }
        let (passed, failed, errored) = (count(Outcome::Passed), count(Outcome::Failed), count(Outcome::Errored));
        let mut parts = vec![palette.success(format_args!("{passed} passed"))];
        if failed > 0 {
            parts.push(palette.failure(format_args!("{failed} failed")));
        }
        if errored > 0 {
            parts.push(palette.error(format_args!("{errored} errored")));
        }
        let others = [(skipped, "skipped"), (not_run, "not run")];
        parts.extend(others.into_iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")));
        self.canvas.line(&format!("{}: {}", counted(cases.len(), "case"), parts.join(", ")));
    }

    fn suite(&mut self, suite: &SavedSuite) {
        let settings = self.canvas.settings;
        self.canvas.line("");
        let tool = printable(&suite.tool_name);
        self.canvas.rule(&format!("{tool} {} {}", settings.symbols.dash, suite.tier.evals()));
        if let Some(agent) = &suite.agent {
            self.canvas.text(agent, "agent  ", 7, NO_LINE_LIMIT);
        }
        if !suite.eval_file.is_empty() {
            let changed = if suite.eval_file_changed { " (changed since this run)" } else { "" };
            self.canvas.text(&format!("{}{changed}", suite.eval_file), "file   ", 7, NO_LINE_LIMIT);
        }
        for case in &suite.cases {
            self.case(case);
        }
        for case in &suite.skipped {
            self.skipped(case);
        }
        if !suite.not_run.is_empty() {
            self.canvas.line("");
            self.title("not run");
            self.canvas.text(&suite.not_run.join(", "), "    ", 4, NO_LINE_LIMIT);
        }
    }

    fn skipped(&mut self, case: &SkippedCase) {
        let palette = self.canvas.settings.palette;
        self.canvas.line("");
        let mark = self.mark(None);
        self.canvas.line(&format!("{mark} {}", palette.bold(printable(&case.id))));
        if !case.description.is_empty() {
            self.canvas.text(&case.description, "  ", 2, NO_LINE_LIMIT);
        }
        self.title("skipped");
        self.canvas.text(&case.reason, "    ", 4, NO_LINE_LIMIT);
    }

    fn case(&mut self, case: &SavedCase) {
        let palette = self.canvas.settings.palette;
        self.canvas.line("");
        let mark = self.mark(Some(case.outcome));
        let regression = if case.regression { palette.alert("  regression") } else { String::new() };
        self.canvas.line(&format!("{mark} {}{regression}", palette.bold(printable(&case.id))));
        if !case.description.is_empty() {
            self.canvas.text(&case.description, "  ", 2, NO_LINE_LIMIT);
        }
        // The messages of a conversation are shown with its turns.
        if case.trials.iter().all(|trial| trial.turns.is_empty()) {
            self.title("message");
            match &case.message {
                Some(message) => self.canvas.text(message, "    ", 4, NO_LINE_LIMIT),
                None => self.note("unknown: not in the result, and the eval file has changed"),
            }
        }
        let count = case.trials.len();
        for (index, trial) in case.trials.iter().enumerate() {
            if count > 1 {
                let mark = self.mark(trial.outcome);
                self.canvas.line(&format!("  {mark} trial {} of {count}", index + 1));
            }
            self.trial(trial);
        }
    }

    fn trial(&mut self, trial: &SavedTrial) {
        if trial.turns.is_empty() {
            self.answer(trial);
        } else {
            (1..).zip(&trial.turns).for_each(|(number, turn)| self.turn(number, turn));
        }
        self.verdict(trial);
    }

    fn turn(&mut self, number: usize, turn: &TurnDetails) {
        let elapsed = match turn.outcome {
            TurnOutcome::NotRun => String::new(),
            _ => format!(" after {}", duration_text(turn.duration_ms)),
        };
        self.title(&format!("turn {number}: {}{elapsed}", outcome_text(turn.outcome)));
        self.canvas.text(&turn.message, "    user   ", 11, NO_LINE_LIMIT);
        for call in &turn.tool_calls {
            self.call(call);
        }
        match turn.response.as_deref() {
            Some(response) if !response.trim().is_empty() => {
                self.canvas.text(response, "    agent  ", 11, NO_LINE_LIMIT);
            }
            Some(_) => self.note("the answer is empty"),
            None => {}
        }
        if turn.stop_reason.as_deref() == Some(MAX_TURNS_REACHED) {
            self.note(MAX_TURNS_TEXT);
        }
        if turn.calls_unreported {
            self.note("the agent does not report its tool calls");
        }
    }

    fn answer(&mut self, trial: &SavedTrial) {
        if !trial.tool_calls.is_empty() {
            self.title("tool calls");
        }
        for call in &trial.tool_calls {
            self.call(call);
        }
        let elapsed = duration_text(trial.duration_ms);
        let first_text = trial.first_token_ms.map_or_else(String::new, |millis| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
            let millis = millis.round() as u64;
            format!(", its first text after {}", duration_text(millis))
        });
        self.title(&format!("answer after {elapsed}{first_text}"));
        match trial.response.as_deref() {
            Some(response) if !response.trim().is_empty() => self.canvas.text(response, "    ", 4, NO_LINE_LIMIT),
            Some(_) if trial.outcome != Some(Outcome::Errored) => self.note("empty"),
            _ => self.note("none"),
        }
        if trial.stop_reason.as_deref() == Some(MAX_TURNS_REACHED) {
            self.note(MAX_TURNS_TEXT);
        }
        if trial.calls_unreported {
            self.note("the agent does not report its tool calls");
        }
    }

    fn verdict(&mut self, trial: &SavedTrial) {
        // A failed assertion is shown below.
        let is_shown = |error: &String| {
            trial.assertions.iter().flat_map(|line| &line.messages).any(|message| error.contains(message.as_str()))
        };
        if let Some(error) = trial.error.as_ref().filter(|error| !is_shown(error)) {
            self.title(if trial.outcome == Some(Outcome::Errored) { "error" } else { "failure" });
            self.canvas.text(error, "    ", 4, NO_LINE_LIMIT);
        }
        if !trial.assertions.is_empty() {
            self.title("assertions");
            trial.assertions.iter().for_each(|line| self.assertion(line));
        }
        if let Some(user) = &trial.simulated_user {
            self.title("simulated user");
            self.canvas.text(&simulation_text(user), "    ", 4, NO_LINE_LIMIT);
        }
        if let Some(security) = &trial.security {
            self.security(security);
        }
        let of_turns = trial.turns.iter().filter_map(|turn| Some((turn.calls.as_ref()?, &turn.tool_calls)));
        let of_case = trial.calls.as_ref().map(|alignment| (alignment, &trial.tool_calls));
        let of_safety = trial.security.as_ref().and_then(|security| security.calls.as_ref());
        let of_case = of_case.into_iter().chain(of_safety.map(|alignment| (alignment, &trial.tool_calls)));
        for (alignment, calls) in of_turns.chain(of_case) {
            let ConsoleSettings { columns, symbols, palette, .. } = self.canvas.settings;
            let renderer = AlignmentRenderer { columns: columns.saturating_sub(4), symbols, palette, is_full: true };
            self.title("expected and actual calls");
            for line in renderer.lines(alignment, calls) {
                self.canvas.line(&format!("    {line}"));
            }
        }
        if !trial.skipped_tokens.is_empty() {
            self.title("tokens without a value");
            self.canvas.text(&trial.skipped_tokens.join(", "), "    ", 4, NO_LINE_LIMIT);
        }
        for warning in trial.warnings.iter().cloned().chain(trial.near_misses.iter().map(NearMiss::message)) {
            let symbol = self.canvas.settings.symbols.warning;
            let before = format!("  {} ", self.canvas.settings.palette.warning(symbol));
            self.canvas.text(&warning, &before, 3 + width(symbol), NO_LINE_LIMIT);
        }
    }

    fn security(&mut self, security: &SecurityDetails) {
        let safety = security.safety.map_or("not asserted", outcome_name);
        self.title(&format!("utility: {}; safety: {safety}", outcome_name(security.utility)));
        for injection in &security.injections {
            self.canvas.text(&format!("attack: {}", injection_text(injection)), "    ", 4, NO_LINE_LIMIT);
        }
    }

    fn call(&mut self, call: &ToolCall) {
        let settings = self.canvas.settings;
        let arguments = match &call.raw_params {
            Some(raw) => raw.clone(),
            None => json_text(&Value::Object(call.params.clone())).into_owned(),
        };
        let line = format!("{}({arguments})", call.name);
        let indent = 5 + width(settings.symbols.arrow);
        self.canvas.text(&line, &format!("    {} ", settings.symbols.arrow), indent, NO_LINE_LIMIT);
        let before = " ".repeat(indent);
        if let Some(result) = &call.result {
            self.canvas.text(&json_text(result), &format!("{before}= "), indent + 2, NO_LINE_LIMIT);
        }
        let error = call.error.as_deref().or((call.success == Some(false)).then_some("the call failed"));
        if let Some(error) = error {
            let sign = settings.symbols.failed;
            let before = format!("{before}{} ", settings.palette.failure(sign));
            self.canvas.text(error, &before, indent + width(sign) + 1, NO_LINE_LIMIT);
        }
    }

    fn assertion(&mut self, line: &AssertionReport) {
        let settings = self.canvas.settings;
        let (palette, symbols) = (settings.palette, settings.symbols);
        let (symbol, mark, note) = match line.verdict {
            Some(AssertionOutcome::Passed) => (symbols.passed, palette.success(symbols.passed), ""),
            Some(AssertionOutcome::Failed) => (symbols.failed, palette.failure(symbols.failed), ""),
            Some(AssertionOutcome::Errored) => (symbols.errored, palette.error(symbols.errored), ": no verdict"),
            Some(AssertionOutcome::Skipped) => (symbols.warning, palette.warning(symbols.warning), ": skipped"),
            None if line.does_not_apply => (symbols.dash, palette.dim(symbols.dash), ": does not apply"),
            None => (symbols.dash, palette.dim(symbols.dash), ": not judged, since an earlier assertion failed"),
        };
        let before = format!("    {mark} ");
        let indent = 5 + width(symbol);
        if line.messages.is_empty() {
            let safety = if line.safety { "safety: " } else { "" };
            let turn = line.turn.map_or_else(|| safety.to_owned(), |turn| format!("turn {}: ", turn + 1));
            self.canvas.text(&format!("{turn}{}{note}", line.assertion), &before, indent, NO_LINE_LIMIT);
        }
        for message in &line.messages {
            self.canvas.text(message, &before, indent, NO_LINE_LIMIT);
        }
    }

    fn mark(&self, outcome: Option<Outcome>) -> String {
        let ConsoleSettings { palette, symbols, .. } = self.canvas.settings;
        match outcome {
            Some(Outcome::Passed) => palette.success(symbols.passed),
            Some(Outcome::Failed) => palette.failure(symbols.failed),
            Some(Outcome::Errored) => palette.error(symbols.errored),
            None => symbols.dash.to_owned(),
        }
    }

    fn title(&mut self, title: &str) {
        let title = self.canvas.settings.palette.dim(title);
        self.canvas.line(&format!("  {title}"));
    }

    fn note(&mut self, note: &str) {
        let note = self.canvas.settings.palette.dim(format_args!("({note})"));
        self.canvas.line(&format!("    {note}"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::console::Verbosity;
    use crate::style::{Palette, Symbols};
    use karat_cases::Tier;
    use karat_core::result::Incomplete;

    #[test]
    fn shows_a_case_in_full_and_escapes_it() {
        let line = |assertion: &str, verdict, message: &[&str]| AssertionReport {
            assertion: assertion.to_owned(),
            turn: None,
            safety: false,
            verdict,
            does_not_apply: assertion == "noToolErrors",
            messages: message.iter().map(|text| (*text).to_owned()).collect(),
        };
        let call =
            json!({"name": "get_weather", "params": {"city": "Rome"}, "result": {"celsius": 21}, "success": true});
        let trial = SavedTrial {
            outcome: Some(Outcome::Failed),
            duration_ms: 1250,
            error: Some("responseContains: expected 'ok' in response but not found".to_owned()),
            response: Some("no\u{1b}[2J\nreally".to_owned()),
            stop_reason: Some("maxTurns".to_owned()),
            tool_calls: vec![serde_json::from_value(call).expect("a call")],
            assertions: vec![
                line("toolsCalled", Some(AssertionOutcome::Passed), &[]),
                line("noToolErrors", None, &[]),
                line(
                    "responseContains",
                    Some(AssertionOutcome::Failed),
                    &["responseContains: expected 'ok' in response but not found"],
                ),
                line("maxTokens", None, &[]),
            ],
            ..SavedTrial::default()
        };
        let case = SavedCase {
            id: "gs-x-001".to_owned(),
            description: "says a".to_owned(),
            outcome: Outcome::Failed,
            regression: true,
            message: Some("a".to_owned()),
            trials: vec![trial],
        };
        let suite = SavedSuite {
            tool_name: "x".to_owned(),
            tier: Tier::Golden,
            agent: Some("scripted:a.json".to_owned()),
            eval_file: "evals/x.golden.json".to_owned(),
            eval_file_changed: false,
            cases: vec![case],
            skipped: Vec::new(),
            not_run: vec!["gs-x-002".to_owned(), "gs-x-003".to_owned()],
        };
        let run = SavedRun {
            run_id: "r-1".to_owned(),
            timestamp: "2026-11-18T10:00:00Z".to_owned(),
            incomplete: Some(Incomplete { cases_not_run: 2, missing_files: 0 }),
            suites: vec![suite],
            rubric_files: Vec::new(),
        };
        let settings = ConsoleSettings {
            columns: 60,
            symbols: Symbols::UNICODE,
            palette: Palette { color: false },
            verbosity: Verbosity::Normal,
        };
        insta::assert_snapshot!(saved_run_text(&run, settings), @r#"
        run r-1, 2026-11-18 10:00
        ⚠ incomplete: 2 cases did not run
        1 case: 0 passed, 1 failed, 2 not run

        ── x — golden evals ────────────────────────────────────────
        agent  scripted:a.json
        file   evals/x.golden.json

        ✗ gs-x-001  regression
          says a
          message
            a
          tool calls
            → get_weather({"city": "Rome"})
              = {"celsius": 21}
          answer after 1.2 s
            no\u{1b}[2J
            really
            (stopped after the last turn, still calling tools: see 'maxTurns')
          assertions
            ✓ toolsCalled
            — noToolErrors: does not apply
            ✗ responseContains: expected 'ok' in response but not
              found
            — maxTokens: not judged, since an earlier assertion
              failed

          not run
            gs-x-002, gs-x-003
        "#);
    }
}
