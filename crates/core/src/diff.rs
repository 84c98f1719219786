//! What changed between two results of the same suite.

use std::collections::HashMap;

use serde::Serialize;

use crate::result::{EarlierCase, Outcome};

/// How a case moved between two runs. A case without a verdict on either side moved nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// Passed before, fails now.
    Regression,
    /// Failed before, passes now.
    NewPass,
    StillPasses,
    StillFails,
    /// Errored before or now, so there is nothing to compare.
    NoVerdict,
    /// Not in the run before.
    Added,
    /// Not in the run now.
    Removed,
}

/// One case in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CaseDiff {
    pub id: String,
    pub description: String,
    pub change: Change,
    pub before: Option<Outcome>,
    pub now: Option<Outcome>,
    /// Why it does not pass now.
    pub error: Option<String>,
}

/// Compares two runs case by case: the current order first, then what is gone.
pub fn diff_cases(before: &[EarlierCase], now: &[EarlierCase]) -> Vec<CaseDiff> {
    let mut old: HashMap<&str, Outcome> = before.iter().map(|case| (case.id.as_str(), case.outcome)).collect();
    let mut diffs: Vec<CaseDiff> = now
        .iter()
        .map(|case| {
            let was = old.remove(case.id.as_str());
            CaseDiff {
                id: case.id.clone(),
                description: case.description.clone(),
                change: change(was, case.outcome),
                before: was,
                now: Some(case.outcome),
                error: case.error.clone(),
            }
        })
        .collect();
    let removed = before.iter().filter(|case| old.contains_key(case.id.as_str()));
    diffs.extend(removed.map(|case| CaseDiff {
        id: case.id.clone(),
        description: case.description.clone(),
        change: Change::Removed,
        before: Some(case.outcome),
        now: None,
        error: None,
    }));
    diffs
}

fn change(before: Option<Outcome>, now: Outcome) -> Change {
    match (before, now) {
        (None, _) => Change::Added,
        (Some(Outcome::Errored), _) | (_, Outcome::Errored) => Change::NoVerdict,
        (Some(Outcome::Passed), Outcome::Failed) => Change::Regression,
        (Some(Outcome::Failed), Outcome::Passed) => Change::NewPass,
        (Some(Outcome::Passed), Outcome::Passed) => Change::StillPasses,
        (Some(Outcome::Failed), Outcome::Failed) => Change::StillFails,
    }
}

/// Returns the ids that moved in one way.
pub fn ids_of(diffs: &[CaseDiff], change: Change) -> Vec<String> {
    diffs.iter().filter(|diff| diff.change == change).map(|diff| diff.id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Some(Outcome::Passed), Outcome::Failed, Change::Regression)]
    #[case(Some(Outcome::Failed), Outcome::Passed, Change::NewPass)]
    #[case(Some(Outcome::Passed), Outcome::Errored, Change::NoVerdict)]
    #[case(Some(Outcome::Errored), Outcome::Passed, Change::NoVerdict)]
    #[case(Some(Outcome::Failed), Outcome::Failed, Change::StillFails)]
    #[case(None, Outcome::Failed, Change::Added)]
    fn an_error_is_no_regression(#[case] before: Option<Outcome>, #[case] now: Outcome, #[case] expected: Change) {
        assert_eq!(change(before, now), expected);
    }
}
