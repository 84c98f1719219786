//! Reads tools from a file or folder of the project.

use std::path::{Path, PathBuf};

use karat_cases::registry::Registry;

use crate::files::{display_path, extension, files_below, files_within, is_script, is_source};
use crate::json::{RegistryError, read_json};
use crate::reader::read_sources;

/// Reads the tools that a file or folder defines; locations are relative to `base`.
///
/// Parts that cannot be read are gaps in the registry. Fails if there are neither tools nor gaps.
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
        Some("json") => read_json(&read_text(path)?, &display_path(path, base)),
        Some("py") => require_tools(read_sources(&[path.to_path_buf()], base)?, &[path.to_path_buf()], base),
        _ if is_script(path) => require_tools(read_sources(&[path.to_path_buf()], base)?, &[path.to_path_buf()], base),
        _ => Err(RegistryError::UnsupportedFile { path: display_path(path, base) }),
    }
}

/// Reads the tools that source files define; locations are relative to `base`. There may be none.
pub fn read_files(files: &[PathBuf], base: &Path) -> Result<Registry, RegistryError> {
    read_sources(files, base)
}

/// Returns the sorted files up to `max_depth` folders below a folder that may define tools, by their names. Their
/// contents are not read.
pub fn find_tool_files(folder: &Path, max_depth: usize) -> Result<Vec<PathBuf>, RegistryError> {
    files_within(folder, max_depth, &|name| is_source(name) || extension(Path::new(name)) == "json")
}

fn read_folder(folder: &Path, base: &Path) -> Result<Registry, RegistryError> {
    let files = files_below(folder, &is_source)?;
    if files.is_empty() {
        return Err(RegistryError::EmptyFolder { path: display_path(folder, base) });
    }
    require_tools(read_sources(&files, base)?, &files, base)
}

/// Fails if a registry has neither tools nor gaps.
fn require_tools(registry: Registry, files: &[PathBuf], base: &Path) -> Result<Registry, RegistryError> {
    if registry.tools().is_empty() && registry.gaps().is_empty() {
        let files = files.iter().map(|file| display_path(file, base)).collect();
        return Err(RegistryError::NoTools { files });
    }
    Ok(registry)
}

fn read_text(path: &Path) -> Result<String, RegistryError> {
    let text = std::fs::read_to_string(path).map_err(|error| RegistryError::File(error.to_string()))?;
    // Some editors write a byte order mark.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
