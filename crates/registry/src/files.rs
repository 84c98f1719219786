//! The source files of a project.

use std::path::{Path, PathBuf};

use crate::json::RegistryError;

const MAX_FOLDER_DEPTH: usize = 32;

/// Folders of dependencies, tests and build output.
const SKIPPED_FOLDERS: &str =
    "__pycache__ node_modules site-packages venv test tests __tests__ dist build out coverage";

/// Extensions of JavaScript and TypeScript sources.
pub(crate) const SCRIPT_EXTENSIONS: [&str; 8] = ["ts", "tsx", "mts", "cts", "js", "jsx", "mjs", "cjs"];

pub(crate) fn is_script(path: &Path) -> bool {
    SCRIPT_EXTENSIONS.contains(&extension(path).as_str())
}

pub(crate) fn extension(path: &Path) -> String {
    path.extension().map(|extension| extension.to_string_lossy().to_lowercase()).unwrap_or_default()
}

/// Whether a file can define tools, by its name: tests and type declarations cannot.
pub(crate) fn is_source(name: &str) -> bool {
    let path = Path::new(name);
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().to_lowercase()).unwrap_or_default();
    if path.extension().is_some_and(|extension| extension == "py") {
        return !stem.starts_with("test_") && !stem.ends_with("_test") && stem != "conftest" && stem != "setup";
    }
    let is_excluded =
        [".test", ".vitest", ".spec", ".d", ".stories", ".config", ".min"].iter().any(|suffix| stem.ends_with(suffix));
    is_script(path) && !is_excluded
}

/// Returns the sorted files below a folder whose names match. Skips hidden files and [`SKIPPED_FOLDERS`].
pub(crate) fn files_below(folder: &Path, matches: &dyn Fn(&str) -> bool) -> Result<Vec<PathBuf>, RegistryError> {
    files_within(folder, MAX_FOLDER_DEPTH, matches)
}

/// Like [`files_below`], without folders that are nested deeper than `max_depth`.
pub(crate) fn files_within(
    folder: &Path,
    max_depth: usize,
    matches: &dyn Fn(&str) -> bool,
) -> Result<Vec<PathBuf>, RegistryError> {
    let mut files = Vec::new();
    collect_files(folder, matches, max_depth, &mut files).map_err(|error| RegistryError::File(error.to_string()))?;
    files.sort();
    Ok(files)
}

fn collect_files(
    folder: &Path,
    matches: &dyn Fn(&str) -> bool,
    max_depth: usize,
    files: &mut Vec<PathBuf>,
) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Symlinks to folders are not followed: they may form cycles.
        let is_folder = entry.file_type()?.is_dir();
        if name.starts_with('.') {
            continue;
        }
        if is_folder && max_depth > 0 && !SKIPPED_FOLDERS.split(' ').any(|skipped| skipped == name) {
            collect_files(&entry.path(), matches, max_depth - 1, files)?;
        } else if !is_folder && matches(&name) && entry.path().is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// Returns a path for messages, relative to `base`.
pub(crate) fn display_path(path: &Path, base: &Path) -> String {
    path.strip_prefix(base).unwrap_or(path).display().to_string()
}
