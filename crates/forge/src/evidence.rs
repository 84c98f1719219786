//! What it says of a draft that it was run.

use karat_core::case::{Case, NO_TOOL};
use karat_core::result::{CaseResult, Outcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Combination, Purpose, Slot};

/// What came of running a draft against an agent, for the person who decides on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Evidence {
    /// The agent did what the case expects.
    Passed,
    /// It did not: the agent is wrong, or the draft is.
    Failed { why: Vec<String> },
    /// There is no verdict.
    Errored { why: String },
    /// The case passes, but would do so with an agent that has the tool wrong.
    ProvesNothing { why: String },
}

impl Evidence {
    /// Returns what a person reads behind the verdict, a lower-case fragment each.
    pub fn reasons(&self) -> &[String] {
        match self {
            Evidence::Passed => &[],
            Evidence::Failed { why } => why,
            Evidence::Errored { why } | Evidence::ProvesNothing { why } => std::slice::from_ref(why),
        }
    }
}

/// Concludes from a run what it says of a draft for this tool.
///
/// A case that is meant to call the tool and passes without proves nothing. Where other ways are right too, the case's
/// own sets say so: an ambiguous case may pass by a neighbour, one for which no tool is needed passes without any. In
/// several tries, each has to hold.
pub fn weigh(tool: &str, slot: &Slot, case: &Case, result: &CaseResult) -> Evidence {
    match result.outcome {
        Outcome::Errored => {
            Evidence::Errored { why: result.error.clone().unwrap_or_else(|| "there is no verdict".to_owned()) }
        }
        Outcome::Failed => {
            let why: Vec<String> = result.reasons().into_iter().map(|(reason, _)| reason.to_owned()).collect();
            Evidence::Failed { why: if why.is_empty() { vec!["it failed".to_owned()] } else { why } }
        }
        Outcome::Passed => {
            let tries = result.all_details().map(|details| details.tools_called.as_slice());
            let nothing = if result.vacuous {
                Some("it passes, but no assertion ran".to_owned())
            } else {
                tries.into_iter().find_map(|called| proves_nothing(tool, slot, case, called))
            };
            nothing.map_or(Evidence::Passed, |why| Evidence::ProvesNothing { why })
        }
    }
}

/// Returns why it means nothing that a case passed with these calls.
fn proves_nothing(tool: &str, slot: &Slot, case: &Case, called: &[String]) -> Option<String> {
    let was_called = called.iter().any(|name| name == tool);
    let not_called = || format!("it passes although '{tool}' was not called");
    match &slot.purpose {
        Purpose::Trigger(_)
        | Purpose::Rephrasing(_)
        | Purpose::Plain
        | Purpose::NoLeak
        | Purpose::Disambiguation { .. }
        | Purpose::Together { .. } => (!was_called).then(not_called),
        Purpose::AsksFirst => {
            was_called.then(|| format!("it passes although '{tool}' was called before anybody agreed"))
        }
        Purpose::Choice { combination: Combination::Nor, .. } => {
            called.first().map(|name| format!("it passes although '{name}' was called, and no tool is needed"))
        }
        Purpose::Choice { .. } => (!was_called && !may_go_without(case, called)).then(not_called),
        // Whoever resists does so with the tool or without.
        Purpose::Edge(_) => None,
    }
}

/// Tells whether an ambiguous case says that these calls are one of the right ways. That none is needed is no such way:
/// there are cases of their own for that.
fn may_go_without(case: &Case, called: &[String]) -> bool {
    let sets = case.expect.tools_acceptable.as_deref().unwrap_or_default();
    let is_way = |set: &Vec<String>| !set.is_empty() && set.iter().all(|name| name != NO_TOOL && called.contains(name));
    sets.iter().any(is_way)
}

#[cfg(test)]
mod tests {
    use karat_core::assertion::Failure;
    use karat_core::result::{CaseDetails, Cause};
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::EdgeKind;

    fn result(outcome: Outcome, called: &[&str]) -> CaseResult {
        CaseResult {
            id: "x".to_owned(),
            description: String::new(),
            passed: outcome == Outcome::Passed,
            outcome,
            duration_ms: 1,
            assertions_run: 1,
            assertions_skipped: 0,
            vacuous: false,
            cause: None,
            error: None,
            failures: Vec::new(),
            details: CaseDetails {
                tools_called: called.iter().map(|&name| name.to_owned()).collect(),
                ..CaseDetails::default()
            },
            trials: None,
        }
    }

    fn case(expect: &Value) -> Case {
        Case::read_one(&json!({"id": "x", "input": {"message": "m"}, "expect": expect})).expect("a case")
    }

    fn slot(purpose: Purpose) -> Slot {
        Slot { id: "x".to_owned(), purpose }
    }

    fn choice(combination: Combination) -> Purpose {
        Purpose::Choice { combination, others: vec!["b".to_owned()] }
    }

    #[rstest]
    #[case::called(Purpose::NoLeak, json!({}), &["a"], None)]
    #[case::golden_without(Purpose::Trigger("t".to_owned()), json!({}), &["b"], Some("it passes although 'a' was not called"))]
    #[case::together(Purpose::together(vec!["a".to_owned(), "b".to_owned()]), json!({}), &["b"], Some("it passes although 'a' was not called"))]
    #[case::asks(Purpose::AsksFirst, json!({}), &[], None)]
    #[case::does_not_ask(Purpose::AsksFirst, json!({}), &["a"], Some("it passes although 'a' was called before anybody agreed"))]
    #[case::none_needed(choice(Combination::Nor), json!({"toolsAcceptable": [["__none__"]]}), &[], None)]
    #[case::none_needed_but_called(choice(Combination::Nor), json!({}), &["b"], Some("it passes although 'b' was called, and no tool is needed"))]
    #[case::neighbour(choice(Combination::Or), json!({"toolsAcceptable": [["a"], ["b"]]}), &["b"], None)]
    #[case::no_sets(choice(Combination::Or), json!({}), &["b"], Some("it passes although 'a' was not called"))]
    #[case::none_is_no_way(choice(Combination::AndOr), json!({"toolsAcceptable": [["a"], ["__none__"]]}), &[], Some("it passes although 'a' was not called"))]
    #[case::edge(Purpose::Edge(EdgeKind::PromptInjection), json!({}), &[], None)]
    fn a_pass_is_weighed(
        #[case] purpose: Purpose,
        #[case] expect: Value,
        #[case] called: &[&str],
        #[case] why: Option<&str>,
    ) {
        let evidence = weigh("a", &slot(purpose), &case(&expect), &result(Outcome::Passed, called));
        let expected = why.map_or(Evidence::Passed, |why| Evidence::ProvesNothing { why: why.to_owned() });
        assert_eq!(evidence, expected);
    }

    #[test]
    fn a_pass_without_assertions_is_none() {
        let passed = CaseResult { vacuous: true, ..result(Outcome::Passed, &["a"]) };
        let evidence = weigh("a", &slot(Purpose::NoLeak), &case(&json!({})), &passed);
        assert_eq!(evidence.reasons(), ["it passes, but no assertion ran"]);
    }

    #[test]
    fn failures_and_errors_are_told_apart() {
        let failure = Failure {
            assertion: "toolsCalled".to_owned(),
            message: "toolsCalled: expected ['a'] but got []".to_owned(),
            pointer: "/expect/toolsCalled".to_owned(),
        };
        let mut failed = result(Outcome::Failed, &[]);
        failed.cause = Some(Cause::Assertion);
        failed.error = Some(failure.message.clone());
        failed.failures = vec![failure.clone()];
        let weighed = |result: &CaseResult| weigh("a", &slot(Purpose::NoLeak), &case(&json!({})), result);
        assert_eq!(weighed(&failed), Evidence::Failed { why: vec![failure.message] });
        let cause = Some(Cause::Agent);
        let errored = CaseResult { cause, error: Some("HTTP 500".to_owned()), ..result(Outcome::Errored, &[]) };
        assert_eq!(weighed(&errored), Evidence::Errored { why: "HTTP 500".to_owned() });
        let written = serde_json::to_value(weighed(&errored)).expect("JSON");
        assert_eq!(written, json!({"errored": {"why": "HTTP 500"}}));
        assert_eq!(serde_json::from_value::<Evidence>(written).ok(), Some(weighed(&errored)));
        assert_eq!(serde_json::to_value(Evidence::Passed).ok(), Some(json!("passed")));
    }
}
