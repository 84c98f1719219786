//! Paths of a project.

use std::path::{Path, PathBuf};

/// The folders and files of a project.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The folder of `karat.json`, or the current folder.
    pub root: PathBuf,
    /// Displayed paths are relative to this folder.
    pub current_dir: PathBuf,
    pub output_dir: PathBuf,
    pub recordings: PathBuf,
    pub overlap_map: PathBuf,
}

impl Layout {
    /// Returns a path for messages, relative to the current folder.
    pub fn display_path(&self, path: &Path) -> String {
        path.strip_prefix(&self.current_dir).unwrap_or(path).display().to_string()
    }
}

/// A path from the settings.
#[derive(Debug, Clone)]
pub struct PathSetting {
    pub path: PathBuf,
    /// Set by the user rather than a default; the path must exist then.
    pub is_explicit: bool,
}

/// The results that a run is compared with.
#[derive(Debug, Clone)]
pub enum Baseline {
    /// The id or name of a run in the output folder.
    Run(String),
    /// A result file, a folder of results, or else the name of a run.
    Named { name: String, path: PathBuf },
}
