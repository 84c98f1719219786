//! A registry in the project's files: which reader a path is for.

use std::path::Path;

use karat_core::registry::Registry;

use crate::json::{RegistryError, read_json};

/// Reads the tools that a file or folder declares; places are named relative to `base`.
///
/// What cannot be read of a source is a gap of the registry, beside the tools that could. An error means that there is
/// nothing to read.
pub fn read_path(path: &Path, base: &Path) -> Result<Registry, RegistryError> {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("json") => read_json(&read_text(path)?),
        _ => Err(RegistryError::File(format!("{} is no kind of file that karat reads tools from", shown(path, base)))),
    }
}

fn read_text(path: &Path) -> Result<String, RegistryError> {
    let text = std::fs::read_to_string(path).map_err(|error| RegistryError::File(error.to_string()))?;
    // A byte order mark says nothing in UTF-8, but some editors write one.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Returns a path as a person would name it who is at `base`.
pub(crate) fn shown(path: &Path, base: &Path) -> String {
    path.strip_prefix(base).unwrap_or(path).display().to_string()
}
