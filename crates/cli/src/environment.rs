//! The only place that looks at the process's environment, and at a project's `.env`.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use karat_core::redact::Redactor;
use serde_json::Value;

use crate::failure::Failure;

/// What the process was started in.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Environment {
    pub(crate) current_dir: PathBuf,
    /// The configuration that `KARAT_CONFIG` names.
    pub(crate) config: Option<PathBuf>,
    /// The Python for eval functions that `KARAT_GUEST` names.
    pub(crate) guest: Option<PathBuf>,
    /// Who works here, as `GIT_AUTHOR_NAME` and the system say.
    pub(crate) user_name: Option<String>,
    /// The editor that the person likes.
    pub(crate) editor: Option<String>,
    pub(crate) stdin_is_terminal: bool,
    pub(crate) stdout_is_terminal: bool,
    pub(crate) stderr_is_terminal: bool,
    /// The columns of the terminal that stdout is, where it is one.
    pub(crate) columns: Option<usize>,
    /// The columns of the terminal that stderr is, where it is one.
    pub(crate) talk_columns: Option<usize>,
    /// Somebody runs this unattended.
    pub(crate) ci: bool,
    pub(crate) github_actions: bool,
    pub(crate) github_step_summary: Option<PathBuf>,
    /// The repository's folder in a workflow.
    pub(crate) github_workspace: Option<PathBuf>,
    /// The locale says that the terminal shows ASCII only.
    pub(crate) ascii_locale: bool,
    pub(crate) no_color: bool,
    pub(crate) force_color: bool,
}

impl Environment {
    pub(crate) fn real() -> Self {
        let set =
            |name: &str| variable(name).is_some_and(|value| !value.is_empty() && value != "0" && value != "false");
        let columns = variable("COLUMNS").and_then(|columns| columns.parse().ok());
        Self {
            current_dir: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            config: variable("KARAT_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from),
            guest: path_variable("KARAT_GUEST"),
            user_name: first_set(&["GIT_AUTHOR_NAME", "USER", "LOGNAME", "USERNAME"]),
            editor: first_set(&["VISUAL", "EDITOR"]),
            stdin_is_terminal: std::io::stdin().is_terminal(),
            stdout_is_terminal: std::io::stdout().is_terminal(),
            stderr_is_terminal: std::io::stderr().is_terminal(),
            columns: columns_of(&console::Term::stdout()).or(columns),
            talk_columns: columns_of(&console::Term::stderr()).or(columns),
            ci: set("CI"),
            github_actions: variable("GITHUB_ACTIONS").as_deref() == Some("true"),
            github_step_summary: variable("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()).map(PathBuf::from),
            github_workspace: variable("GITHUB_WORKSPACE").filter(|path| !path.is_empty()).map(PathBuf::from),
            ascii_locale: is_ascii_locale(),
            no_color: variable("NO_COLOR").is_some_and(|value| !value.is_empty())
                || variable("TERM").as_deref() == Some("dumb"),
            force_color: set("CLICOLOR_FORCE") || set("FORCE_COLOR"),
        }
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns the first of these variables that says something.
fn first_set(names: &[&str]) -> Option<String> {
    names.iter().filter_map(|name| variable(name)).find(|value| !value.trim().is_empty())
}

fn path_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Tells whether a program is found by its name alone.
pub(crate) fn is_on_search_path(name: &Path) -> bool {
    let with_suffix = format!("{}{}", name.display(), std::env::consts::EXE_SUFFIX);
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(name).is_file() || folder.join(&with_suffix).is_file())
}

/// Returns what of the process's environment the programs of others need; the rest, keys among it, is not theirs.
pub(crate) fn plain_environment() -> BTreeMap<String, String> {
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
    NAMES.iter().filter_map(|name| Some(((*name).to_owned(), variable(name)?))).collect()
}

/// The variables of a project: the process's, and those of its `.env` that the process does not have.
#[derive(Clone, Default)]
pub(crate) struct Variables {
    /// Of the file. They are never put into the process's environment: programs that we start do not see them.
    file: BTreeMap<String, String>,
}

impl std::fmt::Debug for Variables {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Variables({} in .env)", self.file.len())
    }
}

impl Variables {
    /// Reads the `.env` of a project's root, if there is one.
    pub(crate) fn of_project(root: &Path) -> Result<Self, Failure> {
        let path = root.join(".env");
        // A folder of that name is somebody else's.
        if path.is_dir() {
            return Ok(Self::default());
        }
        match std::fs::read(&path) {
            Ok(bytes) => Self::read(&bytes).map_err(|line| malformed(&path, line)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(Failure::invalid(format!("cannot read {}: {error}", path.display()))),
        }
    }

    /// Reads the text of a `.env`, or returns the line that is wrong.
    fn read(bytes: &[u8]) -> Result<Self, usize> {
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        let text = std::str::from_utf8(bytes).map_err(|error| count_line_ends(&bytes[..error.valid_up_to()]) + 1)?;
        let mut lines = Lines { rest: text.as_bytes(), handed_out: 0 };
        let mut file = BTreeMap::new();
        for entry in dotenvy::from_read_iter(&mut lines) {
            match entry {
                // As when a shell reads it: the last one counts.
                Ok((name, value)) => file.insert(name, value),
                Err(dotenvy::Error::LineParse(entry, _)) => {
                    return Err(lines.handed_out.saturating_sub(count_line_ends(entry.trim_end().as_bytes())).max(1));
                }
                Err(_) => return Err(lines.handed_out.max(1)),
            };
        }
        Ok(Self { file })
    }

    /// Returns a variable's value; what the process has counts, even if it is empty.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        match std::env::var(name) {
            Ok(value) => Some(value),
            Err(std::env::VarError::NotPresent) => self.file.get(name).cloned(),
            Err(std::env::VarError::NotUnicode(_)) => None,
        }
    }

    /// Tells whether the `.env` has the variable.
    pub(crate) fn is_in_file(&self, name: &str) -> bool {
        self.file.contains_key(name)
    }

    /// Takes note of what in the `.env` looks like a secret.
    pub(crate) fn learn(&self, redactor: &mut Redactor) {
        self.file.iter().for_each(|(name, value)| redactor.learn(name, &Value::from(value.as_str())));
    }
}

/// Says where, and never what: the line may hold a secret.
fn malformed(path: &Path, line: usize) -> Failure {
    Failure::invalid(format!("{}:{line} is not of the form NAME=value", path.display()))
        .hint("a value with spaces or # stands in quotes")
}

fn count_line_ends(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').count() - 1
}

/// Hands out a line at a time, so that it is known which lines were read when one of them is wrong.
struct Lines<'t> {
    rest: &'t [u8],
    handed_out: usize,
}

impl io::Read for Lines<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let end = self.rest.iter().position(|byte| *byte == b'\n').map_or(self.rest.len(), |end| end + 1);
        let count = end.min(out.len());
        let (taken, rest) = self.rest.split_at(count);
        out[..count].copy_from_slice(taken);
        self.rest = rest;
        self.handed_out += usize::from(count == end && count > 0);
        Ok(count)
    }
}

fn columns_of(terminal: &console::Term) -> Option<usize> {
    let (_, columns) = terminal.size_checked()?;
    Some(usize::from(columns))
}

/// Tells whether a locale was chosen and is not UTF-8; none at all is what build machines have.
fn is_ascii_locale() -> bool {
    let chosen =
        ["LC_ALL", "LC_CTYPE", "LANG"].iter().filter_map(|name| variable(name)).find(|value| !value.is_empty());
    chosen.is_some_and(|locale| {
        let locale = locale.to_lowercase();
        !locale.contains("utf-8") && !locale.contains("utf8")
    })
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
    fn values_are_read_as_people_write_them() {
        let text = "\u{feff}# comment\r\nA=1\r\n\nexport B = two # comment\nC='a b'\nD=\"x\\ny\"\nE=\nA=last";
        let expected = [("A", "last"), ("B", "two"), ("C", "a b"), ("D", "x\ny"), ("E", "")];
        let expected: Vec<(String, String)> =
            expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        assert_eq!(read(text), Ok(expected));
        assert_eq!(read(""), Ok(Vec::new()));
    }

    #[test]
    fn a_dollar_names_an_earlier_variable_unless_it_is_quoted() {
        let values = read("KARAT_TEST_A=1\nB=x${KARAT_TEST_A}\nC='$B'\nD=a\\$B").expect("valid");
        let values: Vec<&str> = values.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["x1", "$B", "a$B", "1"]);
        assert_eq!(value("pa#ss=word=="), "pa#ss=word==");
    }

    #[test]
    fn the_line_that_is_wrong_is_named() {
        assert_eq!(read("A=1\nB=2\nno value\nC=3"), Err(3));
        assert_eq!(read("just text"), Err(1));
        assert_eq!(read("# c\n\nA='one\ntwo\n"), Err(3));
        assert_eq!(read("A=1\nB=two words\n"), Err(2));
        assert_eq!(read("A=1\nB=\"one\ntwo\" three four\nC=1"), Err(2));
        assert_eq!(Variables::read(b"A=1\n\nB=\xff\n").map(|_| ()), Err(3));
        // Longer than any buffer.
        assert_eq!(read(&format!("A={}\nB", "x".repeat(100_000))), Err(2));
    }
}
