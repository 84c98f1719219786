//! The ids of cases: `gs-TOOL-NNN` and the like, counted for each tool and never given out twice.

use std::collections::BTreeSet;

use crate::registry::same_name;

/// The highest number that is counted on from; a higher one is somebody's joke or mistake.
const HIGHEST_NUMBER: u64 = 999_999_999;

/// Returns the part of a tool's name that ids and file names have.
pub fn slug(tool: &str) -> String {
    tool.replace('_', "-")
}

/// Returns the ids that follow on those of a tool that begin with `prefix`: none that is taken is given out again.
pub fn next_ids<'i>(
    prefix: &'static str,
    tool: &str,
    taken: impl IntoIterator<Item = &'i str>,
) -> impl Iterator<Item = String> {
    let number = |id: &str| {
        let (of, number) = id.strip_prefix(prefix)?.rsplit_once('-')?;
        same_name(of, tool).then(|| number.parse::<u64>().ok()).flatten()
    };
    let taken: BTreeSet<u64> = taken.into_iter().filter_map(number).collect();
    let highest = taken.range(..=HIGHEST_NUMBER).next_back().copied().unwrap_or_default();
    let slug = slug(tool);
    let free = (highest + 1..u64::MAX).filter(move |number| !taken.contains(number));
    free.map(move |number| format!("{prefix}{slug}-{number:03}"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&[], &["gs-get-weather-001", "gs-get-weather-002"])]
    #[case(&["gs-get_weather-007", "gs-get-weather-004", "ls-get-weather-099"], &["gs-get-weather-008", "gs-get-weather-009"])]
    #[case(&["gs-get-weather-now-044", "gs-get-weather-x"], &["gs-get-weather-001", "gs-get-weather-002"])]
    #[case(&["gs-get-weather-999999999", "gs-get-weather-1000000001"], &["gs-get-weather-1000000000", "gs-get-weather-1000000002"])]
    fn ids_go_on(#[case] taken: &[&str], #[case] expected: &[&str]) {
        let ids: Vec<String> = next_ids("gs-", "get_weather", taken.iter().copied()).take(expected.len()).collect();
        assert_eq!(ids, expected);
    }
}
