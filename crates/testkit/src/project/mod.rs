//! A project in a temporary folder, and commands that run in it.

mod command;
mod output;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};
use tempfile::TempDir;

pub use command::{Invocation, Running, TooLong};
pub use output::{Filters, Output};

/// A folder with files, which is removed when this is dropped.
#[derive(Debug)]
pub struct TempProject {
    binary: PathBuf,
    /// Holds the project's folder and, beside it, the home of whoever works there.
    folder: TempDir,
    variables: Vec<(OsString, OsString)>,
}

impl TempProject {
    /// Makes an empty project whose commands run this binary.
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("karat-test-")
            .tempdir()
            .expect("a test machine has a temporary folder that can be written");
        let project = Self { binary: binary.into(), folder, variables: Vec::new() };
        for folder in [project.path(), project.home()] {
            std::fs::create_dir(folder).expect("a new temporary folder can be written");
        }
        project
    }

    /// Adds a file, and the folders on the way to it.
    #[must_use]
    pub fn file(self, path: &str, content: impl Content) -> Self {
        self.write(path, content);
        self
    }

    /// Sets a variable for all commands.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Runs all commands as a build server would.
    #[must_use]
    pub fn in_ci(self) -> Self {
        self.env("CI", "true")
    }

    /// Writes a file, and the folders on the way to it.
    pub fn write(&self, path: &str, content: impl Content) {
        let path = self.path().join(path);
        let folder = path.parent().expect("a file lies in a folder");
        std::fs::create_dir_all(folder).expect("a temporary folder can be written");
        std::fs::write(&path, content.into_bytes()).expect("a temporary folder can be written");
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

    /// Returns the files of a folder whose names end so, the oldest first; none where there is no folder.
    pub fn files_in(&self, folder: &str, ending: &str) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.path().join(folder)) else {
            return Vec::new();
        };
        let mut files: Vec<_> = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.file_name().to_string_lossy().ends_with(ending))
            .map(|entry| (entry.metadata().and_then(|metadata| metadata.modified()).ok(), entry.path()))
            .collect();
        files.sort();
        files.into_iter().map(|(_, path)| path).collect()
    }

    /// Returns the project's root, where commands run.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// Returns the folder that `HOME` names.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Prepares the binary's run with these arguments.
    pub fn command<A: Into<OsString>>(&self, arguments: impl IntoIterator<Item = A>) -> Invocation {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Invocation::new(self, &self.binary, arguments)
    }

    /// Runs the binary with these arguments to its end.
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

/// What a file can be made of.
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

/// JSON is laid out with one value on a line.
impl Content for &Value {
    fn into_bytes(self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut serializer = Serializer::with_formatter(&mut out, PrettyFormatter::with_indent(b" "));
        serde::Serialize::serialize(self, &mut serializer).expect("JSON can be written to memory");
        out
    }
}

impl Content for Value {
    fn into_bytes(self) -> Vec<u8> {
        (&self).into_bytes()
    }
}

/// Returns a path with what links in it stand for, or as it is where it cannot be looked up.
fn real_path(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
