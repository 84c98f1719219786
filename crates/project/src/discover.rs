//! Finds eval files from paths, folders and globs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use karat_cases::Tier;
use karat_cases::regression::ARCHIVE_SUFFIX;
use karat_json::without_bom;
use serde_json::Value;

use crate::error::Error;
use crate::ignored::{IgnoredFile, ignored_reason};
use crate::layout::Layout;
use crate::lock::lock_path;
use crate::read::read_file;

/// The path of an eval file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EvalPath {
    pub path: PathBuf,
    /// Relative to the current folder, for messages.
    pub display_path: String,
    /// Relative to the project's folder, with `/` on every platform.
    pub in_project: String,
}

/// The eval files found, and ignored files that are probably meant to be eval files.
#[derive(Debug, Default)]
pub struct DiscoveredFiles {
    pub files: Vec<EvalPath>,
    pub ignored: Vec<IgnoredFile>,
}

/// Finds eval files as [`discover_all`] does, without the ignored ones.
pub fn discover(paths: &[PathBuf], layout: &Layout, current_dir: &Path) -> Result<Vec<EvalPath>, Error> {
    discover_all(paths, layout, current_dir).map(|discovered| discovered.files)
}

/// Finds eval files, without duplicates, in the order of the arguments; folders are sorted. Fails if there are none.
pub fn discover_all(paths: &[PathBuf], layout: &Layout, current_dir: &Path) -> Result<DiscoveredFiles, Error> {
    let evals = default_folder(layout);
    if paths.is_empty() && !evals.exists() {
        let display_path = evals.strip_prefix(current_dir).unwrap_or(&evals).display();
        return Err(Error::invalid(format!("folder {display_path} does not exist"))
            .hint("pass eval files or a folder, or run 'karat init' to create the first eval file"));
    }
    let discovery = walk(paths, layout, current_dir, FileKind::EvalFiles)?;
    if discovery.files.is_empty() {
        let message = match discovery.ignored.first() {
            Some(ignored) => format!("no eval files found; {ignored}"),
            None => "no eval files found".to_owned(),
        };
        return Err(Error::nothing_selected(message).hint(
            "eval files are named x.golden.json, x.labeled.json, x.regression.json or x.rubric.json, or contain cases",
        ));
    }
    Ok(discovery)
}

fn default_folder(layout: &Layout) -> PathBuf {
    layout.root.join("evals")
}

/// Finds eval files as [`discover`] does, but returns an empty list if there are none.
pub fn discover_or_empty(paths: &[PathBuf], layout: &Layout, current_dir: &Path) -> Result<Vec<EvalPath>, Error> {
    walk(paths, layout, current_dir, FileKind::EvalFiles).map(|discovered| discovered.files)
}

/// Finds archives of regression cases among the paths and in folders.
pub fn discover_archives(paths: &[PathBuf], layout: &Layout, current_dir: &Path) -> Result<Vec<EvalPath>, Error> {
    let is_candidate = |path: &&PathBuf| current_dir.join(path).is_dir() || is_archive(&current_dir.join(path));
    let candidates: Vec<PathBuf> = paths.iter().filter(is_candidate).cloned().collect();
    if candidates.is_empty() && !paths.is_empty() {
        return Ok(Vec::new());
    }
    walk(&candidates, layout, current_dir, FileKind::Archives).map(|discovered| discovered.files)
}

#[derive(Clone, Copy, PartialEq)]
enum FileKind {
    EvalFiles,
    Archives,
}

fn walk(paths: &[PathBuf], layout: &Layout, current_dir: &Path, kind: FileKind) -> Result<DiscoveredFiles, Error> {
    let default = [default_folder(layout)];
    let is_default = paths.is_empty();
    let mut walker =
        Walker { layout, current_dir, kind, found: Vec::new(), ignored: Vec::new(), seen: BTreeSet::new() };
    for path in if is_default { &default } else { paths } {
        let full = current_dir.join(path);
        if full.is_dir() {
            walker.folder(&full)?;
        } else if is_archive(&full) && kind == FileKind::Archives {
            walker.add(&full);
        } else if other_project_file(&full, layout).is_some() {
            // Skipped: a shell expands `evals/*.json` to all files of the folder.
        } else if full.is_file() {
            if kind == FileKind::EvalFiles {
                walker.add(&full);
            }
        } else if is_glob(path) {
            if !walker.glob(&full)? {
                let message = format!("no file matches '{}'", path.display());
                // With other paths, this one is probably a mistake.
                let is_only = paths.len() == 1;
                return Err(if is_only { Error::nothing_selected(message) } else { Error::invalid(message) });
            }
        } else if is_default && !full.exists() {
            break;
        } else {
            let problem = if full.exists() { "is not a regular file" } else { "does not exist" };
            return Err(Error::invalid(format!("path {} {problem}", path.display())));
        }
    }
    let other = paths.iter().find_map(|path| Some((path, other_project_file(&current_dir.join(path), layout)?)));
    match other {
        Some((path, other_kind)) if kind == FileKind::EvalFiles && walker.found.is_empty() => {
            Err(Error::invalid(format!("{} is {other_kind}, not an eval file", path.display())))
        }
        _ => Ok(DiscoveredFiles { files: walker.found, ignored: walker.ignored }),
    }
}

/// Describes a project file that is not an eval file but is stored next to them.
fn other_project_file(path: &Path, layout: &Layout) -> Option<&'static str> {
    if *path == layout.overlap_map {
        Some("the overlap map")
    } else if *path == lock_path(None, layout) {
        Some("the tool lock")
    } else {
        is_archive(path).then_some("an archive of regression cases")
    }
}

/// Whether a file is named like an archive of regression cases and is not an eval file.
fn is_archive(path: &Path) -> bool {
    path.is_file() && path.to_string_lossy().ends_with(ARCHIVE_SUFFIX) && !looks_like_eval_file(path)
}

fn is_glob(path: &Path) -> bool {
    path.to_string_lossy().contains(['*', '?', '['])
}

struct Walker<'w> {
    layout: &'w Layout,
    current_dir: &'w Path,
    kind: FileKind,
    found: Vec<EvalPath>,
    ignored: Vec<IgnoredFile>,
    seen: BTreeSet<PathBuf>,
}

impl Walker<'_> {
    fn add(&mut self, path: &Path) {
        let identity = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        if self.seen.insert(identity) {
            let in_project = path.strip_prefix(&self.layout.root).unwrap_or(path).to_string_lossy().replace('\\', "/");
            self.found.push(EvalPath { path: path.to_path_buf(), display_path: self.display_path(path), in_project });
        }
    }

    /// Adds the eval files among the matches. Returns whether anything matches.
    fn glob(&mut self, pattern: &Path) -> Result<bool, Error> {
        let mut matches = false;
        let pattern_text = pattern.to_string_lossy();
        let paths = glob::glob(&pattern_text)
            .map_err(|error| Error::invalid(format!("invalid glob '{pattern_text}': {error}")))?;
        for path in paths {
            let path = path.map_err(|error| Error::invalid(format!("cannot read {error}")))?;
            matches = true;
            if path.is_dir() {
                self.folder(&path)?;
            } else {
                self.add_if_eval_file(&path);
            }
        }
        Ok(matches)
    }

    /// Adds a discovered file if its name or its contents are those of an eval file.
    fn add_if_eval_file(&mut self, path: &Path) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if self.kind == FileKind::Archives {
            if name.ends_with(ARCHIVE_SUFFIX) {
                self.add(path);
            }
            return;
        }
        let is_json = path.extension().is_some_and(|extension| extension == "json");
        if Tier::from_file_name(&name).is_some() || is_json && looks_like_eval_file(path) {
            self.add(path);
        } else if let Some(reason) =
            ignored_reason(path, &name).filter(|_| other_project_file(path, self.layout).is_none())
        {
            self.ignored.push(IgnoredFile { display_path: self.display_path(path), reason });
        }
    }

    fn folder(&mut self, folder: &Path) -> Result<(), Error> {
        let fail = |error| Error::invalid(format!("cannot read {}: {error}", folder.display()));
        let entries = std::fs::read_dir(folder).map_err(fail)?;
        let mut paths: Vec<PathBuf> =
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().map_err(fail)?;
        paths.sort();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_output = path == self.layout.output_dir || path == self.layout.recordings;
            if name.starts_with('.') || name == "node_modules" || is_output {
                continue;
            }
            if path.is_dir() {
                // A symlink could form a cycle.
                if !path.is_symlink() {
                    self.folder(&path)?;
                }
            } else {
                self.add_if_eval_file(&path);
            }
        }
        Ok(())
    }

    fn display_path(&self, path: &Path) -> String {
        path.strip_prefix(self.current_dir).unwrap_or(path).display().to_string()
    }
}

/// Whether a file contains cases.
pub fn looks_like_eval_file(path: &Path) -> bool {
    let value: Option<Value> = read_file(path).ok().and_then(|bytes| serde_json::from_slice(without_bom(&bytes)).ok());
    let is_case = |value: &Value| {
        // Accept a rubric in a file of another tier, so that it is reported as a mistake.
        value.get("id").is_some() && ["expect", "rubric", "turns"].iter().any(|key| value.get(key).is_some())
    };
    match value {
        Some(Value::Array(items)) => items.first().is_some_and(is_case),
        Some(Value::Object(map)) => {
            map.get("cases").and_then(Value::as_array).and_then(|cases| cases.first()).is_some_and(is_case)
                // Result files have cases too.
                && !map.contains_key("runId")
        }
        _ => false,
    }
}
