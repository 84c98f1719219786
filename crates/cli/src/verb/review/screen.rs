//! The terminal as a screen, which is given back as it was, whatever happens.

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

use crate::failure::Failure;
use crate::interrupt::{Interrupts, ON_ALTERNATE_SCREEN};
use crate::printer::Printer;

/// How often it is looked whether the program was asked to stop.
const GLANCE: Duration = Duration::from_millis(100);

/// What a person did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    Key(KeyCode),
    /// Text that came at once. It is never taken for keys.
    Pasted(String),
    Resized,
    /// Ctrl-C, the wish that the program ends, or a terminal that is gone.
    Interrupted,
}

/// The screen, as long as it is ours.
pub(super) struct Screen<'p> {
    printer: &'p Printer,
    events: Receiver<io::Result<Event>>,
}

impl<'p> Screen<'p> {
    pub(super) fn enter(printer: &'p Printer) -> Result<Self, Failure> {
        enable_raw_mode().map_err(|error| no_screen(&error))?;
        // From here on it is given back.
        let screen = Self { printer, events: listen() };
        let mut text = String::new();
        add(&mut text, EnterAlternateScreen);
        add(&mut text, EnableBracketedPaste);
        ON_ALTERNATE_SCREEN.store(true, Ordering::SeqCst);
        screen.printer.draw(&text).map_err(|error| no_screen(&error))?;
        Ok(screen)
    }

    /// Shows these rows, and the cursor where there is one.
    pub(super) fn draw(&self, rows: &[String], cursor: Option<(u16, u16)>) {
        let mut text = String::new();
        add(&mut text, BeginSynchronizedUpdate);
        add(&mut text, Hide);
        for (row, line) in (0_u16..).zip(rows) {
            add(&mut text, MoveTo(0, row));
            text.push_str(line);
            add(&mut text, Clear(ClearType::UntilNewLine));
        }
        add(&mut text, Clear(ClearType::FromCursorDown));
        if let Some((column, row)) = cursor {
            add(&mut text, MoveTo(column, row));
            add(&mut text, Show);
        }
        add(&mut text, EndSynchronizedUpdate);
        // That the terminal is gone is told by the next input.
        self.printer.draw(&text).ok();
    }

    /// Waits until the person does something.
    pub(super) fn input(&self, interrupts: &Interrupts) -> Input {
        loop {
            if interrupts.were_asked() {
                return Input::Interrupted;
            }
            match self.events.recv_timeout(GLANCE) {
                Ok(Ok(Event::Key(key))) if key.kind != KeyEventKind::Release => {
                    if let Some(input) = pressed(key) {
                        return input;
                    }
                }
                Ok(Ok(Event::Paste(text))) => return Input::Pasted(text),
                Ok(Ok(Event::Resize(..))) => return Input::Resized,
                Ok(Ok(_)) => {}
                // A terminal that is gone says nothing more, and would be waited for for ever.
                Err(RecvTimeoutError::Timeout) if io::stdin().is_terminal() => {}
                Ok(Err(_)) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return Input::Interrupted;
                }
            }
        }
    }
}

/// Reads what is typed, in a thread of its own: once the terminal is gone, `read` tries again without end and never
/// comes back, and nobody but that thread may wait for it.
fn listen() -> Receiver<io::Result<Event>> {
    let (heard, events) = channel();
    std::thread::spawn(move || {
        loop {
            let event = read();
            let is_over = event.is_err();
            if heard.send(event).is_err() || is_over {
                return;
            }
        }
    });
    events
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        let mut text = String::new();
        add(&mut text, DisableBracketedPaste);
        add(&mut text, Show);
        add(&mut text, LeaveAlternateScreen);
        // Nobody is left to tell when the terminal is gone.
        self.printer.draw(&text).ok();
        ON_ALTERNATE_SCREEN.store(false, Ordering::SeqCst);
        disable_raw_mode().ok();
    }
}

/// Returns how many columns and rows the terminal has.
pub(super) fn dimensions() -> (usize, usize) {
    let (columns, rows) = size().unwrap_or((80, 24));
    // Some terminals do not know, and say 0.
    let known = |number: u16, otherwise: usize| if number == 0 { otherwise } else { usize::from(number) };
    (known(columns, 80), known(rows, 24))
}

/// Reads a key. One with Ctrl or Alt is for nothing here, but for Ctrl-C.
fn pressed(key: KeyEvent) -> Option<Input> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return (key.code == KeyCode::Char('c')).then_some(Input::Interrupted);
    }
    (!key.modifiers.contains(KeyModifiers::ALT)).then_some(Input::Key(key.code))
}

fn add(text: &mut String, command: impl Command) {
    // A text takes everything.
    command.write_ansi(text).ok();
}

fn no_screen(error: &io::Error) -> Failure {
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
        assert_eq!(pressed(KeyEvent::new(KeyCode::Char(letter), modifiers)), expected);
    }
}
