//! The process environment; no other module of this crate reads it.

use std::io::IsTerminal;
use std::path::PathBuf;

use karat_workflows::settings::ProcessEnv;

#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent fact")]
pub(crate) struct Environment {
    /// The part that workflows need.
    pub(crate) process: ProcessEnv,
    /// The arguments without the name of the program.
    pub(crate) arguments: Vec<String>,
    /// The value of `KARAT_LOG`.
    pub(crate) log_filter: Option<String>,
    /// The value of `VISUAL` or `EDITOR`.
    pub(crate) editor: Option<String>,
    pub(crate) stdin_is_terminal: bool,
    pub(crate) stdout_is_terminal: bool,
    pub(crate) stderr_is_terminal: bool,
    /// Width of stdout, if it is a terminal.
    pub(crate) stdout_columns: Option<usize>,
    /// Width of stderr, if it is a terminal.
    pub(crate) stderr_columns: Option<usize>,
    /// Height of stderr, if it is a terminal.
    pub(crate) stderr_rows: Option<usize>,
    pub(crate) github_actions: bool,
    pub(crate) github_step_summary: Option<PathBuf>,
    /// The repository folder in a GitHub workflow.
    pub(crate) github_workspace: Option<PathBuf>,
    /// Whether the locale is not UTF-8.
    pub(crate) ascii_locale: bool,
    pub(crate) no_color: bool,
    pub(crate) force_color: bool,
}

impl Environment {
    /// Returns the current folder relative to the repository, which annotations need for their paths.
    pub(crate) fn repository_folder(&self) -> String {
        let workspace = self.github_workspace.as_deref().filter(|_| self.github_actions);
        let folder = workspace.and_then(|root| self.process.current_dir.strip_prefix(root).ok());
        folder.map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default()
    }

    pub(crate) fn from_process() -> Self {
        let is_enabled =
            |name: &str| variable(name).is_some_and(|value| !value.is_empty() && value != "0" && value != "false");
        let columns = variable("COLUMNS").and_then(|columns| columns.parse().ok());
        Self {
            process: ProcessEnv {
                current_dir: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
                config: variable("KARAT_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from),
                guest: path_variable("KARAT_GUEST"),
                user_name: first_non_empty(&["GIT_AUTHOR_NAME", "USER", "LOGNAME", "USERNAME"])
                    .or_else(system_user_name),
                ci: is_enabled("CI"),
            },
            arguments: std::env::args_os().skip(1).map(|text| text.to_string_lossy().into_owned()).collect(),
            log_filter: first_non_empty(&["KARAT_LOG"]),
            editor: first_non_empty(&["VISUAL", "EDITOR"]),
            stdin_is_terminal: std::io::stdin().is_terminal(),
            stdout_is_terminal: std::io::stdout().is_terminal(),
            stderr_is_terminal: std::io::stderr().is_terminal(),
            stdout_columns: terminal_columns(&console::Term::stdout()).or(columns),
            stderr_columns: terminal_columns(&console::Term::stderr()).or(columns),
            stderr_rows: console::Term::stderr().size_checked().map(|(rows, _)| usize::from(rows)),
            github_actions: variable("GITHUB_ACTIONS").as_deref() == Some("true"),
            github_step_summary: variable("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()).map(PathBuf::from),
            github_workspace: variable("GITHUB_WORKSPACE").filter(|path| !path.is_empty()).map(PathBuf::from),
            ascii_locale: is_ascii_locale(),
            no_color: variable("NO_COLOR").is_some_and(|value| !value.is_empty())
                || variable("TERM").as_deref() == Some("dumb"),
            force_color: is_enabled("CLICOLOR_FORCE") || is_enabled("FORCE_COLOR"),
        }
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns the first of these variables that is not blank.
fn first_non_empty(names: &[&str]) -> Option<String> {
    names.iter().filter_map(|name| variable(name)).find(|value| !value.trim().is_empty())
}

/// Returns the login name of the process's user. Containers often set no variable for it.
#[cfg(unix)]
fn system_user_name() -> Option<String> {
    let accounts = std::fs::read("/etc/passwd").ok()?;
    login_name(&String::from_utf8_lossy(&accounts), rustix::process::getuid().as_raw())
}

#[cfg(not(unix))]
fn system_user_name() -> Option<String> {
    None
}

/// Finds the login name of a user id in the lines `name:password:uid:…`.
#[cfg(unix)]
fn login_name(accounts: &str, uid: u32) -> Option<String> {
    let uid = uid.to_string();
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1) == Some(uid.as_str())).then(|| name.to_owned())
    })
}

fn path_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from)
}

fn terminal_columns(terminal: &console::Term) -> Option<usize> {
    let (_, columns) = terminal.size_checked()?;
    Some(usize::from(columns))
}

/// Whether a locale is set and is not UTF-8. CI machines often set none.
fn is_ascii_locale() -> bool {
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].iter().filter_map(|name| variable(name)).find(|value| !value.is_empty());
    locale.is_some_and(|locale| {
        let locale = locale.to_lowercase();
        !locale.contains("utf-8") && !locale.contains("utf8")
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn finds_the_login_name_of_a_user_id() {
        let accounts = "root:x:0:0:root:/root:/bin/sh\n# comment\nada:x:1000:100::/home/ada:/bin/sh\n:x:7:7::/:\n";
        assert_eq!(login_name(accounts, 1000).as_deref(), Some("ada"));
        assert_eq!(login_name(accounts, 0).as_deref(), Some("root"));
        assert_eq!(login_name(accounts, 100), None);
        assert_eq!(login_name(accounts, 7), None);
    }
}
