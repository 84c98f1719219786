//! Opens the sandbox that eval functions run in, for the verbs that need it.

use std::path::PathBuf;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget};
use karat_sandbox::{Guest, Sandbox, SandboxError, Stage};

use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;

/// Gets Python ready; where it has to be compiled for this machine first, says so.
pub(crate) fn open_sandbox(environment: &Environment, printer: &Printer) -> Result<Sandbox, Failure> {
    let guest = Guest::find(environment.guest.as_deref()).map_err(sandbox_failure)?;
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
    if printer.symbols.ascii {
        spinner.set_style(indicatif::ProgressStyle::default_spinner().tick_chars("|/-\\ "));
    }
    spinner.set_message(text);
    spinner.enable_steady_tick(Duration::from_millis(100));
    printer.show_above(Some(spinner.clone()));
    Some(spinner)
}

/// Says why there is no sandbox; nobody's function is to blame.
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
