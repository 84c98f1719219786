//! Gets the sandbox ready in which Python eval functions run.

use std::path::PathBuf;

use karat_sandbox::{Guest, Sandbox, SandboxError, Stage};

use crate::environment::Variables;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::Settings;

/// Opens the sandbox. The first time on a machine takes a while, of which the person is told.
pub(crate) fn open_sandbox(settings: &Settings, printer: &Printer) -> Result<Sandbox, Failure> {
    let variables = &settings.variables;
    let named = variables.get("KARAT_GUEST").filter(|path| !path.is_empty()).map(|path| settings.here.join(path));
    let guest = Guest::find(named.as_deref()).map_err(failure)?;
    let cache = cache_folder(variables).ok_or_else(|| {
        Failure::errored("nothing says where the user's cache is").hint("set XDG_CACHE_HOME to a folder of your own")
    })?;
    let mut told = |stage| {
        printer.note(match stage {
            Stage::Compiling => "preparing Python for this machine, once: this takes some seconds",
            Stage::Renewing => {
                "preparing Python for this machine again: what was kept is damaged, or of another version"
            }
        });
    };
    Sandbox::open(&guest, &cache, &mut told).map_err(failure)
}

fn failure(error: SandboxError) -> Failure {
    match error {
        SandboxError::NoGuest { .. } => {
            Failure::errored(error.to_string()).hint("KARAT_GUEST can name a guest that was built elsewhere")
        }
        SandboxError::Unreadable { .. } => Failure::invalid(error.to_string()),
        other => Failure::errored(other.to_string()),
    }
}

/// Returns karat's folder in the user's cache.
fn cache_folder(variables: &Variables) -> Option<PathBuf> {
    let folder = |name: &str| variables.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = |below: &str| folder("HOME").map(|home| home.join(below));
    let cache = folder("XDG_CACHE_HOME").or_else(|| {
        if cfg!(windows) {
            folder("LOCALAPPDATA")
        } else if cfg!(target_os = "macos") {
            home("Library/Caches")
        } else {
            home(".cache")
        }
    });
    cache.map(|cache| cache.join("karat"))
}
