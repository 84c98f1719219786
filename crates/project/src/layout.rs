//! Where the files of a project are.

use std::path::{Path, PathBuf};

/// The folders and files of a project that discovery must know.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The folder of `karat.json`, or the current one.
    pub root: PathBuf,
    /// The current folder, which shown paths are relative to.
    pub here: PathBuf,
    pub output_dir: PathBuf,
    pub recordings: PathBuf,
    pub overlap_map: PathBuf,
}

impl Layout {
    /// Returns a path as the user would type it.
    pub fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.here).unwrap_or(path).display().to_string()
    }
}

/// A path, and whether it was configured: a configured one must exist.
#[derive(Debug, Clone)]
pub struct PathSetting {
    pub path: PathBuf,
    pub given: bool,
}

/// The results that a run is compared with.
#[derive(Debug, Clone)]
pub enum Baseline {
    RunId(String),
    File(PathBuf),
}
