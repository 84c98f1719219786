//! Version requirements of Python packages.

use std::path::Path;

use super::imports::MAX_ANCESTORS;

/// Files with version requirements, the most exact first.
const FILES: [&str; 4] = ["uv.lock", "poetry.lock", "pyproject.toml", "requirements.txt"];

/// Returns the highest major version of a package that the project of a source allows, or `None` if unlimited.
pub(super) fn max_major_version(source: &Path, package: &str) -> Option<u64> {
    let folders = source.ancestors().skip(1).take(MAX_ANCESTORS);
    let files = folders.flat_map(|folder| FILES.map(|name| folder.join(name)));
    files.filter_map(|file| std::fs::read_to_string(file).ok()).find_map(|text| major_in(&text, package))
}

fn major_in(text: &str, package: &str) -> Option<u64> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    text.match_indices(package).find_map(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + package.len()..]);
        if before.ends_with(is_name) || after.starts_with(is_name) {
            return None;
        }
        // A lock file has the version on the next line.
        if before.ends_with("name = \"") {
            return parse_major(after.strip_prefix("\"\nversion = \"")?);
        }
        let line = after.lines().next().unwrap_or_default();
        let line = line.strip_prefix('[').and_then(|extras| extras.split_once(']')).map_or(line, |(_, rest)| rest);
        // Poetry's `package = "^2.3"` is an assignment, not a comparison.
        let line = line.trim_start();
        let line = match line.strip_prefix('=') {
            Some(rest) if !rest.starts_with('=') => rest.trim_start_matches([' ', '"', '\'']),
            _ => line,
        };
        let requirement = line.split(['"', '\'', ';', '#', ']']).next().unwrap_or_default();
        requirement.split(',').find_map(|part| max_major(part.trim()))
    })
}

/// Returns the highest major version that a comparison allows.
fn max_major(comparison: &str) -> Option<u64> {
    for exact in ["===", "==", "~=", "^", "~", "<="] {
        if let Some(version) = comparison.strip_prefix(exact) {
            return parse_major(version.trim_start());
        }
    }
    let below = comparison.strip_prefix('<')?.trim_start();
    let major = parse_major(below)?;
    let has_rest = below.split('.').skip(1).any(|part| part.bytes().any(|digit| (b'1'..=b'9').contains(&digit)));
    if has_rest { Some(major) } else { major.checked_sub(1) }
}

fn parse_major(version: &str) -> Option<u64> {
    let end = version.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(version.len());
    version[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("dependencies = [\n    \"fastmcp == 3.4.5\",\n]", Some(3))]
    #[case("\"fastmcp[cli]~=2.12\"", Some(2))]
    #[case("fastmcp>=2.3,<4\n", Some(3))]
    #[case("fastmcp<4.1\n", Some(4))]
    #[case("fastmcp = \"^2.11\"\n", Some(2))]
    #[case("name = \"fastmcp\"\nversion = \"3.4.5\"\n", Some(3))]
    #[case("fastmcp>=2.3\n", None)]
    #[case("fastmcp\n", None)]
    #[case("my-fastmcp==1.0\nfastmcp-extra==2.0\n", None)]
    #[case("# fastmcp is used here\n", None)]
    fn finds_the_highest_allowed_major_version(#[case] text: &str, #[case] expected: Option<u64>) {
        assert_eq!(major_in(text, "fastmcp"), expected);
    }
}
