//! Which difficulties should get more cases, since the agent fails them often.

use std::collections::HashMap;
use std::fmt;

use karat_core::case::{Case, Difficulty};
use karat_core::registry::same_name;
use karat_core::result::{EarlierCase, EarlierResult, Outcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Plan;

/// With fewer verdicts a rate says nothing.
pub const LEAST_JUDGED: usize = 5;

/// From which share of failures on (in percent) a difficulty gets how many times its cases, as a fraction.
const STEPS: [(usize, (usize, usize)); 2] = [(30, (3, 2)), (15, (5, 4))];

/// A difficulty that should get more cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Growth {
    pub difficulty: Difficulty,
    /// Cases with a verdict, each by its newest one.
    pub judged: usize,
    pub failed: usize,
    /// What the plan says without this.
    pub wanted: usize,
    pub proposed: usize,
}

/// Proposes more cases for the difficulties that fail often: from 15 % on a quarter more, from 30 % on half as many
/// more. Of each of the tool's cases the newest verdict counts; an error is none.
///
/// The share is added to what the formula wants, never to what is there, so that a tool that goes on failing does not
/// grow without end.
pub fn propose<'r>(plan: &Plan, cases: &[Case], results: impl IntoIterator<Item = &'r EarlierResult>) -> Vec<Growth> {
    let mut results: Vec<&EarlierResult> =
        results.into_iter().filter(|result| same_name(&result.tool_name, &plan.tool)).collect();
    // Run ids grow with time, so that they decide between equal times.
    results.sort_by(|left, right| (&left.timestamp, &left.run_id).cmp(&(&right.timestamp, &right.run_id)));
    // The newest comes last, and stays.
    let verdicts: HashMap<&str, bool> = results
        .iter()
        .flat_map(|result| &result.cases)
        .filter_map(|case| failed(case).map(|failed| (case.id.as_str(), failed)))
        .collect();
    let tiers = plan.tiers.iter().filter_map(|tier| {
        let judged = cases.iter().filter(|case| case.difficulty == Some(tier.difficulty));
        let judged: Vec<bool> = judged.filter_map(|case| verdicts.get(case.id.as_str()).copied()).collect();
        let failed = judged.iter().filter(|failed| **failed).count();
        let proposed = grown(tier.wanted, judged.len(), failed)?;
        let growth =
            Growth { difficulty: tier.difficulty, judged: judged.len(), failed, wanted: tier.wanted, proposed };
        (proposed > tier.wanted && proposed > tier.existing).then_some(growth)
    });
    tiers.collect()
}

/// Tells whether a case failed; of several tries one is enough. None where there is no verdict.
fn failed(case: &EarlierCase) -> Option<bool> {
    match (case.trials, case.outcome) {
        (Some(tries), _) if tries.failed > 0 => Some(true),
        (Some(tries), _) if tries.passed > 0 => Some(false),
        (Some(_), _) | (None, Outcome::Errored) => None,
        (None, outcome) => Some(outcome == Outcome::Failed),
    }
}

fn grown(wanted: usize, judged: usize, failed: usize) -> Option<usize> {
    if judged < LEAST_JUDGED {
        return None;
    }
    let (_, (times, of)) = STEPS.into_iter().find(|(percent, _)| failed * 100 >= percent * judged)?;
    Some((wanted * times).div_ceil(of))
}

impl Plan {
    /// Returns the plan with what was proposed.
    #[must_use]
    pub fn grown(&self, growths: &[Growth]) -> Self {
        let mut plan = self.clone();
        for tier in &mut plan.tiers {
            let proposed = growths.iter().filter(|growth| growth.difficulty == tier.difficulty);
            tier.wanted = proposed.map(|growth| growth.proposed).fold(tier.wanted, usize::max);
        }
        plan
    }
}

/// One line for a person.
impl fmt::Display for Growth {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { difficulty, judged, failed, wanted, proposed } = self;
        // Rounded down, so that it never seems to reach a step that it does not.
        let percent = failed * 100 / judged.max(&1);
        let name = difficulty.name();
        write!(out, "{name}: {failed} of {judged} cases fail ({percent} %), so {proposed} cases instead of {wanted}")
    }
}

#[cfg(test)]
mod tests {
    use karat_core::trials::TrialCounts;
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::TierPlan;

    fn plan(wanted: usize, existing: usize) -> Plan {
        let tiers = vec![TierPlan { difficulty: Difficulty::Edge, wanted, existing }];
        Plan { tool: "get_weather".to_owned(), tools: 3, overlaps: 0, clusters: 0, tiers }
    }

    fn case(number: usize) -> Case {
        let value = json!({
            "id": format!("ls-get-weather-{number:03}"), "difficulty": "edge", "input": {"message": "m"}, "expect": {}
        });
        Case::read_one(&value).expect("a case")
    }

    fn result(timestamp: &str, outcomes: impl IntoIterator<Item = Outcome>) -> EarlierResult {
        let case = |(number, outcome): (usize, Outcome)| EarlierCase {
            id: format!("ls-get-weather-{:03}", number + 1),
            description: String::new(),
            outcome,
            error: None,
            trials: None,
        };
        EarlierResult {
            run_id: timestamp.to_owned(),
            timestamp: timestamp.to_owned(),
            tier: karat_core::case::Tier::Labeled,
            tool_name: "get-weather".to_owned(),
            agent_endpoint: None,
            metadata: karat_core::result::EarlierMetadata::default(),
            cases: outcomes.into_iter().enumerate().map(case).collect(),
        }
    }

    fn outcomes(failed: usize, passed: usize, errored: usize) -> Vec<Outcome> {
        let times = |outcome, count| std::iter::repeat_n(outcome, count);
        times(Outcome::Failed, failed)
            .chain(times(Outcome::Passed, passed))
            .chain(times(Outcome::Errored, errored))
            .collect()
    }

    #[rstest]
    #[case::just_fifteen(20, 3, 17, 0, Some(25))]
    #[case::below_fifteen(20, 2, 18, 0, None)]
    #[case::thirty(20, 6, 14, 0, Some(30))]
    #[case::below_thirty(20, 5, 15, 0, Some(25))]
    #[case::below_thirty_of_thousands(20, 2999, 7001, 0, Some(25))]
    #[case::rounded_up(5, 1, 4, 0, Some(7))]
    #[case::half_more_rounded_up(5, 5, 0, 0, Some(8))]
    #[case::too_few(20, 4, 0, 0, None)]
    #[case::errors_are_no_verdicts(20, 4, 0, 20, None)]
    #[case::errors_do_not_thin(20, 3, 17, 60, Some(25))]
    #[case::nothing_wanted(0, 5, 0, 0, None)]
    fn a_difficulty_grows(
        #[case] wanted: usize,
        #[case] failed: usize,
        #[case] passed: usize,
        #[case] errored: usize,
        #[case] proposed: Option<usize>,
    ) {
        let cases: Vec<Case> = (1..=failed + passed + errored).map(case).collect();
        let growths = propose(&plan(wanted, 0), &cases, [&result("1", outcomes(failed, passed, errored))]);
        assert_eq!(growths.first().map(|growth| growth.proposed), proposed);
        let grown = plan(wanted, 0).grown(&growths);
        assert_eq!(grown.tiers[0].wanted, proposed.unwrap_or(wanted));
    }

    #[test]
    fn the_newest_verdict_counts() {
        let cases: Vec<Case> = (1..=5).map(case).collect();
        let bad = result("2", outcomes(5, 0, 0));
        let good = result("1", outcomes(0, 5, 0));
        let none = result("3", outcomes(0, 0, 5));
        assert_eq!(propose(&plan(6, 5), &cases, [&bad, &good, &none])[0].failed, 5);
        let better = result("4", outcomes(0, 5, 0));
        assert_eq!(propose(&plan(6, 5), &cases, [&better, &bad, &good]), []);
        let other = EarlierResult { tool_name: "other".to_owned(), ..bad };
        assert_eq!(propose(&plan(6, 5), &cases, [&other]), []);
    }

    #[test]
    fn what_is_there_already_is_not_proposed() {
        let cases: Vec<Case> = (1..=9).map(case).collect();
        let bad = result("1", outcomes(9, 0, 0));
        assert_eq!(propose(&plan(6, 9), &cases, [&bad]), []);
        assert_eq!(propose(&plan(6, 8), &cases, [&bad])[0].proposed, 9);
    }

    #[test]
    fn one_try_that_fails_is_enough() {
        let tried = |passed, fails, errored| {
            let trials = Some(TrialCounts { passed, failed: fails, errored });
            failed(&EarlierCase { trials, ..result("1", [Outcome::Errored]).cases[0].clone() })
        };
        assert_eq!([tried(9, 1, 1), tried(1, 0, 9), tried(0, 0, 3)], [Some(true), Some(false), None]);
    }

    #[test]
    fn a_person_reads_a_line() {
        let growth = Growth { difficulty: Difficulty::Ambiguous, judged: 27, failed: 8, wanted: 27, proposed: 34 };
        insta::assert_snapshot!(growth, @"ambiguous: 8 of 27 cases fail (29 %), so 34 cases instead of 27");
    }

    proptest! {
        #[test]
        fn laws(wanted in 0_usize..1000, judged in 0_usize..1000, failed in 0_usize..1000) {
            let failed = failed.min(judged);
            if let Some(proposed) = grown(wanted, judged, failed) {
                prop_assert!(judged >= LEAST_JUDGED && failed * 100 >= judged * 15);
                prop_assert!(proposed >= wanted && proposed <= wanted + wanted.div_ceil(2));
                // One failure more never asks for less.
                prop_assert!(grown(wanted, judged, judged.min(failed + 1)) >= Some(proposed));
            }
        }
    }
}
