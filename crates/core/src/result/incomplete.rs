//! Missing results of an incomplete run.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::EarlierResult;

/// The results that a run lacks, because it was interrupted, stopped at the first failure, or could not be stored completely.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Incomplete {
    /// Selected cases without a result.
    pub cases_not_run: usize,
    /// Result files that were not written, or were deleted.
    pub missing_files: usize,
}

impl Incomplete {
    /// Returns what a run lacks, given its results; `None` if it is complete. `unreadable` is the number of result
    /// files that exist but cannot be read.
    pub fn find<'r, C: 'r>(results: impl IntoIterator<Item = &'r EarlierResult<C>>, unreadable: usize) -> Option<Self> {
        let (mut file_count, mut planned, mut cases_not_run) = (unreadable, 0, 0);
        for result in results {
            file_count += 1;
            planned = planned.max(result.suites.unwrap_or(1));
            cases_not_run += result.summary.not_run;
        }
        Self { cases_not_run, missing_files: planned.saturating_sub(file_count) }.if_any()
    }

    /// Returns only the cases that did not run, for results that are a selection of a run's files.
    pub fn without_files(self) -> Option<Self> {
        Self { missing_files: 0, ..self }.if_any()
    }

    fn if_any(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

/// Shows what is missing: `10 cases did not run, 2 result files are missing`.
impl fmt::Display for Incomplete {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cases = match self.cases_not_run {
            0 => None,
            1 => Some("1 case did not run".to_owned()),
            count => Some(format!("{count} cases did not run")),
        };
        let files = match self.missing_files {
            0 => None,
            1 => Some("1 result file is missing".to_owned()),
            count => Some(format!("{count} result files are missing")),
        };
        let parts: Vec<String> = cases.into_iter().chain(files).collect();
        out.write_str(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn result(suites: Option<usize>, summary: &Value) -> EarlierResult {
        let mut result = json!({"runId": "r", "tier": "golden", "toolName": "x", "cases": [], "summary": summary});
        if let Some(suites) = suites {
            result["suites"] = json!(suites);
        }
        serde_json::from_value(result).expect("a result")
    }

    #[rstest]
    #[case(&[(None, 0)], 0, None)]
    #[case(&[(None, 1)], 0, Some("1 case did not run"))]
    #[case(&[(Some(2), 2), (Some(2), 8)], 0, Some("10 cases did not run"))]
    #[case(&[(Some(3), 1)], 0, Some("1 case did not run, 2 result files are missing"))]
    #[case(&[(Some(3), 0)], 1, Some("1 result file is missing"))]
    fn counts_what_is_missing(
        #[case] results: &[(Option<usize>, usize)],
        #[case] unreadable: usize,
        #[case] expected: Option<&str>,
    ) {
        let results: Vec<EarlierResult> =
            results.iter().map(|(suites, not_run)| result(*suites, &json!({ "notRun": not_run }))).collect();
        let incomplete = Incomplete::find(&results, unreadable).map(|incomplete| incomplete.to_string());
        assert_eq!(incomplete.as_deref(), expected);
    }

    #[test]
    fn ignores_summaries_of_other_runners() {
        assert_eq!(Incomplete::find(&[result(None, &json!("all passed"))], 0), None);
    }
}
