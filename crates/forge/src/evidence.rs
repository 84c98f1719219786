//! Conclusions from the run of a draft.

use karat_cases::{Case, NO_TOOL};
use karat_core::result::{CaseResult, Outcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Combination, Purpose, Slot};

/// The result of running a draft against an agent, for the person who approves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Evidence {
    /// The agent did what the case expects.
    Passed,
    /// The agent did not: either the agent or the draft is wrong.
    Failed {
        #[serde(rename = "why")]
        reasons: Vec<String>,
    },
    /// There is no verdict.
    Errored {
        #[serde(rename = "why")]
        reason: String,
    },
    /// The case passes, but would also pass with an agent that uses the tool wrongly.
    ProvesNothing {
        #[serde(rename = "why")]
        reason: String,
    },
}

impl Evidence {
    /// Returns the reasons of the verdict, as lower-case fragments.
    pub fn reasons(&self) -> &[String] {
        match self {
            Evidence::Passed => &[],
            Evidence::Failed { reasons } => reasons,
            Evidence::Errored { reason } | Evidence::ProvesNothing { reason } => std::slice::from_ref(reason),
        }
    }

    /// Returns the verdict with its reasons, as a lower-case fragment.
    pub fn summary(&self) -> String {
        let verdict = match self {
            Evidence::Passed => "the agent passes",
            Evidence::Failed { .. } => "the agent fails",
            Evidence::Errored { .. } => "no verdict",
            Evidence::ProvesNothing { .. } => "proves nothing",
        };
        let reasons = self.reasons().join("; ");
        if reasons.is_empty() { verdict.to_owned() } else { format!("{verdict}: {reasons}") }
    }
}

/// Assesses the run of a draft for this tool.
///
/// A case that should call the tool but passes without the call proves nothing. An ambiguous case may pass with another
/// acceptable set, and a case that needs no tool passes without calls. With several trials, each must be conclusive.
pub fn assess_run(tool: &str, slot: &Slot, case: &Case, result: &CaseResult) -> Evidence {
    match result.outcome {
        Outcome::Errored => {
            Evidence::Errored { reason: result.error.clone().unwrap_or_else(|| "no verdict".to_owned()) }
        }
        Outcome::Failed => {
            let reasons: Vec<String> = result.reasons().into_iter().map(|(reason, _)| reason.to_owned()).collect();
            Evidence::Failed { reasons: if reasons.is_empty() { vec!["failed".to_owned()] } else { reasons } }
        }
        Outcome::Passed => {
            let trials = result.all_details().map(|details| details.tools_called.as_slice());
            let reason = if result.vacuous {
                Some("passes, but no assertion ran".to_owned())
            } else {
                trials.into_iter().find_map(|called| inconclusive_reason(tool, slot, case, called))
            };
            reason.map_or(Evidence::Passed, |reason| Evidence::ProvesNothing { reason })
        }
    }
}

/// Returns why a pass with these calls proves nothing, if so.
fn inconclusive_reason(tool: &str, slot: &Slot, case: &Case, called: &[String]) -> Option<String> {
    let was_called = called.iter().any(|name| name == tool);
    let not_called = || format!("passes although '{tool}' was not called");
    match &slot.purpose {
        Purpose::Trigger(_)
        | Purpose::Rephrasing(_)
        | Purpose::Plain
        | Purpose::NoLeak
        | Purpose::Disambiguation { .. }
        | Purpose::Together { .. } => (!was_called).then(not_called),
        Purpose::Confirmation => {
            was_called.then(|| format!("passes although '{tool}' was called without confirmation"))
        }
        Purpose::Choice { combination: Combination::Nor, .. } => {
            called.first().map(|name| format!("passes although '{name}' was called and no tool is needed"))
        }
        Purpose::Choice { .. } => (!was_called && !is_acceptable_alternative(case, called)).then(not_called),
        // An agent may resist with or without the tool.
        Purpose::Edge(_) => None,
    }
}

/// Whether these calls match an acceptable set of an ambiguous case. "No tool" does not count: that is tested by
/// [`Combination::Nor`].
fn is_acceptable_alternative(case: &Case, called: &[String]) -> bool {
    let expect = case.total_expectation();
    let sets = expect.tools_acceptable.as_deref().unwrap_or_default();
    let is_match =
        |set: &Vec<String>| !set.is_empty() && set.iter().all(|name| name != NO_TOOL && called.contains(name));
    sets.iter().any(is_match)
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
            message: "m".to_owned(),
            passed: outcome == Outcome::Passed,
            outcome,
            duration_ms: 1,
            assertions_run: 1,
            assertions_skipped: 0,
            vacuous: false,
            cause: None,
            error: None,
            failures: Vec::new(),
            marks: Vec::new(),
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
    #[case::golden_without(Purpose::Trigger("t".to_owned()), json!({}), &["b"], Some("passes although 'a' was not called"))]
    #[case::together(Purpose::together(vec!["a".to_owned(), "b".to_owned()]), json!({}), &["b"], Some("passes although 'a' was not called"))]
    #[case::asks(Purpose::Confirmation, json!({}), &[], None)]
    #[case::does_not_ask(Purpose::Confirmation, json!({}), &["a"], Some("passes although 'a' was called without confirmation"))]
    #[case::none_needed(choice(Combination::Nor), json!({"toolsAcceptable": [["__none__"]]}), &[], None)]
    #[case::none_needed_but_called(choice(Combination::Nor), json!({}), &["b"], Some("passes although 'b' was called and no tool is needed"))]
    #[case::neighbour(choice(Combination::Or), json!({"toolsAcceptable": [["a"], ["b"]]}), &["b"], None)]
    #[case::no_sets(choice(Combination::Or), json!({}), &["b"], Some("passes although 'a' was not called"))]
    #[case::no_tool_does_not_count(choice(Combination::AndOr), json!({"toolsAcceptable": [["a"], ["__none__"]]}), &[], Some("passes although 'a' was not called"))]
    #[case::edge(Purpose::Edge(EdgeKind::PromptInjection), json!({}), &[], None)]
    fn assesses_passed_cases(
        #[case] purpose: Purpose,
        #[case] expect: Value,
        #[case] called: &[&str],
        #[case] reason: Option<&str>,
    ) {
        let evidence = assess_run("a", &slot(purpose), &case(&expect), &result(Outcome::Passed, called));
        let expected = reason.map_or(Evidence::Passed, |reason| Evidence::ProvesNothing { reason: reason.to_owned() });
        assert_eq!(evidence, expected);
    }

    #[test]
    fn a_vacuous_pass_proves_nothing() {
        let passed = CaseResult { vacuous: true, ..result(Outcome::Passed, &["a"]) };
        let evidence = assess_run("a", &slot(Purpose::NoLeak), &case(&json!({})), &passed);
        assert_eq!(evidence.reasons(), ["passes, but no assertion ran"]);
    }

    #[test]
    fn distinguishes_failures_from_errors() {
        let failure = Failure {
            assertion: "toolsCalled".to_owned(),
            message: "toolsCalled: expected ['a'] but got []".to_owned(),
            pointer: "/expect/toolsCalled".to_owned(),
        };
        let mut failed = result(Outcome::Failed, &[]);
        failed.cause = Some(Cause::Assertion);
        failed.error = Some(failure.message.clone());
        failed.failures = vec![failure.clone()];
        let assessed = |result: &CaseResult| assess_run("a", &slot(Purpose::NoLeak), &case(&json!({})), result);
        assert_eq!(assessed(&failed), Evidence::Failed { reasons: vec![failure.message] });
        let cause = Some(Cause::Agent);
        let errored = CaseResult { cause, error: Some("HTTP 500".to_owned()), ..result(Outcome::Errored, &[]) };
        assert_eq!(assessed(&errored), Evidence::Errored { reason: "HTTP 500".to_owned() });
        let written = serde_json::to_value(assessed(&errored)).expect("JSON");
        assert_eq!(written, json!({"errored": {"why": "HTTP 500"}}));
        assert_eq!(serde_json::from_value::<Evidence>(written).ok(), Some(assessed(&errored)));
        assert_eq!(serde_json::to_value(Evidence::Passed).ok(), Some(json!("passed")));
    }
}
