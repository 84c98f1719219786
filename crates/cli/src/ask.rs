//! Questions to a person at the terminal.

use std::sync::atomic::{AtomicBool, Ordering};

use karat_core::exit::ExitStatus;

use crate::failure::Failure;

/// Whether a question waits for its answer; then nothing else listens to the wish that the program ends.
static IS_ASKING: AtomicBool = AtomicBool::new(false);

/// What a person did in place of an answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// Pressed Esc: leaves for now.
    Left,
    /// Pressed Ctrl-C, or closed the terminal.
    Interrupted,
    /// The terminal cannot be asked.
    Broken(String),
}

impl From<NoAnswer> for Failure {
    fn from(no_answer: NoAnswer) -> Self {
        match no_answer {
            NoAnswer::Left => Failure::reported(ExitStatus::Success),
            NoAnswer::Interrupted => Failure::reported(ExitStatus::Interrupted),
            NoAnswer::Broken(why) => Failure::invalid(format!("cannot ask: {why}"))
                .hint("--approve-all asks nothing, --dry-run prints the drafts"),
        }
    }
}

/// Tells whether a question waits for its answer.
pub(crate) fn is_asking() -> bool {
    IS_ASKING.load(Ordering::SeqCst)
}

/// Asks for a line.
pub(crate) fn line(question: &str) -> Result<String, NoAnswer> {
    asked(|| inquire::Text::new(question).prompt())
}

/// Asks for yes or no, until it is one of them.
pub(crate) fn yes_or_no(question: &str, default: bool) -> Result<bool, NoAnswer> {
    let mut question = format!("{question} ({})", if default { "Y/n" } else { "y/N" });
    loop {
        match line(&question)?.trim().to_lowercase().as_str() {
            "" => return Ok(default),
            "y" | "yes" => return Ok(true),
            "n" | "no" => return Ok(false),
            _ => "Yes or no? (y/n)".clone_into(&mut question),
        }
    }
}

fn asked<T>(prompt: impl FnOnce() -> inquire::error::InquireResult<T>) -> Result<T, NoAnswer> {
    IS_ASKING.store(true, Ordering::SeqCst);
    let answer = prompt();
    IS_ASKING.store(false, Ordering::SeqCst);
    answer.map_err(|error| match error {
        inquire::InquireError::OperationCanceled => NoAnswer::Left,
        // A terminal that was closed cannot be read from.
        inquire::InquireError::OperationInterrupted | inquire::InquireError::IO(_) => NoAnswer::Interrupted,
        other => NoAnswer::Broken(other.to_string()),
    })
}
