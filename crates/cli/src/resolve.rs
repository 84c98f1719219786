//! From flags to settings, and to the lock that an edit of the project takes.

use std::path::PathBuf;

use karat_project::EditLock;
use karat_workflows::settings::Settings;

use crate::args::ConfigArgs;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;

pub(crate) fn resolve_settings(
    args: &ConfigArgs,
    paths: &[PathBuf],
    environment: &Environment,
    printer: &Printer,
) -> Result<Settings, Failure> {
    Ok(Settings::resolve(&args.flags(), paths, &environment.process, &printer.redactor, printer)?)
}

/// Waits for other edits of the project; warns where its folder cannot be locked.
pub(crate) fn edit_lock(settings: &Settings, printer: &Printer) -> Result<EditLock, Failure> {
    let lock = EditLock::take(&settings.layout)?;
    if let Some(error) = &lock.unavailable {
        printer.warn(&format!("cannot lock {} ({error}): make one edit at a time", settings.layout.root.display()));
    }
    Ok(lock)
}
