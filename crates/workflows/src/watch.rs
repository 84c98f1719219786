//! Watches the files of a run and finds the cases that a change affects.
//!
//! It polls, since a project has few files and polling works on every file system.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use karat_agents::source_files;
use karat_project::{discover_or_empty, table_files};

use crate::functions::find_functions;
use crate::settings::{Settings, SnapshotSource, WithBase};

const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// The cases that a change affects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AffectedCases {
    /// The tools, the settings, or several kinds of files changed.
    Everything,
    /// These eval files, or their tables, changed.
    EvalFiles(Vec<PathBuf>),
    /// These eval functions changed.
    Functions(Vec<String>),
    /// No case depends on the changed files.
    Nothing,
}

/// A change of watched files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Added, changed and removed files.
    pub paths: BTreeSet<PathBuf>,
    pub affected: AffectedCases,
}

/// The modification time and size of a file.
type FileState = (Option<SystemTime>, u64);

/// The watched files and their last known state.
pub struct Watch {
    /// The paths of the request.
    paths: Vec<PathBuf>,
    roots: Vec<PathBuf>,
    /// The table files of each eval file.
    tables: BTreeMap<PathBuf, Vec<PathBuf>>,
    states: BTreeMap<PathBuf, FileState>,
}

impl Watch {
    /// Starts with the current state of the files.
    pub fn start(paths: &[PathBuf], settings: &Settings) -> Self {
        let (tables, states) = (BTreeMap::new(), BTreeMap::new());
        let mut watch = Self { paths: paths.to_vec(), roots: roots(paths, settings), tables, states };
        watch.states = watch.scan(settings);
        watch.find_tables(settings);
        watch
    }

    /// Returns the number of watched files.
    pub fn file_count(&self) -> usize {
        self.states.len()
    }

    /// Returns the watched files and folders that exist, without those in another folder of the list.
    pub fn roots(&self) -> Vec<&Path> {
        let tables = self.tables.values().flatten();
        let all: BTreeSet<&Path> =
            self.roots.iter().chain(tables).map(PathBuf::as_path).filter(|path| path.exists()).collect();
        let is_inside = |path: &Path| all.iter().any(|root| *root != path && path.starts_with(root));
        all.iter().copied().filter(|path| !is_inside(path)).collect()
    }

    /// Waits for a change, and then until no more files change: files that are saved together are one change.
    pub async fn next_change(&mut self, settings: &Settings) -> Change {
        let mut paths = BTreeSet::new();
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let now = self.scan(settings);
            let changed = differences(&self.states, &now);
            self.states = now;
            if changed.is_empty() && !paths.is_empty() {
                let affected = self.affected(&paths, settings);
                self.find_tables(settings);
                return Change { paths, affected };
            }
            paths.extend(changed);
        }
    }

    fn scan(&self, settings: &Settings) -> BTreeMap<PathBuf, FileState> {
        let mut states = BTreeMap::new();
        let tables = self.tables.values().flatten();
        self.roots.iter().chain(tables).for_each(|path| scan(path, settings, &mut states));
        states
    }

    /// Looks up the tables of the eval files. A table that was not watched before counts as unchanged.
    fn find_tables(&mut self, settings: &Settings) {
        let layout = &settings.layout;
        let eval_files = discover_or_empty(&self.paths, layout, &layout.current_dir).unwrap_or_default();
        self.tables = eval_files.iter().map(|file| (file.path.clone(), table_files(&file.path))).collect();
        let mut states = BTreeMap::new();
        self.tables.values().flatten().for_each(|table| scan(table, settings, &mut states));
        for (table, state) in states {
            self.states.entry(table).or_insert(state);
        }
    }

    fn affected(&self, changed: &BTreeSet<PathBuf>, settings: &Settings) -> AffectedCases {
        let layout = &settings.layout;
        let eval_files = discover_or_empty(&self.paths, layout, &layout.current_dir).unwrap_or_default();
        let mut files = BTreeSet::new();
        let mut functions = BTreeSet::new();
        for path in changed {
            let table_users = self.tables.iter().filter(|(_, tables)| tables.contains(path)).map(|(file, _)| file);
            let table_users: Vec<&PathBuf> = table_users.collect();
            if !table_users.is_empty() {
                files.extend(table_users.into_iter().cloned());
            } else if eval_files.iter().any(|file| file.path == *path) {
                files.insert(path.clone());
            } else if path.starts_with(&settings.eval_functions.path) {
                if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("py")) {
                    let Some(name) = function_name(path, settings) else { return AffectedCases::Everything };
                    functions.insert(name);
                }
            } else if affects_all_cases(path, settings) {
                return AffectedCases::Everything;
            }
        }
        match (files.is_empty(), functions.is_empty()) {
            (true, true) => AffectedCases::Nothing,
            (false, true) => AffectedCases::EvalFiles(files.into_iter().collect()),
            (true, false) => AffectedCases::Functions(functions.into_iter().collect()),
            (false, false) => AffectedCases::Everything,
        }
    }
}

/// Whether a file affects every case: the agent sees all tools, and any case can use a seed.
fn affects_all_cases(path: &Path, settings: &Settings) -> bool {
    let registry = registry_root(&settings.tool_registry.path, &settings.layout.root);
    path.starts_with(registry) || settings_files(settings).iter().any(|file| path.starts_with(file))
}

/// Returns the configuration and the files that it names.
fn settings_files(settings: &Settings) -> Vec<PathBuf> {
    let mut files =
        vec![settings.config_file.clone(), settings.layout.root.join(".env"), settings.seed_manifest.path.clone()];
    files.extend(settings.model.system_prompt_path.clone());
    if let Some(WithBase { value: SnapshotSource::File { file }, base }) = &settings.snapshot {
        files.push(base.join(file));
    }
    let agents = settings.agent_endpoints.iter().map(|agent| (&agent.base, agent.value.as_str()));
    let judge = settings.judge.iter().map(|judge| (&judge.base, judge.value.model.as_str()));
    files.extend(agents.chain(judge).filter_map(|(base, name)| Some(base.join(name.strip_prefix("scripted:")?))));
    if let Some(WithBase { value, base }) = &settings.registry_command {
        // A program of the project, or its arguments.
        let paths = value.command.iter().map(|word| base.join(word));
        files.extend(paths.filter(|path| !path.is_dir()));
    }
    files.extend(settings.agent_endpoints.iter().flat_map(|agent| agent_files(&agent.value, &settings.layout.root)));
    files
}

/// Returns the files of an agent that is a function or a program of the project: the folder of its module, which may
/// import others, or in the root the files in the same language.
fn agent_files(endpoint: &str, root: &Path) -> Vec<PathBuf> {
    source_files(endpoint, root).iter().flat_map(|source| with_imports(source, root)).collect()
}

/// Returns what a source file may import: its folder, or in the project's root the files with the same extension.
fn with_imports(source: &Path, root: &Path) -> Vec<PathBuf> {
    let Some(folder) = source.parent().filter(|folder| folder.starts_with(root)) else {
        return vec![source.to_path_buf()];
    };
    if folder != root {
        return vec![folder.to_path_buf()];
    }
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    let siblings = entries.filter(|path| path.is_file() && path.extension() == source.extension());
    siblings.chain([source.to_path_buf()]).collect()
}

fn roots(paths: &[PathBuf], settings: &Settings) -> Vec<PathBuf> {
    let layout = &settings.layout;
    let mut roots: Vec<PathBuf> = paths.iter().map(|path| without_wildcards(&layout.current_dir.join(path))).collect();
    if paths.is_empty() {
        roots.push(layout.root.join("evals"));
    }
    roots.push(settings.eval_functions.path.clone());
    roots.push(registry_root(&settings.tool_registry.path, &layout.root));
    roots.extend(settings_files(settings));
    roots
}

/// Returns the folder of a source file, which may import others, and JSON files and folders unchanged.
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
fn scan(path: &Path, settings: &Settings, states: &mut BTreeMap<PathBuf, FileState>) {
    let layout = &settings.layout;
    let Ok(metadata) = path.metadata() else { return };
    if !metadata.is_dir() {
        states.insert(path.to_path_buf(), (metadata.modified().ok(), metadata.len()));
        return;
    }
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let is_hidden = name.to_string_lossy().starts_with('.') || name == "node_modules" || name == "__pycache__";
        let is_output = path == layout.output_dir || path == layout.recordings;
        let is_folder_link = path.is_symlink() && path.is_dir();
        if !is_hidden && !is_output && !is_folder_link {
            scan(&path, settings, states);
        }
    }
}

fn differences(before: &BTreeMap<PathBuf, FileState>, now: &BTreeMap<PathBuf, FileState>) -> Vec<PathBuf> {
    let changed = now.iter().filter(|(path, state)| before.get(*path) != Some(*state));
    let removed = before.iter().filter(|(path, _)| !now.contains_key(*path));
    changed.chain(removed).map(|(path, _)| path.clone()).collect()
}

/// Returns the name of the valid eval function in a file.
fn function_name(path: &Path, settings: &Settings) -> Option<String> {
    let functions = find_functions(settings).ok()?;
    let file = functions.files.iter().find(|file| file.path == *path)?;
    file.function.as_ref().ok().map(|function| function.name.clone())
}
