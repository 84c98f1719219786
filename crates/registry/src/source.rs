//! A registry in the project's files: which reader a path is for.

use std::path::{Path, PathBuf};

use karat_core::registry::Registry;

use crate::javascript;
use crate::json::{RegistryError, read_json};
use crate::python;

/// How deep a folder is searched.
const DEEPEST_FOLDER: usize = 32;

/// Folders that hold no tools of the project, or copies of them that were compiled.
const FOREIGN_FOLDERS: [&str; 10] =
    ["__pycache__", "node_modules", "site-packages", "venv", "tests", "__tests__", "dist", "build", "out", "coverage"];

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
        Some("py") => Ok(python::read_modules(&[path.to_path_buf()], base)),
        _ if javascript::is_source(path) => javascript::read_files(&[path.to_path_buf()], base),
        _ => Err(RegistryError::NoKind { path: shown(path, base) }),
    }
}

/// Reads all sources of a folder that can declare tools, each kind with its reader.
fn read_folder(folder: &Path, base: &Path) -> Result<Registry, RegistryError> {
    let is_python = |name: &str| {
        let stem = name.strip_suffix(".py");
        stem.is_some_and(|stem| !stem.starts_with("test_") && !stem.ends_with("_test") && stem != "conftest")
    };
    let python = files_below(folder, &is_python)?;
    let javascript = files_below(folder, &|name| javascript::is_tool_file(Path::new(name)))?;
    match (javascript.is_empty(), python.is_empty()) {
        (true, true) => Err(RegistryError::EmptyFolder { path: shown(folder, base) }),
        (true, false) => Ok(python::read_modules(&python, base)),
        (false, true) => javascript::read_files(&javascript, base),
        (false, false) => {
            let mut registry = javascript::read_files(&javascript, base)?;
            registry.append(python::read_modules(&python, base));
            Ok(registry)
        }
    }
}

/// Returns the files below a folder whose names fit, in a fixed order; what is hidden or foreign is passed over.
pub(crate) fn files_below(folder: &Path, fits: &dyn Fn(&str) -> bool) -> Result<Vec<PathBuf>, RegistryError> {
    let mut files = Vec::new();
    collect_files(folder, fits, 0, &mut files).map_err(|error| RegistryError::File(error.to_string()))?;
    files.sort();
    Ok(files)
}

fn collect_files(
    folder: &Path,
    fits: &dyn Fn(&str) -> bool,
    depth: usize,
    files: &mut Vec<PathBuf>,
) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // A link to a folder may lead in a circle; one to a file may not.
        let is_folder = entry.file_type()?.is_dir();
        if name.starts_with('.') {
            continue;
        }
        if is_folder && depth < DEEPEST_FOLDER && !FOREIGN_FOLDERS.contains(&name.as_str()) {
            collect_files(&entry.path(), fits, depth + 1, files)?;
        } else if !is_folder && fits(&name) && entry.path().is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
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
