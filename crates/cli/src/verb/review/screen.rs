//! Shows one trace and handles keys.

use crossterm::event::KeyCode;
use karat_core::rating::Rating;
use karat_report::{
    ConsoleSettings, Length, ReviewLine, ReviewPage, ReviewView, help_height, review_height, review_lines,
    review_message, review_screen, width,
};
use karat_workflows::review::{Command, Review, ReviewSession, ReviewedTrace, Step};

use super::terminal::dimensions;
use crate::failure::Failure;
use crate::printer::Printer;

/// Maximum length of a note, in characters.
const MAX_NOTE_LENGTH: usize = 2000;

/// The action for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Continue,
    Quit,
    Interrupt,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Mode {
    View,
    /// The first visible line of the help.
    Help(usize),
    /// The note typed so far.
    Note(String),
}

pub(super) struct ReviewScreen<'c> {
    session: ReviewSession<'c>,
    console: ConsoleSettings,
    rows: usize,
    mode: Mode,
    length: Length,
    trace: Option<ReviewedTrace>,
    /// The lines of the trace.
    lines: Vec<String>,
    top: usize,
    /// The effect of the last key.
    message: String,
}

impl<'c> ReviewScreen<'c> {
    pub(super) fn new(session: ReviewSession<'c>, printer: &Printer) -> Self {
        Self {
            session,
            console: ConsoleSettings { palette: printer.stderr_palette, ..printer.console() },
            rows: 0,
            mode: Mode::View,
            length: Length::Short,
            trace: None,
            lines: Vec::new(),
            top: 0,
            message: String::new(),
        }
    }

    pub(super) async fn close(self) -> Review {
        self.session.close().await
    }

    /// Formats the current trace for the current size of the terminal.
    pub(super) async fn layout(&mut self) -> Result<(), Failure> {
        (self.console.columns, self.rows) = dimensions();
        let current = match self.session.review().next() {
            Step::Rate { trace_id, .. } => Some(trace_id),
            Step::End => None,
        };
        if self.trace.as_ref().map(|trace| trace.trace_id.as_str()) != current {
            self.trace = self.session.current().await?;
            self.top = 0;
        }
        self.lines.clear();
        if let Some(trace) = &self.trace {
            self.lines = review_lines(trace, self.length, self.console);
        }
        if let Mode::Help(top) = &mut self.mode {
            *top = 0;
        }
        self.top = self.top.min(self.lines.len().saturating_sub(review_height(self.rows)));
        Ok(())
    }

    /// Returns the rows of the screen.
    pub(super) fn rows(&self) -> Vec<String> {
        let page = match (&self.mode, &self.trace) {
            (Mode::Help(top), _) => ReviewPage::Help { top: *top },
            (_, None) => ReviewPage::End,
            (_, Some(_)) => ReviewPage::Trace { lines: &self.lines, top: self.top },
        };
        let line = match (&self.mode, self.note()) {
            (Mode::Note(note), _) => ReviewLine::Typing(note),
            // A message takes precedence over the saved note.
            _ if !self.message.is_empty() => ReviewLine::Message(&self.message),
            (_, Some(note)) => ReviewLine::Note(note),
            (_, None) => ReviewLine::Nothing,
        };
        let Review { queue, author, .. } = self.session.review();
        review_screen(&ReviewView { queue, author, page, line }, self.console, self.rows)
    }

    /// Returns the column and row of the cursor while a note is typed.
    pub(super) fn cursor(&self) -> Option<(u16, u16)> {
        if !matches!(self.mode, Mode::Note(_)) {
            return None;
        }
        let rows = self.rows();
        let row = rows.len().checked_sub(2)?;
        let column = width(&rows[row]).min(self.console.columns.saturating_sub(1));
        Some((u16::try_from(column).ok()?, u16::try_from(row).ok()?))
    }

    fn note(&self) -> Option<&str> {
        match self.session.review().next() {
            Step::Rate { note, .. } => note,
            Step::End => None,
        }
    }

    pub(super) async fn handle_key(&mut self, key: KeyCode) -> Result<Next, Failure> {
        self.message.clear();
        match self.mode {
            Mode::Note(_) => self.type_note(key).await?,
            Mode::Help(_) => {
                if !self.scroll(key) {
                    self.mode = Mode::View;
                }
            }
            Mode::View => return self.handle_command(key).await,
        }
        Ok(Next::Continue)
    }

    async fn handle_command(&mut self, key: KeyCode) -> Result<Next, Failure> {
        if self.scroll(key) {
            return Ok(Next::Continue);
        }
        let KeyCode::Char(letter) = key else { return Ok(Next::Continue) };
        match letter.to_ascii_lowercase() {
            'q' => return Ok(Next::Quit),
            '?' | 'h' => self.mode = Mode::Help(0),
            'u' => self.apply(Command::Undo).await?,
            // The others need a trace.
            _ if self.trace.is_none() => {}
            'g' => self.apply(Command::Rate(Rating::Positive)).await?,
            'b' => self.apply(Command::Rate(Rating::Negative)).await?,
            'n' => self.apply(Command::Rate(Rating::Neutral)).await?,
            's' => self.apply(Command::Skip).await?,
            't' => self.mode = Mode::Note(self.note().unwrap_or_default().to_owned()),
            'f' => {
                self.length = if self.length == Length::Full { Length::Short } else { Length::Full };
                self.layout().await?;
            }
            other => self.message = format!("unknown command '{other}'; press ? for help"),
        }
        Ok(Next::Continue)
    }

    async fn apply(&mut self, command: Command) -> Result<(), Failure> {
        self.message = review_message(&self.session.apply(command).await?);
        self.layout().await
    }

    /// Adds pasted text to the note. Outside of a note it is ignored: its letters would rate traces.
    pub(super) fn paste(&mut self, text: &str) -> Next {
        if let Mode::Note(note) = &mut self.mode {
            let line = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
            let available = MAX_NOTE_LENGTH.saturating_sub(note.chars().count());
            note.extend(line.take(available));
        } else {
            "pasted text is ignored; press t to write a note".clone_into(&mut self.message);
        }
        Next::Continue
    }

    async fn type_note(&mut self, key: KeyCode) -> Result<(), Failure> {
        let Mode::Note(note) = &mut self.mode else { return Ok(()) };
        match key {
            KeyCode::Char(letter) if note.chars().count() < MAX_NOTE_LENGTH => note.push(letter),
            KeyCode::Backspace => {
                note.pop();
            }
            KeyCode::Enter => {
                let note = std::mem::take(note);
                self.mode = Mode::View;
                self.apply(Command::Note(note)).await?;
            }
            KeyCode::Esc => self.mode = Mode::View,
            _ => {}
        }
        Ok(())
    }

    /// Scrolls, and returns whether the key is a scroll key.
    fn scroll(&mut self, key: KeyCode) -> bool {
        let height = review_height(self.rows);
        let page = height.saturating_sub(1).max(1);
        let (top, lines) = match &mut self.mode {
            Mode::Help(top) => (top, help_height(self.console.columns)),
            _ => (&mut self.top, self.lines.len()),
        };
        let target = match key {
            KeyCode::Down | KeyCode::Enter | KeyCode::Char('j') => top.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => top.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => top.saturating_add(page),
            KeyCode::PageUp => top.saturating_sub(page),
            KeyCode::Home => 0,
            KeyCode::End => usize::MAX,
            _ => return false,
        };
        *top = target.min(lines.saturating_sub(height));
        true
    }
}
