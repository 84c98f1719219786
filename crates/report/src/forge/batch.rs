//! A batch of drafts in the terminal.

use std::fmt::Write as _;

use karat_core::case::Case;
use serde_json::Value;

use super::expectation::expectation_lines;
use crate::console::ConsoleSettings;
use crate::terminal_text::{cut, pad, printable, width, wrap};

/// Where the text of a case begins.
const INDENT: usize = 4;

/// How wide the words are that say what a line is.
const LABEL: usize = 10;

/// A line is read best up to here, however wide the screen is.
const WIDEST: usize = 110;

/// How many lines of what is no case are shown.
const MOST_RAW_LINES: usize = 15;

/// Drafts that are decided about together.
#[derive(Debug, Clone)]
pub struct BatchView<'v> {
    /// What they have in common: "golden", "straightforward".
    pub title: &'v str,
    /// The number of the batch, and how many there are.
    pub place: (usize, usize),
    /// How many cases were approved so far and are in no file yet; none where nobody is asked.
    pub approved: Option<usize>,
    pub drafts: Vec<DraftView<'v>>,
}

/// A draft, and what is known of it.
#[derive(Debug, Clone)]
pub struct DraftView<'v> {
    /// By which the person names it, from 1.
    pub number: usize,
    pub id: &'v str,
    /// What it is to test.
    pub purpose: String,
    /// Who or what made it.
    pub origin: String,
    pub state: DraftState,
    /// The case, where it can be read as one.
    pub case: Option<Case>,
    /// What was drafted, whatever it is.
    pub raw: Option<&'v Value>,
    pub findings: Vec<FindingView<'v>>,
    /// What came of running it.
    pub evidence: Vec<FindingView<'v>>,
}

/// What was decided about a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DraftState {
    Undecided,
    Approved,
    Dropped,
}

/// A word about a draft.
#[derive(Debug, Clone)]
pub struct FindingView<'v> {
    pub level: Level,
    /// Where in the case, as a JSON pointer.
    pub pointer: &'v str,
    pub message: String,
}

/// What a finding means for the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Good,
    Warning,
    Error,
}

/// Lays a batch out.
pub fn batch_text(batch: &BatchView<'_>, settings: ConsoleSettings) -> String {
    let columns = settings.columns.min(WIDEST);
    let mut out = String::new();
    let (number, of) = batch.place;
    let approved = batch.approved.map(|approved| format!(", {approved} approved so far")).unwrap_or_default();
    let heading = format!("{}: batch {number} of {of}{approved}", batch.title);
    let _ = writeln!(out, "{}", settings.palette.bold(&heading));
    let _ = writeln!(out, "{}", settings.symbols.rule.to_string().repeat(columns.min(width(&heading).max(40))));
    let writer = Writer { settings, columns };
    batch.drafts.iter().for_each(|draft| writer.draft(draft, &mut out));
    out
}

struct Writer {
    settings: ConsoleSettings,
    columns: usize,
}

impl Writer {
    fn draft(&self, draft: &DraftView<'_>, out: &mut String) {
        let (palette, symbols) = (self.settings.palette, self.settings.symbols);
        let state = match draft.state {
            DraftState::Undecided => String::new(),
            DraftState::Approved if symbols.ascii => format!("  {}", palette.good("approved")),
            DraftState::Approved => format!("  {}", palette.good(format!("{} approved", symbols.passed))),
            DraftState::Dropped => format!("  {}", palette.dim("dropped")),
        };
        let id = cut(&printable(draft.id), self.columns.saturating_sub(INDENT + 12), symbols.ellipsis).into_owned();
        let _ = writeln!(out, "\n{} {}{state}", pad(&draft.number.to_string(), INDENT - 1), palette.bold(id));
        // What was decided about is there to be counted, not to be read again.
        if draft.state == DraftState::Dropped {
            return;
        }
        self.labelled("tests", &draft.purpose, out);
        match (&draft.case, draft.raw) {
            (Some(case), _) => {
                self.message(&case.input.message, out);
                for (label, text) in expectation_lines(case, symbols) {
                    self.labelled(label, &text, out);
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

    fn message(&self, message: &str, out: &mut String) {
        let quoted = format!("\u{201c}{message}\u{201d}");
        let quoted = if self.settings.symbols.ascii { format!("\"{message}\"") } else { quoted };
        self.labelled("message", &quoted, out);
    }

    fn labelled(&self, label: &str, text: &str, out: &mut String) {
        let label = pad(label, LABEL);
        let indent = " ".repeat(INDENT);
        let room = self.columns.saturating_sub(INDENT + LABEL).max(20);
        for (place, line) in wrap(&printable(text), room).iter().enumerate() {
            let begin = if place == 0 { self.settings.palette.dim(&label) } else { " ".repeat(LABEL) };
            let _ = writeln!(out, "{indent}{begin}{line}");
        }
    }

    fn finding(&self, finding: &FindingView<'_>, out: &mut String) {
        let (palette, symbols) = (self.settings.palette, self.settings.symbols);
        let (symbol, word) = match finding.level {
            Level::Good => (symbols.passed, "passed"),
            Level::Warning => (symbols.warning, "warning"),
            Level::Error => (symbols.failed, "error"),
        };
        // Plain symbols are words themselves.
        let sign = if symbols.ascii { word.to_owned() } else { format!("{symbol} {word}") };
        let painted = |text: &str| match finding.level {
            Level::Good => palette.good(text),
            Level::Warning => palette.doubtful(text),
            Level::Error => palette.bad(text),
        };
        let place = if finding.pointer.is_empty() { String::new() } else { format!("{}: ", finding.pointer) };
        let room = self.columns.saturating_sub(INDENT + LABEL).max(20);
        let indent = " ".repeat(INDENT);
        for (line_number, line) in wrap(&printable(&format!("{place}{}", finding.message)), room).iter().enumerate() {
            let begin = if line_number == 0 { painted(&pad(&sign, LABEL)) } else { " ".repeat(LABEL) };
            let _ = writeln!(out, "{indent}{begin}{line}");
        }
    }

    /// Shows what is no case as it is.
    fn raw(&self, raw: &Value, out: &mut String) {
        let text = serde_json::to_string_pretty(raw).unwrap_or_default();
        let room = self.columns.saturating_sub(INDENT).max(20);
        for line in text.lines().take(MOST_RAW_LINES) {
            let _ =
                writeln!(out, "{}{}", " ".repeat(INDENT), cut(&printable(line), room, self.settings.symbols.ellipsis));
        }
        if text.lines().count() > MOST_RAW_LINES {
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
                message: "'Paris' is in the message, so that an echo passes, which says nothing of the tool".to_owned(),
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
        BatchView { title: "ambiguous", place: (2, 6), approved: Some(13), drafts: vec![draft, other, dropped] }
    }

    #[test]
    fn a_batch_is_readable_at_eighty_columns() {
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
            says      '{{seed:paris.temperature}}', 'Paris'
            any of    umbrella | rain
            any of    ° | degrees
            never     'I don't know'
            stubs     get_weather
            also      noToolErrors, responseNonEmpty, maxLatencyMs 30000
            ⚠ warning /expect/responseContains/1: 'Paris' is in the message, so that an
                      echo passes, which says nothing of the tool
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
    fn a_batch_is_readable_in_plain_letters_and_when_it_is_narrow() {
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
            says      '{{seed:paris.temperature}}',
                      'Paris'
            any of    umbrella | rain
            any of    ° | degrees
            never     'I don't know'
            stubs     get_weather
            also      noToolErrors,
                      responseNonEmpty, maxLatencyMs
                      30000
            warning   /expect/responseContains/1:
                      'Paris' is in the message, so
                      that an echo passes, which
                      says nothing of the tool
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
