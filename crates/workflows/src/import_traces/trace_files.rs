//! Finds the files to read traces from: files, folders and standard input.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// The argument for standard input.
const STDIN: &str = "-";

/// Extensions of trace files, optionally followed by `.gz`.
const EXTENSIONS: [&str; 7] = [".json", ".jsonl", ".ndjson", ".pb", ".binpb", ".eval", ".traj"];

/// The extensions, for messages.
pub(super) const EXTENSIONS_TEXT: &str = ".json, .jsonl, .ndjson, .pb, .binpb, .eval and .traj (each also with .gz)";

/// The files to read, each once.
#[derive(Debug, Default)]
pub(super) struct TraceFiles {
    pub(super) files: Vec<TraceFile>,
    /// Files in folders that were skipped because of their extensions, for display.
    pub(super) skipped: Vec<String>,
    /// Files and folders that cannot be read, with the error.
    pub(super) unreadable: Vec<(String, String)>,
}

/// A file, or standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TraceFile {
    /// The path for display.
    pub(super) display_path: String,
    /// `None` for standard input.
    path: Option<PathBuf>,
    /// The size, if known.
    pub(super) bytes: Option<u64>,
}

impl TraceFile {
    /// Opens the file or standard input.
    pub(super) fn open(&self, stdin: &mut Option<Box<dyn Read + Send>>) -> io::Result<Box<dyn Read + Send>> {
        match &self.path {
            None => stdin.take().ok_or_else(|| io::Error::other("stdin was already read")),
            Some(path) => Ok(Box::new(File::open(path)?)),
        }
    }

    fn is_stdin(&self) -> bool {
        self.path.is_none()
    }
}

impl TraceFiles {
    /// Finds the files in the order of the arguments; folders recursively, sorted by name.
    pub(super) fn find(paths: &[PathBuf], current_dir: &Path) -> Result<Self, Error> {
        let mut trace_files = Self::default();
        let mut seen = BTreeSet::new();
        for path in paths {
            if path.as_os_str() == STDIN {
                if trace_files.reads_stdin() {
                    return Err(Error::invalid("- is given twice: stdin can be read only once"));
                }
                trace_files.files.push(TraceFile { display_path: "stdin".to_owned(), path: None, bytes: None });
                continue;
            }
            let full = current_dir.join(path);
            let metadata = std::fs::metadata(&full)
                .map_err(|error| Error::invalid(format!("cannot read {}: {error}", path.display())))?;
            if metadata.is_dir() {
                trace_files.add_folder(&full, path, &mut seen);
            } else {
                trace_files.add(&full, path, metadata.is_file().then_some(metadata.len()), &mut seen);
            }
        }
        Ok(trace_files)
    }

    pub(super) fn reads_stdin(&self) -> bool {
        self.files.iter().any(TraceFile::is_stdin)
    }

    /// Returns the total size, if the size of every file is known.
    pub(super) fn bytes(&self) -> Option<u64> {
        self.files.iter().map(|file| file.bytes).sum()
    }

    fn add(&mut self, path: &Path, display_path: &Path, bytes: Option<u64>, seen: &mut BTreeSet<PathBuf>) {
        if seen.insert(path.canonicalize().unwrap_or_else(|_| path.to_path_buf())) {
            self.files.push(TraceFile {
                display_path: display_path.display().to_string(),
                path: Some(path.to_path_buf()),
                bytes,
            });
        }
    }

    fn add_folder(&mut self, folder: &Path, display_path: &Path, seen: &mut BTreeSet<PathBuf>) {
        // Prevents endless recursion through links.
        if !seen.insert(folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf())) {
            return;
        }
        let entries = std::fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) => {
                self.unreadable.push((display_path.display().to_string(), error.to_string()));
                return;
            }
        };
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name();
            // Skips .git and .karat.
            if name.to_string_lossy().starts_with('.') {
                continue;
            }
            let (path, display_path) = (entry.path(), display_path.join(&name));
            match std::fs::metadata(&path) {
                Ok(metadata) if metadata.is_dir() => self.add_folder(&path, &display_path, seen),
                Ok(metadata) if metadata.is_file() && has_trace_extension(&name.to_string_lossy()) => {
                    self.add(&path, &display_path, Some(metadata.len()), seen);
                }
                Ok(_) => self.skipped.push(display_path.display().to_string()),
                // A broken link without the extension of a trace file.
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound && !has_trace_extension(&name.to_string_lossy()) =>
                {
                    self.skipped.push(display_path.display().to_string());
                }
                Err(error) => self.unreadable.push((display_path.display().to_string(), error.to_string())),
            }
        }
    }
}

fn has_trace_extension(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    EXTENSIONS.iter().any(|extension| name.len() > extension.len() && name.ends_with(extension))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("a.json", true)]
    #[case("a.JSONL.gz", true)]
    #[case("a.trace.ndjson", true)]
    #[case("a.binpb", true)]
    #[case("2026_task.eval", true)]
    #[case("django__django-1.traj", true)]
    #[case("a.pb.GZ", true)]
    #[case(".json", false)]
    #[case("a.gz", false)]
    #[case("a.json.bak", false)]
    #[case("notes.md", false)]
    fn recognises_trace_extensions(#[case] name: &str, #[case] expected: bool) {
        assert_eq!(has_trace_extension(name), expected, "{name}");
    }

    #[cfg(unix)]
    #[test]
    fn handles_broken_links_by_extension() {
        let folder = tempfile::tempdir().expect("temporary folder");
        for name in ["latest", "gone.json"] {
            std::os::unix::fs::symlink(folder.path().join("nowhere"), folder.path().join(name)).expect("linked");
        }
        let trace_files = TraceFiles::find(&[PathBuf::from(".")], folder.path()).expect("found");
        assert_eq!(trace_files.skipped, ["./latest"]);
        let unreadable: Vec<&str> = trace_files.unreadable.iter().map(|(file, _)| file.as_str()).collect();
        assert_eq!(unreadable, ["./gone.json"]);
    }

    #[test]
    fn walks_folders_by_name_and_finds_each_file_once() {
        let folder = tempfile::tempdir().expect("temporary folder");
        for name in ["b.json", "a/z.jsonl", "a/notes.txt", ".git/x.json", "c.pb.gz"] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("has a parent")).expect("created");
            std::fs::write(path, "{}").expect("written");
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.path(), folder.path().join("a/loop")).expect("linked");
        let paths: Vec<PathBuf> = ["c.pb.gz", ".", "b.json"].iter().map(PathBuf::from).collect();
        let trace_files = TraceFiles::find(&paths, folder.path()).expect("found");
        let display_paths: Vec<&str> = trace_files.files.iter().map(|file| file.display_path.as_str()).collect();
        assert_eq!(display_paths, ["c.pb.gz", "./a/z.jsonl", "./b.json"]);
        assert_eq!((trace_files.skipped, trace_files.files.len()), (vec!["./a/notes.txt".to_owned()], 3));
    }
}
