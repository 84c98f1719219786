//! Environment variables, and variables of a project's `.env`.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use karat_core::redact::Redactor;
use serde_json::Value;

use crate::error::Error;

/// Whether a program is on the search path.
pub(crate) fn is_on_search_path(name: &Path) -> bool {
    let with_suffix = format!("{}{}", name.display(), std::env::consts::EXE_SUFFIX);
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(name).is_file() || folder.join(&with_suffix).is_file())
}

/// Returns the part of the environment that is safe to pass to third-party programs; the rest may have secrets.
pub(crate) fn safe_environment() -> BTreeMap<String, String> {
    const NAMES: [&str; 18] = [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "TERM",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "TZ",
        "TMPDIR",
        "SYSTEMROOT",
        "SYSTEMDRIVE",
        "TEMP",
        "TMP",
        "APPDATA",
        "LOCALAPPDATA",
        "USERPROFILE",
    ];
    NAMES.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))).collect()
}

/// The variables of a project. The environment takes precedence over `.env`.
#[derive(Clone, Default)]
pub struct Variables {
    /// Variables of `.env`. They are never added to the environment, so that child processes do not inherit them.
    file: BTreeMap<String, String>,
}

impl std::fmt::Debug for Variables {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Variables({} in .env)", self.file.len())
    }
}

impl Variables {
    /// Reads the `.env` in a project's root, if it exists.
    pub fn load(root: &Path) -> Result<Self, Error> {
        let path = root.join(".env");
        // A folder named `.env` is something else, for example a virtual environment.
        if path.is_dir() {
            return Ok(Self::default());
        }
        match std::fs::read(&path) {
            Ok(bytes) => Self::read(&bytes).map_err(|line| malformed(&path, line)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(Error::invalid(format!("cannot read {}: {error}", path.display()))),
        }
    }

    /// Parses a `.env`. The error is the number of the invalid line.
    fn read(bytes: &[u8]) -> Result<Self, usize> {
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        let text = std::str::from_utf8(bytes).map_err(|error| count_line_ends(&bytes[..error.valid_up_to()]) + 1)?;
        let mut lines = Lines { rest: text.as_bytes(), lines_read: 0 };
        let mut file = BTreeMap::new();
        for entry in dotenvy::from_read_iter(&mut lines) {
            match entry {
                // As in a shell, the last one wins.
                Ok((name, value)) => file.insert(name, value),
                Err(dotenvy::Error::LineParse(entry, _)) => {
                    return Err(lines.lines_read.saturating_sub(count_line_ends(entry.trim_end().as_bytes())).max(1));
                }
                Err(_) => return Err(lines.lines_read.max(1)),
            };
        }
        Ok(Self { file })
    }

    /// Returns the value of a variable. The environment takes precedence, even if the value is empty.
    pub fn get(&self, name: &str) -> Option<String> {
        match std::env::var(name) {
            Ok(value) => Some(value),
            Err(std::env::VarError::NotPresent) => self.file.get(name).cloned(),
            Err(std::env::VarError::NotUnicode(_)) => None,
        }
    }

    /// Whether `.env` has the variable.
    pub(crate) fn is_in_file(&self, name: &str) -> bool {
        self.file.contains_key(name)
    }

    /// Returns the names of all variables with this prefix, sorted.
    pub(crate) fn names_with_prefix(&self, prefix: &str) -> BTreeSet<String> {
        let of_process = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        of_process.chain(self.file.keys().cloned()).filter(|name| name.starts_with(prefix)).collect()
    }

    /// Registers values of `.env` that look like secrets.
    pub(crate) fn register_secrets(&self, redactor: &Redactor) {
        self.file.iter().for_each(|(name, value)| redactor.add_secrets_in(name, &Value::from(value.as_str())));
    }
}

/// Returns an error that does not quote the line, which may contain a secret.
fn malformed(path: &Path, line: usize) -> Error {
    Error::invalid(format!("{}:{line} is not of the form NAME=value", path.display()))
        .hint("put values with spaces or # in quotes")
}

fn count_line_ends(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').count() - 1
}

/// Returns one line per read, so that the number of an invalid line is known.
struct Lines<'t> {
    rest: &'t [u8],
    lines_read: usize,
}

impl io::Read for Lines<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let end = self.rest.iter().position(|byte| *byte == b'\n').map_or(self.rest.len(), |end| end + 1);
        let count = end.min(out.len());
        let (taken, rest) = self.rest.split_at(count);
        out[..count].copy_from_slice(taken);
        self.rest = rest;
        self.lines_read += usize::from(count == end && count > 0);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(String, String)>, usize> {
        Variables::read(text.as_bytes()).map(|variables| variables.file.into_iter().collect())
    }

    fn value(text: &str) -> String {
        read(&format!("X={text}")).expect(text).remove(0).1
    }

    #[test]
    fn parses_comments_quotes_and_exports() {
        let text = "\u{feff}# comment\r\nA=1\r\n\nexport B = two # comment\nC='a b'\nD=\"x\\ny\"\nE=\nA=last";
        let expected = [("A", "last"), ("B", "two"), ("C", "a b"), ("D", "x\ny"), ("E", "")];
        let expected: Vec<(String, String)> =
            expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        assert_eq!(read(text), Ok(expected));
        assert_eq!(read(""), Ok(Vec::new()));
    }

    #[test]
    fn expands_earlier_variables_unless_quoted() {
        let values = read("KARAT_TEST_A=1\nB=x${KARAT_TEST_A}\nC='$B'\nD=a\\$B").expect("valid");
        let values: Vec<&str> = values.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["x1", "$B", "a$B", "1"]);
        assert_eq!(value("pa#ss=word=="), "pa#ss=word==");
    }

    #[test]
    fn returns_the_number_of_the_invalid_line() {
        assert_eq!(read("A=1\nB=2\nno value\nC=3"), Err(3));
        assert_eq!(read("just text"), Err(1));
        assert_eq!(read("# c\n\nA='one\ntwo\n"), Err(3));
        assert_eq!(read("A=1\nB=two words\n"), Err(2));
        assert_eq!(read("A=1\nB=\"one\ntwo\" three four\nC=1"), Err(2));
        assert_eq!(Variables::read(b"A=1\n\nB=\xff\n").map(|_| ()), Err(3));
        // Longer than the read buffer.
        assert_eq!(read(&format!("A={}\nB", "x".repeat(100_000))), Err(2));
    }
}
