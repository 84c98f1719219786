//! Watches the files of a run and finds which cases a change touches.
//!
//! Polls: a project has few files, and no platform-specific events are needed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use karat_project::discover_or_empty;

use crate::functions::find_functions;
use crate::settings::Settings;

const INTERVAL: Duration = Duration::from_millis(300);

/// What a change touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touched {
    /// The tools, the settings, or several kinds of files changed.
    Everything,
    /// These eval files, or their tables, changed.
    EvalFiles(Vec<PathBuf>),
    /// These eval functions changed.
    Functions(Vec<String>),
    /// No case depends on what changed.
    Nothing,
}

/// A change of watched files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Added, changed and removed files.
    pub paths: BTreeSet<PathBuf>,
    pub touched: Touched,
}

/// The state of a file; differs if its contents may have changed.
type Stamp = (Option<SystemTime>, u64);

/// The watched files and their last known state.
pub struct Watch {
    /// The paths of the request.
    paths: Vec<PathBuf>,
    roots: Vec<PathBuf>,
    stamps: BTreeMap<PathBuf, Stamp>,
}

impl Watch {
    /// Starts with the current state of the files.
    pub fn start(paths: &[PathBuf], settings: &Settings) -> Self {
        let mut watch = Self { paths: paths.to_vec(), roots: roots(paths, settings), stamps: BTreeMap::new() };
        watch.stamps = watch.scan(settings);
        watch
    }

    /// Returns the number of watched files.
    pub fn files(&self) -> usize {
        self.stamps.len()
    }

    /// Waits for a change. Returns when no more files change, so that a group of saved files is one change.
    pub async fn changed(&mut self, settings: &Settings) -> Change {
        let mut paths = BTreeSet::new();
        loop {
            tokio::time::sleep(INTERVAL).await;
            let now = self.scan(settings);
            let changed = differences(&self.stamps, &now);
            self.stamps = now;
            if changed.is_empty() && !paths.is_empty() {
                let touched = self.touched(&paths, settings);
                return Change { paths, touched };
            }
            paths.extend(changed);
        }
    }

    fn scan(&self, settings: &Settings) -> BTreeMap<PathBuf, Stamp> {
        let mut stamps = BTreeMap::new();
        self.roots.iter().for_each(|root| scan(root, settings, &mut stamps));
        stamps
    }

    fn touched(&self, changed: &BTreeSet<PathBuf>, settings: &Settings) -> Touched {
        let layout = &settings.layout;
        let eval_files = discover_or_empty(&self.paths, layout, &layout.current_dir).unwrap_or_default();
        let mut files = BTreeSet::new();
        let mut functions = BTreeSet::new();
        for path in changed {
            let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
            if path.starts_with(&settings.eval_functions.path) {
                if extension == "py" {
                    let Some(name) = function_name(path, settings) else { return Touched::Everything };
                    functions.insert(name);
                }
            } else if eval_files.iter().any(|file| file.path == *path) {
                files.insert(path.clone());
            } else if matches!(extension.as_str(), "csv" | "jsonl") {
                let is_table = |file: &&PathBuf| mentions(file, path);
                files.extend(eval_files.iter().map(|file| &file.path).filter(is_table).cloned());
            } else if is_for_all(path, settings) {
                return Touched::Everything;
            }
        }
        match (files.is_empty(), functions.is_empty()) {
            (true, true) => Touched::Nothing,
            (false, true) => Touched::EvalFiles(files.into_iter().collect()),
            (true, false) => Touched::Functions(functions.into_iter().collect()),
            (false, false) => Touched::Everything,
        }
    }
}

/// Whether every case depends on a file: the agent sees all tools, and any case can use a seed.
fn is_for_all(path: &Path, settings: &Settings) -> bool {
    let is_config = config_files(settings).iter().any(|file| file == path);
    is_config || path.starts_with(registry_root(&settings.tool_registry.path, &settings.layout.root))
}

fn config_files(settings: &Settings) -> [PathBuf; 3] {
    let root = &settings.layout.root;
    [root.join("karat.json"), root.join(".env"), settings.seed_manifest.path.clone()]
}

fn roots(paths: &[PathBuf], settings: &Settings) -> Vec<PathBuf> {
    let layout = &settings.layout;
    let mut roots: Vec<PathBuf> = paths.iter().map(|path| without_wildcards(&layout.current_dir.join(path))).collect();
    // Tables are beside their eval files.
    let folders: Vec<PathBuf> =
        roots.iter().filter(|root| root.is_file()).filter_map(|root| root.parent()).map(Path::to_path_buf).collect();
    roots.extend(folders);
    if paths.is_empty() {
        roots.push(layout.root.join("evals"));
    }
    roots.push(settings.eval_functions.path.clone());
    roots.push(registry_root(&settings.tool_registry.path, &layout.root));
    roots.extend(config_files(settings));
    roots
}

/// Returns the folder of a source file, since it imports others; a JSON file or a folder itself.
fn registry_root(registry: &Path, project: &Path) -> PathBuf {
    let is_json = registry.extension().is_some_and(|extension| extension == "json");
    match registry.parent() {
        Some(folder) if registry.is_file() && !is_json && folder != project => folder.to_path_buf(),
        _ => registry.to_path_buf(),
    }
}

/// Returns the longest part of a path before a wildcard.
fn without_wildcards(path: &Path) -> PathBuf {
    if path.exists() {
        return path.to_path_buf();
    }
    let has_wildcard = |part: &std::path::Component<'_>| part.as_os_str().to_string_lossy().contains(['*', '?', '[']);
    path.components().take_while(|part| !has_wildcard(part)).collect()
}

/// Records the state of a file, or of all files in a folder that can matter.
fn scan(path: &Path, settings: &Settings, stamps: &mut BTreeMap<PathBuf, Stamp>) {
    let layout = &settings.layout;
    let Ok(metadata) = path.metadata() else { return };
    if !metadata.is_dir() {
        stamps.insert(path.to_path_buf(), (metadata.modified().ok(), metadata.len()));
        return;
    }
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let is_hidden = name.to_string_lossy().starts_with('.') || name == "node_modules" || name == "__pycache__";
        let is_output = path == layout.output_dir || path == layout.recordings;
        let is_folder_link = path.is_symlink() && path.is_dir();
        if !is_hidden && !is_output && !is_folder_link {
            scan(&path, settings, stamps);
        }
    }
}

fn differences(before: &BTreeMap<PathBuf, Stamp>, now: &BTreeMap<PathBuf, Stamp>) -> Vec<PathBuf> {
    let changed = now.iter().filter(|(path, stamp)| before.get(*path) != Some(*stamp));
    let removed = before.iter().filter(|(path, _)| !now.contains_key(*path));
    changed.chain(removed).map(|(path, _)| path.clone()).collect()
}

/// Returns the name of the valid eval function in a file.
fn function_name(path: &Path, settings: &Settings) -> Option<String> {
    let functions = find_functions(settings).ok()?;
    let file = functions.files.iter().find(|file| file.path == *path)?;
    file.function.as_ref().ok().map(|function| function.name.clone())
}

/// Whether an eval file contains the name of a table file.
fn mentions(eval_file: &Path, table: &Path) -> bool {
    let name = table.file_name().unwrap_or_default().to_string_lossy();
    std::fs::read_to_string(eval_file).is_ok_and(|text| text.contains(name.as_ref()))
}
