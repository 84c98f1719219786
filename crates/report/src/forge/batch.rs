//! A batch of drafts in the terminal.

use std::fmt::Write as _;

use karat_cases::Case;
use karat_json::text::counted;
use serde_json::Value;

use super::expectation::expectation_lines;
use crate::console::ConsoleSettings;
use crate::terminal_text::{pad, printable, truncate, width, wrap};

/// Indentation of the text of a case.
const INDENT: usize = 4;

/// Width of the labels.
const LABEL_WIDTH: usize = 10;

/// Maximum line width, for readability.
const MAX_WIDTH: usize = 110;

/// Maximum number of lines of an invalid case.
const MAX_RAW_LINES: usize = 15;

/// A batch of drafts.
#[derive(Debug, Clone)]
pub struct BatchView<'v> {
    /// The kind of the drafts: "golden", "straightforward".
    pub title: &'v str,
    /// The number of the batch, and the number of batches.
    pub position: (usize, usize),
    /// The number of approved cases of the session; `None` if there is no approver.
    pub approved: Option<usize>,
    pub drafts: Vec<DraftView<'v>>,
}

/// A draft with its findings and evidence.
#[derive(Debug, Clone)]
pub struct DraftView<'v> {
    /// The number by which the user refers to it, from 1.
    pub number: usize,
    pub id: &'v str,
    /// The purpose of the case.
    pub purpose: String,
    /// The source of the draft.
    pub origin: String,
    pub state: DraftState,
    /// The case, if it is valid.
    pub case: Option<Case>,
    /// The drafted JSON, valid or not.
    pub raw: Option<&'v Value>,
    pub findings: Vec<FindingView<'v>>,
    /// The results of running it.
    pub evidence: Vec<FindingView<'v>>,
}

/// The decision about a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DraftState {
    Undecided,
    Approved,
    Dropped,
}

/// A finding or a result of a draft.
#[derive(Debug, Clone)]
pub struct FindingView<'v> {
    pub level: Level,
    /// A JSON pointer into the case.
    pub pointer: &'v str,
    pub message: String,
}

/// The level of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Good,
    Warning,
    Error,
}

/// Renders a batch.
pub fn batch_text(batch: &BatchView<'_>, settings: ConsoleSettings) -> String {
    let writer = Writer { settings, columns: settings.columns.min(MAX_WIDTH) };
    let mut out = writer.heading(batch);
    batch.drafts.iter().for_each(|draft| writer.draft(draft, &mut out));
    out
}

/// Renders a batch in at most this number of rows if possible: in full, or three or two lines per draft.
pub fn batch_text_within(batch: &BatchView<'_>, settings: ConsoleSettings, rows: usize) -> String {
    let full = batch_text(batch, settings);
    if full.lines().count() <= rows {
        return full;
    }
    let writer = Writer { settings, columns: settings.columns.min(MAX_WIDTH) };
    let brief = |with_expectations: bool| {
        let mut out = writer.heading(batch);
        batch.drafts.iter().for_each(|draft| writer.brief(draft, with_expectations, &mut out));
        let _ = writeln!(out, "{}", settings.palette.dim("shortened: s NUMBER shows a case in full"));
        out
    };
    let text = brief(true);
    if text.lines().count() <= rows { text } else { brief(false) }
}

struct Writer {
    settings: ConsoleSettings,
    columns: usize,
}

impl Writer {
    fn heading(&self, batch: &BatchView<'_>) -> String {
        let (settings, columns) = (self.settings, self.columns);
        let mut out = String::new();
        let (number, of) = batch.position;
        let approved = batch.approved.map(|approved| format!(", {approved} approved so far")).unwrap_or_default();
        let heading = format!("{}: batch {number} of {of}{approved}", batch.title);
        let _ = writeln!(out, "{}", settings.palette.bold(&heading));
        let _ = writeln!(out, "{}", settings.symbols.rule.to_string().repeat(columns.min(width(&heading).max(40))));
        out
    }

    fn title(&self, draft: &DraftView<'_>) -> String {
        let (palette, symbols) = (self.settings.palette, self.settings.symbols);
        let state = match draft.state {
            DraftState::Undecided => String::new(),
            DraftState::Approved if symbols.ascii => format!("  {}", palette.success("approved")),
            DraftState::Approved => format!("  {}", palette.success(format!("{} approved", symbols.passed))),
            DraftState::Dropped => format!("  {}", palette.dim("dropped")),
        };
        let id =
            truncate(&printable(draft.id), self.columns.saturating_sub(INDENT + 12), symbols.ellipsis).into_owned();
        format!("{} {}{state}", pad(&draft.number.to_string(), INDENT - 1), palette.bold(id))
    }

    /// Writes a draft on few lines.
    fn brief(&self, draft: &DraftView<'_>, with_expectations: bool, out: &mut String) {
        let (palette, symbols) = (self.settings.palette, self.settings.symbols);
        let count = |level: Level| {
            draft.findings.iter().chain(&draft.evidence).filter(|finding| finding.level == level).count()
        };
        let (errors, warnings) = (count(Level::Error), count(Level::Warning));
        let _ = write!(out, "{}", self.title(draft));
        if draft.state != DraftState::Dropped {
            if errors > 0 {
                let _ = write!(out, "  {}", palette.failure(counted(errors, "error")));
            }
            if warnings > 0 {
                let _ = write!(out, "  {}", palette.warning(counted(warnings, "warning")));
            }
        }
        out.push('\n');
        let Some(case) = draft.case.as_ref().filter(|_| draft.state != DraftState::Dropped) else { return };
        let mut lines: Vec<String> = case.messages().map(|message| self.quote(message)).collect();
        if with_expectations {
            let expectations = expectation_lines(case, symbols).into_iter();
            let expectations = expectations.map(|(label, text)| format!("{} {text}", label.trim()));
            lines.push(expectations.collect::<Vec<_>>().join("; "));
        }
        let available = self.columns.saturating_sub(INDENT).max(20);
        for line in lines {
            let line = truncate(&printable(&line), available, symbols.ellipsis).into_owned();
            let _ = writeln!(out, "{}{line}", " ".repeat(INDENT));
        }
    }

    fn draft(&self, draft: &DraftView<'_>, out: &mut String) {
        let (palette, symbols) = (self.settings.palette, self.settings.symbols);
        let _ = writeln!(out, "\n{}", self.title(draft));
        // Dropped drafts need no details.
        if draft.state == DraftState::Dropped {
            return;
        }
        self.write_labelled("tests", &draft.purpose, out);
        match (&draft.case, draft.raw) {
            (Some(case), _) => {
                for message in case.messages() {
                    self.write_labelled("message", &self.quote(message), out);
                }
                for (label, text) in expectation_lines(case, symbols) {
                    self.write_labelled(label, &text, out);
                }
            }
            (None, Some(raw)) => self.raw(raw, out),
            (None, None) => {}
        }
        for finding in draft.findings.iter().chain(&draft.evidence) {
            self.finding(finding, out);
        }
        let _ = writeln!(out, "{}{}", " ".repeat(INDENT), palette.dim(printable(&draft.origin)));
    }

    fn quote(&self, message: &str) -> String {
        if self.settings.symbols.ascii { format!("\"{message}\"") } else { format!("\u{201c}{message}\u{201d}") }
    }

    fn write_labelled(&self, label: &str, text: &str, out: &mut String) {
        let label = pad(label, LABEL_WIDTH);
        let indent = " ".repeat(INDENT);
        let available = self.columns.saturating_sub(INDENT + LABEL_WIDTH).max(20);
        for (index, line) in wrap(&printable(text), available).iter().enumerate() {
            let start = if index == 0 { self.settings.palette.dim(&label) } else { " ".repeat(LABEL_WIDTH) };
            let _ = writeln!(out, "{indent}{start}{line}");
        }
    }

    fn finding(&self, finding: &FindingView<'_>, out: &mut String) {
        let (palette, symbols) = (self.settings.palette, self.settings.symbols);
        let (symbol, word) = match finding.level {
            Level::Good => (symbols.passed, "passed"),
            Level::Warning => (symbols.warning, "warning"),
            Level::Error => (symbols.failed, "error"),
        };
        // In ASCII the symbols are words and would be redundant.
        let sign = if symbols.ascii { word.to_owned() } else { format!("{symbol} {word}") };
        let painted = |text: &str| match finding.level {
            Level::Good => palette.success(text),
            Level::Warning => palette.warning(text),
            Level::Error => palette.failure(text),
        };
        let location = if finding.pointer.is_empty() { String::new() } else { format!("{}: ", finding.pointer) };
        let available = self.columns.saturating_sub(INDENT + LABEL_WIDTH).max(20);
        let indent = " ".repeat(INDENT);
        for (line_number, line) in
            wrap(&printable(&format!("{location}{}", finding.message)), available).iter().enumerate()
        {
            let start = if line_number == 0 { painted(&pad(&sign, LABEL_WIDTH)) } else { " ".repeat(LABEL_WIDTH) };
            let _ = writeln!(out, "{indent}{start}{line}");
        }
    }

    /// Writes an invalid case as JSON.
    fn raw(&self, raw: &Value, out: &mut String) {
        let text = serde_json::to_string_pretty(raw).unwrap_or_default();
        let available = self.columns.saturating_sub(INDENT).max(20);
        for line in text.lines().take(MAX_RAW_LINES) {
            let _ = writeln!(
                out,
                "{}{}",
                " ".repeat(INDENT),
                truncate(&printable(line), available, self.settings.symbols.ellipsis)
            );
        }
        if text.lines().count() > MAX_RAW_LINES {
            let _ = writeln!(out, "{}{}", " ".repeat(INDENT), self.settings.symbols.ellipsis);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::console::Verbosity;
    use crate::style::{Palette, Symbols};

    fn settings(columns: usize, symbols: Symbols) -> ConsoleSettings {
        ConsoleSettings { columns, symbols, palette: Palette { color: false }, verbosity: Verbosity::Normal }
    }

    fn case() -> Value {
        json!({
            "id": "ls-get-weather-001",
            "difficulty": "ambiguous",
            "input": {"message": "Should I bring an umbrella to my meeting in Paris tomorrow, or is the sky \u{1b}[31mclear all week long?"},
            "stubs": {"get_weather": {"temperature": 21}},
            "expect": {
                "toolsAcceptable": [["get_weather"], ["get_weather", "get_forecast"]],
                "toolsNotCalled": ["send_mail"],
                "toolParams": [{"tool": "get_weather", "paramName": "city", "assertion": "equals", "value": "Paris"}],
                "noToolErrors": true,
                "responseNonEmpty": true,
                "responseContains": ["{{seed:paris.temperature}}", "Paris"],
                "responseContainsAny": [["umbrella", "rain"], ["°", "degrees"]],
                "responseNotContains": ["I don't know"],
                "maxLatencyMs": 30000
            }
        })
    }

    fn view<'v>(raw: &'v Value, broken: &'v Value) -> BatchView<'v> {
        let draft = DraftView {
            number: 1,
            id: "ls-get-weather-001",
            purpose: "one tool alone, or with another: get_forecast".to_owned(),
            origin: "drafted by openai:gpt-5".to_owned(),
            state: DraftState::Approved,
            case: Case::read_one(raw).ok(),
            raw: Some(raw),
            findings: vec![FindingView {
                level: Level::Warning,
                pointer: "/expect/responseContains/1",
                message: "'Paris' is in the message, so an echo passes".to_owned(),
            }],
            evidence: vec![FindingView {
                level: Level::Good,
                pointer: "",
                message: "get_weather was called".to_owned(),
            }],
        };
        let other = DraftView {
            number: 2,
            id: "ls-get-weather-002",
            state: DraftState::Undecided,
            case: None,
            raw: Some(broken),
            findings: vec![FindingView { level: Level::Error, pointer: "", message: "'expect' is missing".to_owned() }],
            evidence: Vec::new(),
            ..draft.clone()
        };
        let dropped = DraftView { number: 3, id: "ls-get-weather-003", state: DraftState::Dropped, ..other.clone() };
        BatchView { title: "ambiguous", position: (2, 6), approved: Some(13), drafts: vec![draft, other, dropped] }
    }

    #[test]
    fn renders_a_batch_at_eighty_columns() {
        let (raw, broken) = (case(), json!({"id": "ls-get-weather-002"}));
        let text = batch_text(&view(&raw, &broken), settings(80, Symbols::UNICODE));
        assert!(text.lines().all(|line| width(line) <= 80), "{text}");
        insta::assert_snapshot!(text, @r#"
        ambiguous: batch 2 of 6, 13 approved so far
        ───────────────────────────────────────────

        1   ls-get-weather-001  ✓ approved
            tests     one tool alone, or with another: get_forecast
            message   “Should I bring an umbrella to my meeting in Paris tomorrow, or is
                      the sky \u{1b}[31mclear all week long?”
            calls     get_weather, or get_weather + get_forecast
            not       send_mail
            with      get_weather.city equals "Paris"
            contains  '{{seed:paris.temperature}}', 'Paris'
            any of    umbrella | rain
            any of    ° | degrees
            excludes  'I don't know'
            stubs     get_weather
            also      noToolErrors, responseNonEmpty, maxLatencyMs 30000
            ⚠ warning /expect/responseContains/1: 'Paris' is in the message, so an echo
                      passes
            ✓ passed  get_weather was called
            drafted by openai:gpt-5

        2   ls-get-weather-002
            tests     one tool alone, or with another: get_forecast
            {
              "id": "ls-get-weather-002"
            }
            ✗ error   'expect' is missing
            drafted by openai:gpt-5

        3   ls-get-weather-003  dropped
        "#);
    }

    #[test]
    fn shortens_a_batch_to_the_height_of_the_terminal() {
        let (raw, broken) = (case(), json!({"id": "ls-get-weather-002"}));
        let batch = view(&raw, &broken);
        let drafts: Vec<DraftView<'_>> =
            (1..=10).map(|number| DraftView { number, ..batch.drafts[0].clone() }).collect();
        let batch = BatchView { drafts, ..batch };
        let text = |rows: usize| batch_text_within(&batch, settings(80, Symbols::UNICODE), rows);
        assert_eq!(text(1000), batch_text(&batch, settings(80, Symbols::UNICODE)));
        for rows in [38, 23] {
            assert!(text(rows).lines().count() <= rows, "{}", text(rows));
            assert!(text(rows).lines().all(|line| width(line) <= 80), "{}", text(rows));
            assert!(text(rows).contains("✓ approved  1 warning"), "{}", text(rows));
        }
        assert!(text(38).contains("calls get_weather") && !text(23).contains("calls get_weather"), "{}", text(23));
    }

    #[test]
    fn renders_a_batch_in_ascii_on_a_narrow_terminal() {
        let (raw, broken) = (case(), json!({"id": "ls-get-weather-002"}));
        let text = batch_text(&view(&raw, &broken), settings(44, Symbols::ASCII));
        assert!(text.lines().all(|line| width(line) <= 44), "{text}");
        insta::assert_snapshot!(text, @r#"
        ambiguous: batch 2 of 6, 13 approved so far
        -------------------------------------------

        1   ls-get-weather-001  approved
            tests     one tool alone, or with
                      another: get_forecast
            message   "Should I bring an umbrella to
                      my meeting in Paris tomorrow,
                      or is the sky \u{1b}[31mclear
                      all week long?"
            calls     get_weather, or get_weather +
                      get_forecast
            not       send_mail
            with      get_weather.city equals
                      "Paris"
            contains  '{{seed:paris.temperature}}',
                      'Paris'
            any of    umbrella | rain
            any of    ° | degrees
            excludes  'I don't know'
            stubs     get_weather
            also      noToolErrors,
                      responseNonEmpty, maxLatencyMs
                      30000
            warning   /expect/responseContains/1:
                      'Paris' is in the message, so
                      an echo passes
            passed    get_weather was called
            drafted by openai:gpt-5

        2   ls-get-weather-002
            tests     one tool alone, or with
                      another: get_forecast
            {
              "id": "ls-get-weather-002"
            }
            error     'expect' is missing
            drafted by openai:gpt-5

        3   ls-get-weather-003  dropped
        "#);
    }
}
