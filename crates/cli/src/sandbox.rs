//! Opens the sandbox that eval functions run in, for the verbs that need it.

use std::path::PathBuf;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use karat_core::judgement::{Limits, LowerLimits, TooLarge};
use karat_sandbox::{Guest, Isolation, Sandbox, SandboxError, Stage};

use crate::args::{IsolationName, LimitArgs};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;

/// More threads than any machine has processors are a mistake.
const MOST_JOBS: usize = 1024;

/// Gets Python ready; where it has to be compiled for this machine first, says so.
pub(crate) fn open_sandbox(environment: &Environment, printer: &Printer) -> Result<Sandbox, Failure> {
    let guest = find_guest(environment)?;
    let cache = cache_folder(environment)?;
    let mut spinner = None;
    let opened = Sandbox::open(&guest, &cache, &mut |stage| {
        spinner = tell(stage, environment, printer);
    });
    if let Some(spinner) = spinner {
        spinner.finish_and_clear();
        printer.show_above(None);
    }
    opened.map_err(sandbox_failure)
}

/// Takes the Python that the variable names, or else the program's own.
pub(crate) fn find_guest(environment: &Environment) -> Result<Guest, Failure> {
    Guest::find(environment.guest.as_deref()).map_err(|error| {
        let failure = sandbox_failure(error);
        match &environment.guest {
            Some(_) => Failure { message: format!("KARAT_GUEST: {}", failure.message), ..failure },
            None => failure,
        }
    })
}

/// Returns karat's folder in the user's cache.
pub(crate) fn cache_folder(environment: &Environment) -> Result<PathBuf, Failure> {
    environment.cache_dir.clone().ok_or_else(|| {
        Failure::invalid("there is no folder to keep compiled Python in").hint("name one with KARAT_CACHE_DIR")
    })
}

fn tell(stage: Stage, environment: &Environment, printer: &Printer) -> Option<ProgressBar> {
    let text = match stage {
        Stage::Compiling => "preparing Python for this machine (once)",
        Stage::Renewing => "preparing Python for this machine again: what was kept is damaged or of another version",
    };
    let text = format!("{text}{}", printer.symbols.ellipsis);
    if !environment.stderr_is_terminal || environment.ci {
        printer.note(&text);
        return None;
    }
    let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::default_spinner();
    spinner.set_style(if printer.symbols.ascii { style.tick_chars("|/-\\ ") } else { style });
    spinner.set_message(text);
    spinner.enable_steady_tick(Duration::from_millis(100));
    printer.show_above(Some(spinner.clone()));
    Some(spinner)
}

/// Says why there is no sandbox; nobody's function is to blame.
#[expect(clippy::needless_pass_by_value, reason = "it is what map_err hands over")]
pub(crate) fn sandbox_failure(error: SandboxError) -> Failure {
    let failure = match &error {
        SandboxError::Unreadable { .. } | SandboxError::NotAGuest { .. } => Failure::invalid(error.to_string()),
        _ => Failure::errored(error.to_string()),
    };
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

impl LimitArgs {
    /// Returns what functions may use: flags rank above the configuration, and neither gives more than the largest.
    pub(crate) fn limits(&self, configured: LowerLimits) -> Result<Limits, Failure> {
        let flags = LowerLimits { time_ms: self.limit_ms, memory_mb: self.limit_mb };
        flags.or(configured).limits().map_err(|too_large| {
            Failure::invalid(match too_large {
                TooLarge::TimeMs(largest) => format!("--limit-ms must be from 1 to {largest}"),
                TooLarge::MemoryMb(largest) => format!("--limit-mb must be from 1 to {largest}"),
            })
        })
    }

    pub(crate) fn isolation(&self) -> Isolation {
        match self.isolation {
            IsolationName::Namespace => Isolation::Namespace,
            IsolationName::Strict => Isolation::Strict,
        }
    }

    pub(crate) fn jobs(&self) -> Result<usize, Failure> {
        let Some(jobs) = self.jobs else {
            return Ok(std::thread::available_parallelism().map_or(1, usize::from).min(MOST_JOBS));
        };
        let jobs = usize::try_from(jobs).ok().filter(|jobs| (1..=MOST_JOBS).contains(jobs));
        jobs.ok_or_else(|| Failure::invalid(format!("--jobs must be from 1 to {MOST_JOBS}")))
    }
}
