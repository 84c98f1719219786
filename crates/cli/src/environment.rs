//! The only place of the command line that looks at the process's environment.

use std::io::IsTerminal;
use std::path::PathBuf;

use karat_workflows::settings::Surroundings;

/// What the process was started in.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Environment {
    /// What workflows need to know.
    pub(crate) process: Surroundings,
    /// What `KARAT_LOG` says is to be logged.
    pub(crate) log: Option<String>,
    /// The editor that the person likes.
    pub(crate) editor: Option<String>,
    pub(crate) stdin_is_terminal: bool,
    pub(crate) stdout_is_terminal: bool,
    pub(crate) stderr_is_terminal: bool,
    /// The columns of the terminal that stdout is, where it is one.
    pub(crate) columns: Option<usize>,
    /// The columns of the terminal that stderr is, where it is one.
    pub(crate) talk_columns: Option<usize>,
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
            process: Surroundings {
                current_dir: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
                config: variable("KARAT_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from),
                guest: path_variable("KARAT_GUEST"),
                user_name: first_set(&["GIT_AUTHOR_NAME", "USER", "LOGNAME", "USERNAME"]),
                ci: set("CI"),
            },
            log: first_set(&["KARAT_LOG"]),
            editor: first_set(&["VISUAL", "EDITOR"]),
            stdin_is_terminal: std::io::stdin().is_terminal(),
            stdout_is_terminal: std::io::stdout().is_terminal(),
            stderr_is_terminal: std::io::stderr().is_terminal(),
            columns: columns_of(&console::Term::stdout()).or(columns),
            talk_columns: columns_of(&console::Term::stderr()).or(columns),
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
