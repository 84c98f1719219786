//! The source files of a project.

use std::path::{Path, PathBuf};

use crate::json::RegistryError;

/// How deep a folder is searched.
const MAX_FOLDER_DEPTH: usize = 32;

/// Folders that hold no tools of the project, or copies of them that were compiled.
const FOREIGN_FOLDERS: &str =
    "__pycache__ node_modules site-packages venv test tests __tests__ dist build out coverage";

/// Endings of JavaScript and TypeScript sources.
pub(crate) const SCRIPT_EXTENSIONS: [&str; 8] = ["ts", "tsx", "mts", "cts", "js", "jsx", "mjs", "cjs"];

pub(crate) fn is_script(path: &Path) -> bool {
    SCRIPT_EXTENSIONS.contains(&extension(path).as_str())
}

pub(crate) fn extension(path: &Path) -> String {
    path.extension().map(|extension| extension.to_string_lossy().to_lowercase()).unwrap_or_default()
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

/// Returns a path as a person would name it who is at `base`.
pub(crate) fn shown(path: &Path, base: &Path) -> String {
    path.strip_prefix(base).unwrap_or(path).display().to_string()
}
