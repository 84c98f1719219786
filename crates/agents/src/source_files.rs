//! The files of the project that define an agent.

use std::path::{Path, PathBuf};

use crate::function::Language;

/// Returns the files of an agent that is a function or a program of the project in `root`.
pub fn source_files(endpoint: &str, root: &Path) -> Vec<PathBuf> {
    let Some((kind, name)) = endpoint.split_once(':') else { return Vec::new() };
    let candidates: Vec<PathBuf> = match (Language::from_kind(kind), kind) {
        (Some(language), _) => language.source_candidates(name, root),
        (None, "command") => shell_words::split(name).unwrap_or_default().iter().map(|word| root.join(word)).collect(),
        _ => Vec::new(),
    };
    candidates.into_iter().filter(|path| path.is_file()).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("python:agent:answer", &["agent.py"])]
    #[case("python:bot.core:answer", &["bot/core.py"])]
    #[case("python:bot:answer", &["bot/__init__.py"])]
    #[case("python:os.path:join", &[])]
    #[case("node:web/agent.mjs#answer", &["web/agent.mjs"])]
    #[case("command:python3 'agent.py' --fast", &["agent.py"])]
    #[case("http://127.0.0.1:3000", &[])]
    fn finds_the_files_of_an_agent(#[case] endpoint: &str, #[case] expected: &[&str]) {
        let root = tempfile::tempdir().expect("a folder");
        for file in ["agent.py", "bot/core.py", "bot/__init__.py", "web/agent.mjs"] {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("writable");
            std::fs::write(path, "").expect("writable");
        }
        let expected: Vec<PathBuf> = expected.iter().map(|file| root.path().join(file)).collect();
        assert_eq!(source_files(endpoint, root.path()), expected);
    }
}
