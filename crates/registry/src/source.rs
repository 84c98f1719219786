//! A registry in the project's files: which reader a path is for.

use std::path::{Path, PathBuf};

use karat_core::registry::Registry;

use crate::javascript;
use crate::json::{RegistryError, read_json};

/// Reads the tools that a file or folder declares; places are named relative to `base`.
///
/// What cannot be read of a source is a gap of the registry, beside the tools that could. An error means that there is
/// nothing to read.
pub fn read_path(path: &Path, base: &Path) -> Result<Registry, RegistryError> {
    if path.is_dir() {
        return read_folder(path, base);
    }
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("json") => read_json(&read_text(path)?),
        _ if javascript::is_source(path) => {
            std::fs::metadata(path).map_err(|error| RegistryError::File(error.to_string()))?;
            javascript::read_files(&[path.to_owned()], base)
        }
        _ => Err(RegistryError::File(format!("{} is no kind of file that karat reads tools from", shown(path, base)))),
    }
}

/// Reads the tool files of a folder and the folders in it.
fn read_folder(path: &Path, base: &Path) -> Result<Registry, RegistryError> {
    let files = files_below(path)?;
    let tools: Vec<PathBuf> = files.into_iter().filter(|file| javascript::is_tool_file(file)).collect();
    if tools.is_empty() {
        let what = format!("{} holds no tool files (*.tool.ts, *.tool.js)", shown(path, base));
        return Err(RegistryError::File(what));
    }
    javascript::read_files(&tools, base)
}

/// Lists the files below a folder in a fixed order, without those of packages and hidden folders.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>, RegistryError> {
    let unreadable = |error: std::io::Error| RegistryError::File(error.to_string());
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let name = entry.file_name();
            // A link to a folder could lead back to where it is.
            let kind = entry.file_type().map_err(unreadable)?;
            if kind.is_dir() {
                if name != "node_modules" && !name.to_string_lossy().starts_with('.') {
                    folders.push(entry.path());
                }
            } else if kind.is_file() || entry.path().is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
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
