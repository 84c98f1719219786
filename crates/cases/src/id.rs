//! Case ids: `gs-TOOL-NNN` and so on, numbered per tool and never reused.

use std::collections::BTreeSet;

use crate::registry::same_name;

/// Higher numbers are ignored when the next number is chosen, since they are mistakes.
const MAX_NUMBER: u64 = 999_999_999;

/// Returns the form of a tool's name that ids and file names use.
pub fn slug(tool: &str) -> String {
    tool.replace('_', "-")
}

/// Returns the ids after the existing ones of a tool that start with `prefix`. No existing id is returned again.
pub fn next_ids<'i>(
    prefix: &'static str,
    tool: &str,
    existing: impl IntoIterator<Item = &'i str>,
) -> impl Iterator<Item = String> {
    let number = |id: &str| {
        // The name of a table's row follows.
        let (id, _) = id.split_once('#').unwrap_or((id, ""));
        let (name, number) = id.strip_prefix(prefix)?.rsplit_once('-')?;
        same_name(name, tool).then(|| number.parse::<u64>().ok()).flatten()
    };
    let used: BTreeSet<u64> = existing.into_iter().filter_map(number).collect();
    let highest = used.range(..=MAX_NUMBER).next_back().copied().unwrap_or_default();
    let slug = slug(tool);
    let free = (highest + 1..u64::MAX).filter(move |number| !used.contains(number));
    free.map(move |number| format!("{prefix}{slug}-{number:03}"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&[], &["gs-get-weather-001", "gs-get-weather-002"])]
    #[case(&["gs-get_weather-007", "gs-get-weather-004", "ls-get-weather-099"], &["gs-get-weather-008", "gs-get-weather-009"])]
    #[case(&["gs-get-weather-004#new-york", "gs-get-weather-004#5"], &["gs-get-weather-005", "gs-get-weather-006"])]
    #[case(&["gs-get-weather-now-044", "gs-get-weather-x"], &["gs-get-weather-001", "gs-get-weather-002"])]
    #[case(&["gs-get-weather-999999999", "gs-get-weather-1000000001"], &["gs-get-weather-1000000000", "gs-get-weather-1000000002"])]
    fn continues_after_existing_ids(#[case] existing: &[&str], #[case] expected: &[&str]) {
        let ids: Vec<String> = next_ids("gs-", "get_weather", existing.iter().copied()).take(expected.len()).collect();
        assert_eq!(ids, expected);
    }
}
