//! Finds the interpreter of a project.

use std::path::{Path, PathBuf};

use super::{FunctionError, Language};

/// Splits the configured interpreter into a program, relative to `root` if it has a `/`, and its arguments.
pub(super) fn parse_interpreter(text: &str, root: &Path) -> Result<(PathBuf, Vec<String>), FunctionError> {
    let words = shell_words::split(text).map_err(|_| FunctionError::UnclosedQuote)?;
    let (program, arguments) = words.split_first().ok_or(FunctionError::NoInterpreter)?;
    let path = if program.contains('/') { root.join(program) } else { PathBuf::from(program) };
    Ok((path, arguments.to_vec()))
}

/// Returns the interpreter of the project's environment, or else the name of one to look up on the PATH.
pub(super) fn find_interpreter(language: Language, root: &Path) -> PathBuf {
    if language == Language::JavaScript {
        return PathBuf::from("node");
    }
    let in_environment: &[&str] = if cfg!(windows) { &["Scripts", "python.exe"] } else { &["bin", "python"] };
    let active = std::env::var_os("VIRTUAL_ENV").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let environments = [Some(root.join(".venv")), active];
    let candidates =
        environments.into_iter().flatten().map(|folder| folder.join(in_environment.iter().collect::<PathBuf>()));
    let fallback = if cfg!(windows) { "python" } else { "python3" };
    candidates.into_iter().find(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(fallback))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefers_the_environment_of_the_project() {
        let root = tempfile::tempdir().expect("a folder");
        let bin = root.path().join(if cfg!(windows) { ".venv/Scripts" } else { ".venv/bin" });
        std::fs::create_dir_all(&bin).expect("writable");
        let python = bin.join(if cfg!(windows) { "python.exe" } else { "python" });
        assert_ne!(find_interpreter(Language::Python, root.path()), python);
        std::fs::write(&python, "").expect("writable");
        assert_eq!(find_interpreter(Language::Python, root.path()), python);
        assert_eq!(find_interpreter(Language::JavaScript, root.path()), Path::new("node"));
    }

    #[test]
    fn a_configured_interpreter_may_have_arguments() {
        let parsed = parse_interpreter("uv run --project 'my agent' python", Path::new("/p")).expect("valid");
        assert_eq!(parsed.0, Path::new("uv"));
        assert_eq!(parsed.1, ["run", "--project", "my agent", "python"]);
        assert_eq!(
            parse_interpreter("./venv/bin/python", Path::new("/p")).expect("valid").0,
            Path::new("/p/./venv/bin/python")
        );
        assert!(
            parse_interpreter("'python", Path::new("/p")).is_err() && parse_interpreter(" ", Path::new("/p")).is_err()
        );
    }
}
