//! What a reviewer sees and does: one trace, and what each key does with it.

use std::collections::HashMap;

use crossterm::event::KeyCode;
use karat_core::feedback::{Feedback, Rating};
use karat_core::port::{Clock, EvalStore, FeedbackStore, TraceStore};
use karat_core::review::{Decision, Sitting};
use karat_core::stored::StoredExecution;
use karat_report::{
    ConsoleSettings, Length, ReviewLine, ReviewPage, ReviewView, conversation_text, help_height, review_height,
    review_screen, verdict_lines, width,
};
use karat_store::Store;
use serde_json::Value;
use tokio::runtime::Runtime;

use super::screen::dimensions;
use crate::failure::Failure;
use crate::printer::Printer;
use karat_workflows::context::clock::SystemClock;

/// The longest note that a person types here.
const LONGEST_NOTE: usize = 2000;

/// What comes after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Stay,
    Quit,
    Interrupt,
}

/// What the keys are for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Mode {
    Look,
    /// The first line of the help that is shown.
    Help(usize),
    /// A note is typed, so far this.
    Note(String),
}

/// The trace that is looked at.
struct Open {
    trace_id: String,
    document: Value,
    verdicts: Vec<StoredExecution>,
}

pub(super) struct Desk<'d> {
    store: &'d Store,
    runtime: &'d Runtime,
    sitting: Sitting,
    author: String,
    show_verdicts: bool,
    console: ConsoleSettings,
    rows: usize,
    mode: Mode,
    length: Length,
    open: Option<Open>,
    lines: Vec<String>,
    top: usize,
    /// What the last key did, until the next one.
    told: String,
    /// Notes on traces that were not rated yet, or whose rating was taken back.
    notes: HashMap<String, String>,
}

impl<'d> Desk<'d> {
    pub(super) fn new(
        store: &'d Store,
        runtime: &'d Runtime,
        sitting: Sitting,
        author: String,
        show_verdicts: bool,
        printer: &Printer,
    ) -> Self {
        let console = ConsoleSettings { palette: printer.stderr_palette, ..printer.console() };
        Self {
            store,
            runtime,
            sitting,
            author,
            show_verdicts,
            console,
            rows: 0,
            mode: Mode::Look,
            length: Length::Short,
            open: None,
            lines: Vec::new(),
            top: 0,
            told: String::new(),
            notes: HashMap::new(),
        }
    }

    pub(super) fn sitting(&self) -> &Sitting {
        &self.sitting
    }

    /// Lays the current trace out for the terminal as it is now.
    pub(super) fn lay_out(&mut self) -> Result<(), Failure> {
        (self.console.columns, self.rows) = dimensions();
        let current = self.sitting.current().map(|current| current.trace_id.clone());
        if self.open.as_ref().map(|open| &open.trace_id) != current.as_ref() {
            self.open = current.map(|trace_id| self.read(trace_id)).transpose()?;
            self.top = 0;
        }
        self.lines.clear();
        if let Some(open) = &self.open {
            let verdicts = verdict_lines(&open.verdicts, self.console);
            self.lines.extend(verdicts);
            if !self.lines.is_empty() {
                self.lines.push(String::new());
            }
            let conversation = conversation_text(&open.document, self.length, self.console);
            self.lines.extend(conversation.lines().map(str::to_owned));
        }
        if self.open.is_some() && self.lines.is_empty() {
            self.lines.push("this trace has no steps".to_owned());
        }
        if let Mode::Help(top) = &mut self.mode {
            *top = 0;
        }
        self.top = self.top.min(self.lines.len().saturating_sub(review_height(self.rows)));
        Ok(())
    }

    fn read(&self, trace_id: String) -> Result<Open, Failure> {
        self.runtime.block_on(async {
            let trace = self.store.trace(&trace_id).await?;
            let Some(trace) = trace else {
                return Err(Failure::errored(format!("trace '{trace_id}' is not in the store any more")));
            };
            let document = serde_json::from_str(&trace.document).unwrap_or_default();
            let mut verdicts: Vec<StoredExecution> = Vec::new();
            if self.show_verdicts {
                let mut executions = self.store.executions_of_trace(&trace_id).await?;
                // What was said of another document is no help here.
                executions.retain(|execution| execution.trace_hash == trace.head.hash);
                for execution in executions {
                    // By name and version: the newest is the last of its name.
                    verdicts.pop_if(|before| before.eval_id == execution.eval_id);
                    verdicts.push(execution);
                }
            }
            Ok(Open { trace_id, document, verdicts })
        })
    }

    /// Draws what is to be seen.
    pub(super) fn rows(&self) -> Vec<String> {
        review_screen(&self.view(), self.console, self.rows)
    }

    fn view(&self) -> ReviewView<'_> {
        let page = match (&self.mode, &self.open) {
            (Mode::Help(top), _) => ReviewPage::Help { top: *top },
            (_, None) => ReviewPage::End,
            (_, Some(_)) => ReviewPage::Trace { lines: &self.lines, top: self.top },
        };
        let line = match (&self.mode, self.note()) {
            (Mode::Note(note), _) => ReviewLine::Typing(note),
            // What is news goes before a note that the person knows.
            _ if !self.told.is_empty() => ReviewLine::Told(&self.told),
            (_, Some(note)) => ReviewLine::Note(note),
            (_, None) => ReviewLine::Nothing,
        };
        ReviewView { sitting: &self.sitting, author: &self.author, page, line }
    }

    /// Returns where a note is typed, as column and row.
    pub(super) fn cursor(&self) -> Option<(u16, u16)> {
        let rows = self.rows();
        let row = rows.len().checked_sub(2)?;
        let is_typing = matches!(self.mode, Mode::Note(_));
        let column = width(&rows[row]).min(self.console.columns.saturating_sub(1));
        is_typing.then(|| Some((u16::try_from(column).ok()?, u16::try_from(row).ok()?))).flatten()
    }

    fn note(&self) -> Option<&str> {
        self.notes.get(&self.open.as_ref()?.trace_id).map(String::as_str)
    }

    /// Does what a key is for.
    pub(super) fn press(&mut self, key: KeyCode) -> Result<Next, Failure> {
        self.told.clear();
        match self.mode {
            Mode::Note(_) => self.type_note(key),
            Mode::Help(_) => {
                if !self.scroll(key) {
                    self.mode = Mode::Look;
                }
            }
            Mode::Look => return self.act(key),
        }
        Ok(Next::Stay)
    }

    fn act(&mut self, key: KeyCode) -> Result<Next, Failure> {
        if self.scroll(key) {
            return Ok(Next::Stay);
        }
        let KeyCode::Char(letter) = key else { return Ok(Next::Stay) };
        match letter.to_ascii_lowercase() {
            'q' => return Ok(Next::Quit),
            '?' | 'h' => self.mode = Mode::Help(0),
            'u' => self.undo()?,
            // The others need a trace.
            _ if self.open.is_none() => {}
            'g' => self.rate(Rating::Positive)?,
            'b' => self.rate(Rating::Negative)?,
            'n' => self.rate(Rating::Neutral)?,
            's' => {
                self.sitting.decide(Decision::Skipped);
                "skipped for now".clone_into(&mut self.told);
                self.lay_out()?;
            }
            't' => self.mode = Mode::Note(self.note().unwrap_or_default().to_owned()),
            'f' => {
                self.length = if self.length == Length::Full { Length::Short } else { Length::Full };
                self.lay_out()?;
            }
            other => self.told = format!("'{other}' is for nothing; ? shows what the keys are for"),
        }
        Ok(Next::Stay)
    }

    /// Takes what was pasted into the note that is typed, and nowhere else: letters would be taken for ratings.
    pub(super) fn paste(&mut self, text: &str) -> Next {
        if let Mode::Note(note) = &mut self.mode {
            let line: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
            note.extend(line.chars().take(LONGEST_NOTE.saturating_sub(note.chars().count())));
        } else {
            "pasted text is passed over; t begins a note".clone_into(&mut self.told);
        }
        Next::Stay
    }

    fn type_note(&mut self, key: KeyCode) {
        let Mode::Note(note) = &mut self.mode else { return };
        match key {
            KeyCode::Char(letter) if note.chars().count() < LONGEST_NOTE => note.push(letter),
            KeyCode::Backspace => {
                note.pop();
            }
            KeyCode::Enter => {
                let note = note.trim().to_owned();
                if let Some(open) = &self.open {
                    if note.is_empty() {
                        self.notes.remove(&open.trace_id);
                    } else {
                        self.notes.insert(open.trace_id.clone(), note);
                    }
                }
                self.mode = Mode::Look;
            }
            KeyCode::Esc => self.mode = Mode::Look,
            _ => {}
        }
    }

    /// Scrolls, if the key is for that.
    fn scroll(&mut self, key: KeyCode) -> bool {
        let page = review_height(self.rows).saturating_sub(1).max(1);
        let before = if let Mode::Help(top) = self.mode { top } else { self.top };
        let top = match key {
            KeyCode::Down | KeyCode::Enter | KeyCode::Char('j') => before.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => before.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => before.saturating_add(page),
            KeyCode::PageUp => before.saturating_sub(page),
            KeyCode::Home => 0,
            KeyCode::End => usize::MAX,
            _ => return false,
        };
        self.scroll_to(top);
        true
    }

    fn scroll_to(&mut self, wanted: usize) {
        let height = review_height(self.rows);
        let last = |lines: usize| lines.saturating_sub(height);
        match &mut self.mode {
            Mode::Help(top) => *top = wanted.min(last(help_height(self.console.columns))),
            _ => self.top = wanted.min(last(self.lines.len())),
        }
    }

    fn rate(&mut self, rating: Rating) -> Result<(), Failure> {
        let Some(open) = &self.open else { return Ok(()) };
        let trace_id = open.trace_id.clone();
        let note = self.notes.get(&trace_id).cloned();
        self.say(&trace_id, Some(rating), note)?;
        self.sitting.decide(Decision::Rated(rating));
        self.told = format!("{rating}, stored: {trace_id}");
        self.lay_out()
    }

    /// Takes the last decision back. That a rating was given stays in the history, and that it was taken back too.
    fn undo(&mut self) -> Result<(), Failure> {
        let Some((candidate, decision)) = self.sitting.last() else {
            "there is nothing to take back in this sitting".clone_into(&mut self.told);
            return Ok(());
        };
        let trace_id = candidate.trace_id.clone();
        match decision {
            Decision::Rated(rating) => {
                self.say(&trace_id, None, None)?;
                self.told = format!("took back: {rating}");
            }
            Decision::Skipped => "back to what was skipped".clone_into(&mut self.told),
        }
        self.sitting.undo();
        self.lay_out()
    }

    /// Stores a statement; when this returns, it is on disk.
    fn say(&self, trace_id: &str, rating: Option<Rating>, note: Option<String>) -> Result<(), Failure> {
        let all = self.runtime.block_on(self.store.feedback_of(trace_id))?;
        // What was said before may be dated ahead of this clock, and would still count.
        let before = all.iter().rev().find(|known| known.author == self.author);
        let created_at = Feedback::time_after(before, SystemClock.now());
        let feedback = Feedback {
            trace_id: trace_id.to_owned(),
            author: self.author.clone(),
            rating,
            note,
            source: "review".to_owned(),
            created_at,
        };
        let stored = self.runtime.block_on(self.store.add_feedback(std::slice::from_ref(&feedback)));
        stored.map(|_| ()).map_err(Failure::from)
    }
}
