//! Prompts in the terminal.

use std::io::{self, IsTerminal};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use inquire::ui::RenderConfig;
use karat_core::exit::ExitStatus;

use crate::failure::Failure;
use crate::interrupt::exit_now;

/// Whether a prompt is waiting for an answer; meanwhile nothing polls the cancellation token.
static IS_PROMPTING: AtomicBool = AtomicBool::new(false);

/// How often a prompt checks whether its terminal was closed.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Why a prompt has no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// Esc was pressed.
    Cancelled,
    /// Ctrl-C was pressed or the terminal was closed.
    Interrupted,
    Failed(String),
}

impl From<NoAnswer> for Failure {
    fn from(no_answer: NoAnswer) -> Self {
        match no_answer {
            NoAnswer::Cancelled => Failure::reported(ExitStatus::Success),
            NoAnswer::Interrupted => Failure::reported(ExitStatus::Interrupted),
            NoAnswer::Failed(error) => Failure::invalid(format!("cannot prompt: {error}"))
                .hint("pass --approve-all to skip prompts, or --dry-run to print the drafts"),
        }
    }
}

/// Sets whether prompts are coloured.
pub(crate) fn set_colors(is_colored: bool) {
    let config = if is_colored { RenderConfig::default_colored() } else { RenderConfig::empty() };
    inquire::set_global_render_config(config);
}

/// Whether a prompt is waiting for an answer.
pub(crate) fn is_asking() -> bool {
    IS_PROMPTING.load(Ordering::SeqCst)
}

/// Asks for a line of text.
pub(crate) fn line(question: &str) -> Result<String, NoAnswer> {
    prompt(|| inquire::Text::new(question).prompt())
}

/// Asks until the answer is yes or no.
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

/// Shows a prompt of `inquire` and waits for the answer.
pub(crate) fn prompt<T>(show: impl FnOnce() -> inquire::error::InquireResult<T>) -> Result<T, NoAnswer> {
    exit_when_terminal_closes();
    IS_PROMPTING.store(true, Ordering::SeqCst);
    let answer = show();
    IS_PROMPTING.store(false, Ordering::SeqCst);
    answer.map_err(|error| match error {
        inquire::InquireError::OperationCanceled => NoAnswer::Cancelled,
        // Reading from a closed terminal fails.
        inquire::InquireError::OperationInterrupted | inquire::InquireError::IO(_) => NoAnswer::Interrupted,
        other => NoAnswer::Failed(other.to_string()),
    })
}

/// Ends the program if the terminal of a prompt is closed. Without this, reading from it would repeat forever, since
/// SIGHUP is sent only to programs for which it is the controlling terminal.
fn exit_when_terminal_closes() {
    static STARTED: Once = Once::new();
    if !io::stdin().is_terminal() {
        return;
    }
    STARTED.call_once(|| {
        let watch = || {
            loop {
                std::thread::sleep(POLL_INTERVAL);
                if is_asking() && !io::stdin().is_terminal() {
                    exit_now();
                }
            }
        };
        std::thread::Builder::new().spawn(watch).ok();
    });
}
