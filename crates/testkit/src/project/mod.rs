//! A project in a temporary folder, and commands that run in it.

mod command;
mod output;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};
use tempfile::TempDir;

pub use command::{Invocation, RunningCommand, TimedOut};
pub use output::{Filters, Output};

/// A temporary project folder, removed when dropped.
#[derive(Debug)]
pub struct TempProject {
    binary: PathBuf,
    /// Contains the project folder and the home folder.
    folder: TempDir,
    variables: Vec<(OsString, OsString)>,
}

impl TempProject {
    /// Creates an empty project whose commands run this binary.
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        let folder = tempfile::Builder::new().prefix("karat-test-").tempdir().expect("create a temporary folder");
        let project = Self { binary: binary.into(), folder, variables: Vec::new() };
        for folder in [project.path(), project.home()] {
            std::fs::create_dir(folder).expect("create a folder");
        }
        project
    }

    /// Adds a file and its parent folders.
    #[must_use]
    pub fn file(self, path: &str, content: impl Content) -> Self {
        self.write(path, content);
        self
    }

    /// Sets an environment variable for all commands.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Runs all commands as on a CI server.
    #[must_use]
    pub fn in_ci(self) -> Self {
        self.env("CI", "true")
    }

    /// Writes a file and creates its parent folders.
    pub fn write(&self, path: &str, content: impl Content) {
        let path = self.path().join(path);
        let folder = path.parent().expect("parent folder");
        std::fs::create_dir_all(folder).expect("create a folder");
        std::fs::write(&path, content.into_bytes()).expect("write a file");
    }

    /// Reads a file as text.
    pub fn read(&self, path: &str) -> String {
        let path = self.path().join(path);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Reads a file as JSON.
    pub fn read_json(&self, path: &str) -> Value {
        serde_json::from_str(&self.read(path)).unwrap_or_else(|error| panic!("{path} is not JSON: {error}"))
    }

    /// Returns the files of a folder whose names end with `suffix`, oldest first. Empty if the folder does not exist.
    pub fn files_in(&self, folder: &str, suffix: &str) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.path().join(folder)) else {
            return Vec::new();
        };
        let mut files: Vec<_> = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.file_name().to_string_lossy().ends_with(suffix))
            .map(|entry| (entry.metadata().and_then(|metadata| metadata.modified()).ok(), entry.path()))
            .collect();
        files.sort();
        files.into_iter().map(|(_, path)| path).collect()
    }

    /// Returns the project's root, where commands run.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// Returns the folder in `HOME`.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Prepares a command with these arguments.
    pub fn command<A: Into<OsString>>(&self, arguments: impl IntoIterator<Item = A>) -> Invocation {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Invocation::new(self, &self.binary, arguments)
    }

    /// Runs the binary with these arguments to completion.
    pub fn run<A: Into<OsString>>(&self, arguments: impl IntoIterator<Item = A>) -> Output {
        self.command(arguments).run()
    }

    fn filters(&self) -> Filters {
        Filters::of(self.folder.path())
    }

    fn variables(&self) -> &[(OsString, OsString)] {
        &self.variables
    }
}

/// Content of a file.
pub trait Content {
    fn into_bytes(self) -> Vec<u8>;
}

impl Content for &str {
    fn into_bytes(self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }
}

impl Content for String {
    fn into_bytes(self) -> Vec<u8> {
        self.into_bytes()
    }
}

impl Content for &[u8] {
    fn into_bytes(self) -> Vec<u8> {
        self.to_vec()
    }
}

impl Content for Vec<u8> {
    fn into_bytes(self) -> Vec<u8> {
        self
    }
}

/// JSON is written with one value per line.
impl Content for &Value {
    fn into_bytes(self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut serializer = Serializer::with_formatter(&mut out, PrettyFormatter::with_indent(b" "));
        serde::Serialize::serialize(self, &mut serializer).expect("serialise JSON");
        out
    }
}

impl Content for Value {
    fn into_bytes(self) -> Vec<u8> {
        (&self).into_bytes()
    }
}

/// Resolves symbolic links, or returns the path unchanged if that fails.
fn real_path(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
