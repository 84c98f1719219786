//! Finds the files to read traces from: files, folders of them, and standard input.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// What stands for standard input.
const STDIN: &str = "-";

/// The endings of files that may hold traces; each may have `.gz` behind it.
const ENDINGS: [&str; 5] = [".json", ".jsonl", ".ndjson", ".pb", ".binpb"];

/// The files to read, each once.
#[derive(Debug, Default)]
pub(super) struct TraceFiles {
    pub(super) files: Vec<TraceFile>,
    /// Files of folders whose endings say that they hold something else, as a person would name them.
    pub(super) passed_over: Vec<String>,
    /// Folders that cannot be looked into, and why.
    pub(super) unreadable: Vec<(String, String)>,
}

/// A file, or standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TraceFile {
    /// As a person would name it.
    pub(super) shown: String,
    /// None: standard input.
    path: Option<PathBuf>,
    /// How long it is, where that is known.
    pub(super) bytes: Option<u64>,
}

impl TraceFile {
    /// Opens the file, or takes standard input.
    pub(super) fn open(&self, stdin: &mut Option<Box<dyn Read + Send>>) -> io::Result<Box<dyn Read + Send>> {
        match &self.path {
            None => stdin.take().ok_or_else(|| io::Error::other("it was read already")),
            Some(path) => Ok(Box::new(File::open(path)?)),
        }
    }

    fn is_stdin(&self) -> bool {
        self.path.is_none()
    }
}

impl TraceFiles {
    /// Finds the files that are meant, in the order of the arguments; folders are gone through by name, to their depth.
    pub(super) fn find(paths: &[PathBuf], here: &Path) -> Result<Self, Error> {
        let mut found = Self::default();
        let mut seen = BTreeSet::new();
        for path in paths {
            if path.as_os_str() == STDIN {
                if found.reads_stdin() {
                    return Err(Error::invalid("- is given twice: stdin can be read once"));
                }
                found.files.push(TraceFile { shown: "stdin".to_owned(), path: None, bytes: None });
                continue;
            }
            let full = here.join(path);
            let about = std::fs::metadata(&full)
                .map_err(|error| Error::invalid(format!("cannot read {}: {error}", path.display())))?;
            if about.is_dir() {
                found.add_folder(&full, path, &mut seen);
            } else {
                found.add(&full, path, about.is_file().then_some(about.len()), &mut seen);
            }
        }
        Ok(found)
    }

    pub(super) fn reads_stdin(&self) -> bool {
        self.files.iter().any(TraceFile::is_stdin)
    }

    /// Returns how many bytes there are, where that is known of all.
    pub(super) fn bytes(&self) -> Option<u64> {
        self.files.iter().map(|file| file.bytes).sum()
    }

    fn add(&mut self, path: &Path, shown: &Path, bytes: Option<u64>, seen: &mut BTreeSet<PathBuf>) {
        if seen.insert(path.canonicalize().unwrap_or_else(|_| path.to_path_buf())) {
            self.files.push(TraceFile { shown: shown.display().to_string(), path: Some(path.to_path_buf()), bytes });
        }
    }

    fn add_folder(&mut self, folder: &Path, shown: &Path, seen: &mut BTreeSet<PathBuf>) {
        // Without end where a folder links to one above it.
        if !seen.insert(folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf())) {
            return;
        }
        let entries = std::fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) => {
                self.unreadable.push((shown.display().to_string(), error.to_string()));
                return;
            }
        };
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name();
            // A repository's own folder, and ours.
            if name.to_string_lossy().starts_with('.') {
                continue;
            }
            let (path, shown) = (entry.path(), shown.join(&name));
            match std::fs::metadata(&path) {
                Ok(about) if about.is_dir() => self.add_folder(&path, &shown, seen),
                Ok(about) if about.is_file() && may_hold_traces(&name.to_string_lossy()) => {
                    self.add(&path, &shown, Some(about.len()), seen);
                }
                Ok(_) => self.passed_over.push(shown.display().to_string()),
                // A link that leads nowhere, and whose name says that it led to something else.
                Err(error) if error.kind() == io::ErrorKind::NotFound && !may_hold_traces(&name.to_string_lossy()) => {
                    self.passed_over.push(shown.display().to_string());
                }
                Err(error) => self.unreadable.push((shown.display().to_string(), error.to_string())),
            }
        }
    }
}

/// Whether a file of a folder is read, by its name.
fn may_hold_traces(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    ENDINGS.iter().any(|ending| name.len() > ending.len() && name.ends_with(ending))
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
    #[case("a.pb.GZ", true)]
    #[case(".json", false)]
    #[case("a.gz", false)]
    #[case("a.json.bak", false)]
    #[case("notes.md", false)]
    fn names_tell_what_is_read(#[case] name: &str, #[case] expected: bool) {
        assert_eq!(may_hold_traces(name), expected, "{name}");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_leads_nowhere_counts_by_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["latest", "gone.json"] {
            std::os::unix::fs::symlink(folder.path().join("nowhere"), folder.path().join(name)).expect("linked");
        }
        let found = TraceFiles::find(&[PathBuf::from(".")], folder.path()).expect("found");
        assert_eq!(found.passed_over, ["./latest"]);
        let unreadable: Vec<&str> = found.unreadable.iter().map(|(file, _)| file.as_str()).collect();
        assert_eq!(unreadable, ["./gone.json"]);
    }

    #[test]
    fn folders_are_gone_through_by_name_and_each_file_once() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["b.json", "a/z.jsonl", "a/notes.txt", ".git/x.json", "c.pb.gz"] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, "{}").expect("written");
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.path(), folder.path().join("a/loop")).expect("linked");
        let paths: Vec<PathBuf> = ["c.pb.gz", ".", "b.json"].iter().map(PathBuf::from).collect();
        let found = TraceFiles::find(&paths, folder.path()).expect("found");
        let shown: Vec<&str> = found.files.iter().map(|file| file.shown.as_str()).collect();
        assert_eq!(shown, ["c.pb.gz", "./a/z.jsonl", "./b.json"]);
        assert_eq!((found.passed_over, found.files.len()), (vec!["./a/notes.txt".to_owned()], 3));
    }
}
