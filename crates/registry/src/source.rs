//! A registry in the project's files: which reader a path is for.

use std::path::{Path, PathBuf};

use karat_core::registry::Registry;

use crate::json::{RegistryError, read_json};
use crate::reader::{is_script, read_sources};

/// How deep a folder is searched.
const MAX_FOLDER_DEPTH: usize = 32;

/// Folders that hold no tools of the project, or copies of them that were compiled.
const FOREIGN_FOLDERS: &str =
    "__pycache__ node_modules site-packages venv test tests __tests__ dist build out coverage";

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

/// Tells whether a file of a folder can define tools: tests and type declarations do not.
pub(crate) fn is_source(name: &str) -> bool {
    let path = Path::new(name);
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().to_lowercase()).unwrap_or_default();
    if path.extension().is_some_and(|extension| extension == "py") {
        return !stem.starts_with("test_") && !stem.ends_with("_test") && stem != "conftest" && stem != "setup";
    }
    let is_other =
        [".test", ".vitest", ".spec", ".d", ".stories", ".config", ".min"].iter().any(|suffix| stem.ends_with(suffix));
    is_script(path) && !is_other
}

/// Refuses a registry without tools where nothing says that there may be some.
fn found(registry: Registry, files: &[PathBuf], base: &Path) -> Result<Registry, RegistryError> {
    if registry.tools().is_empty() && registry.gaps().is_empty() {
        let files = files.iter().map(|file| shown(file, base)).collect();
        return Err(RegistryError::NoTools { files });
    }
    Ok(registry)
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
        if is_folder && depth < MAX_FOLDER_DEPTH && !FOREIGN_FOLDERS.split(' ').any(|foreign| foreign == name) {
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
