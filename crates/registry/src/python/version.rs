//! Which Python a project is for, as far as docstrings depend on it.

use std::path::Path;

/// What Python does with the indentation of a docstring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DocstringStyle {
    /// Up to 3.12 a docstring is what stands between its quotes.
    Kept,
    /// From 3.13 on the compiler takes the indentation away.
    Stripped,
}

/// Finds out from the project's `.python-version`, or from a `requires-python` that leaves only one answer.
pub(super) fn docstring_style(folder: &Path) -> Option<DocstringStyle> {
    for folder in folder.ancestors() {
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
        if let Some(style) = read(".python-version").and_then(|text| of_version(text.lines().next()?.trim())) {
            return Some(style);
        }
        if let Some(project) = read("pyproject.toml") {
            return of_project(&project);
        }
        if folder.join(".git").exists() {
            return None;
        }
    }
    None
}

fn of_version(version: &str) -> Option<DocstringStyle> {
    let version = version.strip_prefix("cpython-").unwrap_or(version);
    let mut parts = version.split('.').map(|part| part.trim().parse::<u32>());
    let (major, minor) = (parts.next()?.ok()?, parts.next()?.ok()?);
    Some(if (major, minor) >= (3, 13) { DocstringStyle::Stripped } else { DocstringStyle::Kept })
}

/// Reads the bounds of `requires-python`: only ones that settle the question are of use.
fn of_project(text: &str) -> Option<DocstringStyle> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix("requires-python"))?;
    let bounds = line.trim_start().strip_prefix('=')?.trim().trim_matches(['"', '\'']);
    bounds.split(',').map(str::trim).find_map(|bound| {
        if let Some(version) = bound.strip_prefix(">=") {
            return of_version(version).filter(|style| *style == DocstringStyle::Stripped);
        }
        if let Some(version) = bound.strip_prefix("==") {
            return of_version(version);
        }
        let version = bound.strip_prefix('<').filter(|version| !version.starts_with('='))?;
        (version.trim() == "3.13" || of_version(version)? == DocstringStyle::Kept).then_some(DocstringStyle::Kept)
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("requires-python = \">=3.13\"", Some(DocstringStyle::Stripped))]
    #[case("requires-python = \">=3.10\"", None)]
    #[case("requires-python = \">=3.10,<3.13\"", Some(DocstringStyle::Kept))]
    #[case("requires-python = \"==3.12.*\"", Some(DocstringStyle::Kept))]
    #[case("requires-python = \">=3.10,<4\"", None)]
    #[case("requires-python = \">=3.10,<4.0\"", None)]
    #[case("[project]\nname = \"x\"", None)]
    fn only_what_settles_it_counts(#[case] text: &str, #[case] style: Option<DocstringStyle>) {
        assert_eq!(of_project(text), style);
    }

    #[test]
    fn the_nearest_word_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("src/tools");
        std::fs::create_dir_all(&inner).expect("folders");
        std::fs::write(folder.path().join(".python-version"), "3.12\n").expect("a file");
        assert_eq!(docstring_style(&inner), Some(DocstringStyle::Kept));
        std::fs::write(folder.path().join("src/.python-version"), "cpython-3.14.1").expect("a file");
        assert_eq!(docstring_style(&inner), Some(DocstringStyle::Stripped));
    }
}
