//! Destinations of reports.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use karat_project::{check_writable_folder, write_atomically};

use crate::workflow_commands::break_commands;

/// The destination of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    Stdout,
    File(PathBuf),
}

impl Destination {
    /// Parses a command-line value: `-` is standard output, anything else a path.
    pub fn parse(text: &str) -> Self {
        match text {
            // Opening a redirected standard output by its path would truncate it while the shell still writes to it.
            "-" | "/dev/stdout" => Destination::Stdout,
            path => Destination::File(PathBuf::from(path)),
        }
    }

    /// Writes the text; an existing file is replaced atomically. On standard output, which may be the log of a GitHub
    /// workflow, no line is a workflow command.
    pub fn write(&self, text: &str) -> io::Result<()> {
        match self {
            Destination::Stdout => self.write_commands(&break_commands(text)),
            Destination::File(_) => self.write_commands(text),
        }
    }

    /// Checks that it can be written, without changing an existing file.
    pub fn check(&self) -> io::Result<()> {
        let Destination::File(path) = self else { return Ok(()) };
        if path.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
        }
        match fs::symlink_metadata(path) {
            // A pipe or device would block or notice that it is opened.
            Ok(metadata) if !metadata.is_file() => return Ok(()),
            Ok(metadata) if metadata.permissions().readonly() => return Err(read_only()),
            Ok(_) | Err(_) => {}
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        check_writable_folder(folder).map_err(|error| {
            let reason = match error.kind() {
                // The folder exists, but no file can be created in it.
                io::ErrorKind::NotFound => "no file can be created in its folder".to_owned(),
                _ => error.to_string(),
            };
            io::Error::new(error.kind(), reason)
        })
    }

    /// Writes text that may contain workflow commands.
    pub fn write_commands(&self, text: &str) -> io::Result<()> {
        match self {
            Destination::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(text.as_bytes())?;
                out.flush()
            }
            Destination::File(path) => write_file(path, text),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Destination::Stdout => out.write_str("standard output"),
            Destination::File(path) => write!(out, "{}", path.display()),
        }
    }
}

fn read_only() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only")
}

fn write_file(path: &Path, text: &str) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        // A rename would replace the pipe, the device or the link with a file.
        Ok(metadata) if !metadata.is_file() => return fs::write(path, text),
        // A rename only needs a writable directory.
        Ok(metadata) if metadata.permissions().readonly() => {
            return Err(read_only());
        }
        // Other errors occur when the file is written.
        Ok(_) | Err(_) => {}
    }
    write_atomically(path, |out| out.write_all(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dash_is_standard_output() {
        assert_eq!(Destination::parse("-"), Destination::Stdout);
        assert_eq!(Destination::parse("/dev/stdout"), Destination::Stdout);
        assert_eq!(Destination::parse("./-"), Destination::File(PathBuf::from("./-")));
    }

    #[test]
    fn creates_directories_and_leaves_no_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/report.xml");
        for text in ["first, and longer", "second"] {
            Destination::File(path.clone()).write(text).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_write_keeps_the_existing_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.xml");
        fs::write(&path, "before").unwrap();
        let mut permissions = fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&path, permissions).unwrap();

        assert_eq!(Destination::File(path.clone()).check().unwrap_err().to_string(), "the file is read-only");
        let error = Destination::File(path.clone()).write("after").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        for broken in [path.join("below a file"), folder.path().to_owned()] {
            assert!(Destination::File(broken.clone()).check().is_err());
            assert!(Destination::File(broken).write("x").is_err());
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn writes_through_links_and_into_devices() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        Destination::File(link.clone()).write("through").unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "through");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        Destination::parse("/dev/null").write("gone").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
