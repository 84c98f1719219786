//! Paths, folders and globs to eval files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use karat_core::case::Tier;
use karat_core::regression::ARCHIVE_ENDING;
use karat_json::without_bom;
use serde_json::Value;

use crate::error::Error;
use crate::layout::Layout;
use crate::lock::lock_path;

/// An eval file, and how the person would name it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EvalPath {
    pub path: PathBuf,
    pub shown: String,
    /// Relative to the project's folder, with `/` on every system.
    pub in_project: String,
}

/// Finds the eval files that are meant; each once, in the order of the arguments, folders sorted.
pub fn discover(paths: &[PathBuf], layout: &Layout, here: &Path) -> Result<Vec<EvalPath>, Error> {
    let evals = default_folder(layout);
    if paths.is_empty() && !evals.exists() {
        let shown = evals.strip_prefix(here).unwrap_or(&evals).display();
        return Err(Error::invalid(format!("there is no folder {shown}"))
            .hint("name eval files or a folder, or run 'karat init' to make a first one"));
    }
    let found = discover_any(paths, layout, here)?;
    if found.is_empty() {
        return Err(Error::nothing_selected("no eval files found")
            .hint("eval files are named x.golden.json, x.labeled.json, x.regression.json or x.rubric.json, or hold a list of cases"));
    }
    Ok(found)
}

fn default_folder(layout: &Layout) -> PathBuf {
    layout.root.join("evals")
}

/// Finds the eval files that are meant as [`discover`] does, where it is no mistake that there are none.
pub fn discover_any(paths: &[PathBuf], layout: &Layout, here: &Path) -> Result<Vec<EvalPath>, Error> {
    walk(paths, layout, here, Wanted::EvalFiles)
}

/// Finds the archives of regression cases that are named, or are in the folders in which eval files are looked for.
pub fn discover_archives(paths: &[PathBuf], layout: &Layout, here: &Path) -> Result<Vec<EvalPath>, Error> {
    let may_hold = |path: &&PathBuf| here.join(path).is_dir() || is_archive(&here.join(path));
    let folders: Vec<PathBuf> = paths.iter().filter(may_hold).cloned().collect();
    if folders.is_empty() && !paths.is_empty() {
        return Ok(Vec::new());
    }
    walk(&folders, layout, here, Wanted::Archives)
}

#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    EvalFiles,
    Archives,
}

fn walk(paths: &[PathBuf], layout: &Layout, here: &Path, wanted: Wanted) -> Result<Vec<EvalPath>, Error> {
    let default = [default_folder(layout)];
    let is_default = paths.is_empty();
    let mut walker = Walker { layout, here, wanted, found: Vec::new(), seen: BTreeSet::new() };
    for path in if is_default { &default } else { paths } {
        let full = here.join(path);
        if full.is_dir() {
            walker.folder(&full)?;
        } else if is_archive(&full) && wanted == Wanted::Archives {
            walker.add(&full);
        } else if own_file(&full, layout).is_some() {
            // Passed over: a shell's `evals/*.json` names all files of a folder.
        } else if full.is_file() {
            if wanted == Wanted::EvalFiles {
                walker.add(&full);
            }
        } else if is_glob(path) {
            walker.glob(&full)?;
        } else if is_default && !full.exists() {
            break;
        } else {
            return Err(Error::invalid(format!("{} does not exist", path.display())));
        }
    }
    let own = paths.iter().find_map(|path| Some((path, own_file(&here.join(path), layout)?)));
    match own {
        Some((path, what)) if wanted == Wanted::EvalFiles && walker.found.is_empty() => {
            Err(Error::invalid(format!("{} is {what}, not an eval file", path.display())))
        }
        _ => Ok(walker.found),
    }
}

/// Says what a file is that lies beside eval files and is none.
fn own_file(path: &Path, layout: &Layout) -> Option<&'static str> {
    if *path == layout.overlap_map {
        Some("the overlap map")
    } else if *path == lock_path(None, layout) {
        Some("the tool lock")
    } else {
        is_archive(path).then_some("an archive of regression cases")
    }
}

/// Tells whether a file is an archive of regression cases by its name, and no eval file that was given such a name.
fn is_archive(path: &Path) -> bool {
    path.is_file() && path.to_string_lossy().ends_with(ARCHIVE_ENDING) && !looks_like_eval_file(path)
}

fn is_glob(path: &Path) -> bool {
    path.to_string_lossy().contains(['*', '?', '['])
}

struct Walker<'w> {
    layout: &'w Layout,
    here: &'w Path,
    wanted: Wanted,
    found: Vec<EvalPath>,
    seen: BTreeSet<PathBuf>,
}

impl Walker<'_> {
    fn add(&mut self, path: &Path) {
        let identity = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        if self.seen.insert(identity) {
            let in_project = path.strip_prefix(&self.layout.root).unwrap_or(path).to_string_lossy().replace('\\', "/");
            self.found.push(EvalPath { path: path.to_path_buf(), shown: self.shown(path), in_project });
        }
    }

    fn glob(&mut self, pattern: &Path) -> Result<(), Error> {
        let pattern_text = pattern.to_string_lossy();
        let paths = glob::glob(&pattern_text)
            .map_err(|error| Error::invalid(format!("'{pattern_text}' is not a glob: {error}")))?;
        for path in paths {
            let path = path.map_err(|error| Error::invalid(format!("cannot read {error}")))?;
            if path.is_dir() {
                self.folder(&path)?;
            } else {
                self.add_eval_file(&path);
            }
        }
        Ok(())
    }

    /// Adds a file that nobody named if it is an eval file: by its name, or else by what is in it.
    fn add_eval_file(&mut self, path: &Path) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if self.wanted == Wanted::Archives {
            if name.ends_with(ARCHIVE_ENDING) {
                self.add(path);
            }
            return;
        }
        let is_json = path.extension().is_some_and(|extension| extension == "json");
        if Tier::from_file_name(&name).is_some() || is_json && looks_like_eval_file(path) {
            self.add(path);
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
            let is_ours = path == self.layout.output_dir || path == self.layout.recordings;
            if name.starts_with('.') || name == "node_modules" || is_ours {
                continue;
            }
            if path.is_dir() {
                // A link could lead in a circle.
                if !path.is_symlink() {
                    self.folder(&path)?;
                }
            } else {
                self.add_eval_file(&path);
            }
        }
        Ok(())
    }

    fn shown(&self, path: &Path) -> String {
        path.strip_prefix(self.here).unwrap_or(path).display().to_string()
    }
}

/// Tells whether a file has cases.
pub fn looks_like_eval_file(path: &Path) -> bool {
    let value: Option<Value> =
        std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice(without_bom(&bytes)).ok());
    let is_case = |value: &Value| {
        // A rubric in a file of another name is a mistake that must show.
        value.get("id").is_some() && (value.get("expect").is_some() || value.get("rubric").is_some())
    };
    match value {
        Some(Value::Array(items)) => items.first().is_some_and(is_case),
        Some(Value::Object(map)) => {
            map.get("cases").and_then(Value::as_array).and_then(|cases| cases.first()).is_some_and(is_case)
                // A result has cases too, but they expect nothing.
                && !map.contains_key("runId")
        }
        _ => false,
    }
}
