//! The terminal in raw mode, restored on drop.

use std::io::{self, IsTerminal};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use crossterm::Command;
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, read,
};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode, size,
};
use karat_workflows::CancellationToken;

use crate::failure::Failure;
use crate::interrupt::ON_ALTERNATE_SCREEN;
use crate::printer::Printer;

/// How often the cancellation token is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Input from the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    Key(KeyCode),
    /// Pasted text, whose letters are not keys.
    Pasted(String),
    Resized,
    /// Ctrl-C, a signal, or a closed terminal.
    Interrupted,
}

/// The alternate screen in raw mode.
pub(super) struct RawTerminal<'p> {
    printer: &'p Printer,
    events: Receiver<io::Result<Event>>,
}

impl<'p> RawTerminal<'p> {
    pub(super) fn enter(printer: &'p Printer) -> Result<Self, Failure> {
        enable_raw_mode().map_err(|error| draw_failure(&error))?;
        // From here on, drop restores the terminal.
        let terminal = Self { printer, events: spawn_reader() };
        let mut text = String::new();
        push_command(&mut text, EnterAlternateScreen);
        push_command(&mut text, EnableBracketedPaste);
        ON_ALTERNATE_SCREEN.store(true, Ordering::SeqCst);
        terminal.printer.draw(&text).map_err(|error| draw_failure(&error))?;
        Ok(terminal)
    }

    /// Draws the rows, and the cursor if there is one.
    pub(super) fn draw(&self, rows: &[String], cursor: Option<(u16, u16)>) {
        let mut text = String::new();
        push_command(&mut text, BeginSynchronizedUpdate);
        push_command(&mut text, Hide);
        for (row, line) in (0_u16..).zip(rows) {
            push_command(&mut text, MoveTo(0, row));
            text.push_str(line);
            push_command(&mut text, Clear(ClearType::UntilNewLine));
        }
        push_command(&mut text, Clear(ClearType::FromCursorDown));
        if let Some((column, row)) = cursor {
            push_command(&mut text, MoveTo(column, row));
            push_command(&mut text, Show);
        }
        push_command(&mut text, EndSynchronizedUpdate);
        // If the terminal is closed, the next read fails.
        self.printer.draw(&text).ok();
    }

    /// Waits for input.
    pub(super) fn input(&self, cancel: &CancellationToken) -> Input {
        loop {
            if cancel.is_cancelled() {
                return Input::Interrupted;
            }
            match self.events.recv_timeout(POLL_INTERVAL) {
                Ok(Ok(Event::Key(key))) if key.kind != KeyEventKind::Release => {
                    if let Some(input) = key_input(key) {
                        return input;
                    }
                }
                Ok(Ok(Event::Paste(text))) => return Input::Pasted(text),
                Ok(Ok(Event::Resize(..))) => return Input::Resized,
                Ok(Ok(_)) => {}
                // A closed terminal sends no events.
                Err(RecvTimeoutError::Timeout) if io::stdin().is_terminal() => {}
                Ok(Err(_)) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return Input::Interrupted;
                }
            }
        }
    }
}

/// Reads events in a separate thread: after the terminal is closed, `read` never returns.
fn spawn_reader() -> Receiver<io::Result<Event>> {
    let (sender, events) = channel();
    std::thread::spawn(move || {
        loop {
            let event = read();
            let is_closed = event.is_err();
            if sender.send(event).is_err() || is_closed {
                return;
            }
        }
    });
    events
}

impl Drop for RawTerminal<'_> {
    fn drop(&mut self) {
        let mut text = String::new();
        push_command(&mut text, DisableBracketedPaste);
        push_command(&mut text, Show);
        push_command(&mut text, LeaveAlternateScreen);
        // Without a terminal there is nothing to restore.
        self.printer.draw(&text).ok();
        ON_ALTERNATE_SCREEN.store(false, Ordering::SeqCst);
        disable_raw_mode().ok();
    }
}

/// Returns the columns and rows of the terminal.
pub(super) fn dimensions() -> (usize, usize) {
    let (columns, rows) = size().unwrap_or((80, 24));
    // Some terminals report 0.
    let or_default = |number: u16, default: usize| if number == 0 { default } else { usize::from(number) };
    (or_default(columns, 80), or_default(rows, 24))
}

/// Converts a key. Keys with Ctrl or Alt are ignored, except Ctrl-C.
fn key_input(key: KeyEvent) -> Option<Input> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return (key.code == KeyCode::Char('c')).then_some(Input::Interrupted);
    }
    (!key.modifiers.contains(KeyModifiers::ALT)).then_some(Input::Key(key.code))
}

fn push_command(text: &mut String, command: impl Command) {
    // Writing to a string never fails.
    command.write_ansi(text).ok();
}

fn draw_failure(error: &io::Error) -> Failure {
    Failure::errored(format!("cannot draw on the terminal: {error}"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(KeyModifiers::NONE, 'c', Some(Input::Key(KeyCode::Char('c'))))]
    #[case(KeyModifiers::SHIFT, 'G', Some(Input::Key(KeyCode::Char('G'))))]
    #[case(KeyModifiers::CONTROL, 'c', Some(Input::Interrupted))]
    #[case(KeyModifiers::CONTROL, 'g', None)]
    #[case(KeyModifiers::ALT, 'c', None)]
    #[case(KeyModifiers::ALT, 'g', None)]
    fn only_ctrl_c_interrupts(#[case] modifiers: KeyModifiers, #[case] letter: char, #[case] expected: Option<Input>) {
        assert_eq!(key_input(KeyEvent::new(KeyCode::Char(letter), modifiers)), expected);
    }
}
