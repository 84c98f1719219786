//! A registry in the project's files: which reader a path is for.

use std::path::{Path, PathBuf};

use karat_core::registry::Registry;

use crate::files::{files_below, is_script, is_source, shown};
use crate::json::{RegistryError, read_json};
use crate::reader::read_sources;

/// Reads the tools that a file or folder declares; places are named relative to `base`.
///
/// What cannot be read of a source is a gap of the registry, beside the tools that could. An error means that there is
/// nothing to read.
pub fn read_path(path: &Path, base: &Path) -> Result<Registry, RegistryError> {
    let kind = std::fs::metadata(path).map_err(|error| RegistryError::File(error.to_string()))?;
    if kind.is_dir() {
        return read_folder(path, base);
    }
    if !kind.is_file() {
        return Err(RegistryError::File("it is neither a file nor a folder".to_owned()));
    }
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("json") => read_json(&read_text(path)?, &shown(path, base)),
        Some("py") => found(read_sources(&[path.to_path_buf()], base)?, &[path.to_path_buf()], base),
        _ if is_script(path) => found(read_sources(&[path.to_path_buf()], base)?, &[path.to_path_buf()], base),
        _ => Err(RegistryError::NoKind { path: shown(path, base) }),
    }
}

/// Reads all source files of a folder.
fn read_folder(folder: &Path, base: &Path) -> Result<Registry, RegistryError> {
    let files = files_below(folder, &is_source)?;
    if files.is_empty() {
        return Err(RegistryError::EmptyFolder { path: shown(folder, base) });
    }
    found(read_sources(&files, base)?, &files, base)
}

/// Refuses a registry without tools where nothing says that there may be some.
fn found(registry: Registry, files: &[PathBuf], base: &Path) -> Result<Registry, RegistryError> {
    if registry.tools().is_empty() && registry.gaps().is_empty() {
        let files = files.iter().map(|file| shown(file, base)).collect();
        return Err(RegistryError::NoTools { files });
    }
    Ok(registry)
}

fn read_text(path: &Path) -> Result<String, RegistryError> {
    let text = std::fs::read_to_string(path).map_err(|error| RegistryError::File(error.to_string()))?;
    // A byte order mark says nothing in UTF-8, but some editors write one.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
