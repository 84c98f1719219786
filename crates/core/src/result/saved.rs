//! Runs read back from their result files, for `karat runs` and `karat show`.

use std::ops::Not;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{EarlierResult, Incomplete, SkippedCase};
use crate::assertion::{AssertionOutcome, AssertionVerdict, CallAlignment, Field, NearMiss};
use crate::outcome::Outcome;
use crate::security::SecurityDetails;
use crate::simulated_user::SimulatedUserDetails;
use crate::trace::ToolCall;
use crate::turn_details::TurnDetails;
use karat_cases::Tier;

/// The runs in the output folder.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat runs")]
pub struct RunList {
    /// The total number of runs.
    pub total: usize,
    /// The newest first.
    pub runs: Vec<RunSummary>,
}

/// The totals of a run, over its result files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunSummary {
    pub run_id: String,
    /// `latest`, `latest~1` for the one before, and so on.
    pub name: String,
    /// When the run started, ISO 8601; empty if unknown.
    pub timestamp: String,
    pub agents: Vec<String>,
    pub suites: usize,
    /// Result files of rubrics, which have scores in place of verdicts.
    pub rubric_suites: usize,
    pub cases: usize,
    pub passed: usize,
    /// Cases with a failed verdict, without errored ones.
    pub failed: usize,
    /// Cases without a verdict.
    pub errored: usize,
    /// Cases that were not run because of their `skip`; not part of `cases`.
    pub skipped: usize,
    /// Cases that passed in the baseline and fail now; null if no suite has a baseline.
    pub regressions: Option<usize>,
    /// Result files of this run that cannot be read; their cases are not counted.
    pub unreadable: usize,
    /// The missing results of the run; absent if it is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<Incomplete>,
}

impl RunSummary {
    /// Adds the totals of a result.
    pub fn add(&mut self, result: &SavedResult) {
        self.suites += 1;
        self.cases += result.cases.len();
        self.skipped += result.skipped.len();
        for case in &result.cases {
            match case.outcome() {
                Outcome::Passed => self.passed += 1,
                Outcome::Failed => self.failed += 1,
                Outcome::Errored => self.errored += 1,
            }
        }
        if result.baseline_run_id.is_some() {
            *self.regressions.get_or_insert_default() += result.regressions.len();
        }
        if let Some(agent) = result.agent_endpoint.as_ref().filter(|agent| !self.agents.contains(agent)) {
            self.agents.push(agent.clone());
        }
    }
}

/// A run, or one case of it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat show")]
pub struct SavedRun {
    pub run_id: String,
    /// When the run started, ISO 8601; empty if unknown.
    pub timestamp: String,
    /// The missing results of the run; absent if it is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<Incomplete>,
    pub suites: Vec<SavedSuite>,
    /// Result files of rubrics, which are not shown.
    pub rubric_files: Vec<String>,
}

/// The result of one eval file.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SavedSuite {
    pub tool_name: String,
    pub tier: Tier,
    /// The agent, if the result names it.
    pub agent: Option<String>,
    /// The eval file, relative to the project's folder.
    pub eval_file: String,
    /// Whether the eval file changed since the run, so that messages and assertions that the result lacks are unknown.
    pub eval_file_changed: bool,
    pub cases: Vec<SavedCase>,
    /// Cases that were not run because of their `skip`.
    pub skipped: Vec<SkippedCase>,
    /// Ids of selected cases without a result because of an interruption or `--fail-fast`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_run: Vec<String>,
}

/// The result of one case.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SavedCase {
    pub id: String,
    pub description: String,
    pub outcome: Outcome,
    /// Whether the case passed in the run's baseline and fails now.
    pub regression: bool,
    /// The message to the agent; null if it is no longer known.
    pub message: Option<String>,
    /// One, unless the run had several trials.
    pub trials: Vec<SavedTrial>,
}

/// One answer of the agent and its verdict.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SavedTrial {
    /// Null if the result does not say.
    pub outcome: Option<Outcome>,
    pub duration_ms: u64,
    /// Why the trial did not pass.
    pub error: Option<String>,
    /// The agent's answer; null if there is none.
    pub response: Option<String>,
    pub tool_calls: Vec<ToolCall>,
    /// Whether the agent does not report its tool calls.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub calls_unreported: bool,
    /// Why the agent stopped, if known; `maxTurns` if a model still called tools in its last turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Time from sending the message to the first text of the answer, if the reply was a stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<f64>,
    /// The assertions of the case, in the order in which they are judged.
    pub assertions: Vec<AssertionReport>,
    /// Tokens without a value.
    pub skipped_tokens: Vec<String>,
    pub warnings: Vec<String>,
    /// Strings that the response contains only with other capitals or typography.
    pub near_misses: Vec<NearMiss>,
    /// How the expected calls of a failed `calls` correspond to the calls made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<CallAlignment>,
    /// The verdicts on the task and on what must not happen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<SecurityDetails>,
    /// What the simulated user of the case did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated_user: Option<SimulatedUserDetails>,
    /// The turns of a conversation; the other members then describe all of it, with the last response.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<TurnDetails>,
}

/// An assertion and its verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssertionReport {
    /// The key in `expect`.
    pub assertion: String,
    /// The turn of a conversation, from 0; absent for the expectations of the case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<usize>,
    /// Whether the key is in `safety`.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub safety: bool,
    /// Null if the assertion was not judged: an earlier one failed, or it does not apply.
    pub verdict: Option<AssertionOutcome>,
    /// Whether the assertion was not judged because it does not apply to the answer.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub does_not_apply: bool,
    /// The expected and the actual value of each failed check.
    pub messages: Vec<String>,
}

/// A result file with the details of its cases.
pub type SavedResult = EarlierResult<RawCase>;

/// A case of a result file.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RawCase {
    pub id: String,
    #[serde(default)]
    description: String,
    /// In results of newer versions.
    #[serde(default)]
    message: Option<String>,
    passed: bool,
    #[serde(default)]
    outcome: Option<Outcome>,
    #[serde(default)]
    duration_ms: f64,
    #[serde(default)]
    error: Option<String>,
    // Other runners may use these for something else.
    #[serde(default)]
    failures: Value,
    #[serde(default)]
    details: Value,
    #[serde(default)]
    trials: Value,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawTrial {
    outcome: Option<Outcome>,
    duration_ms: f64,
    error: Option<String>,
    failures: Value,
    details: Value,
}

#[derive(Debug, Clone, Deserialize)]
struct RawFailure {
    #[serde(default)]
    assertion: String,
    message: String,
    #[serde(default)]
    pointer: String,
}

impl RawFailure {
    /// Whether the failed assertion is one of `safety`.
    fn is_safety(&self) -> bool {
        self.pointer.starts_with("/safety/")
    }

    /// Returns the turn of the failed assertion, from 0.
    fn turn(&self) -> Option<usize> {
        self.pointer.strip_prefix("/turns/")?.split('/').next()?.parse().ok()
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawDetails {
    response: Option<String>,
    tool_calls: Vec<ToolCall>,
    calls_unreported: bool,
    stop_reason: Option<String>,
    first_token_ms: Option<f64>,
    assertions: Vec<AssertionVerdict>,
    skipped_tokens: Vec<String>,
    warnings: Vec<String>,
    near_misses: Vec<NearMiss>,
    // Other runners may use these for something else.
    calls: Value,
    security: Value,
    simulated_user: Value,
    turns: Value,
}

impl RawCase {
    pub fn outcome(&self) -> Outcome {
        // Only karat distinguishes errors from failures.
        self.outcome.unwrap_or(if self.passed { Outcome::Passed } else { Outcome::Failed })
    }

    /// Converts to the output of `karat show`. `current` is the message and the keys of `expect` in the eval file, if
    /// the file is unchanged since the run.
    pub fn into_saved(self, regression: bool, current: Option<(String, &[String])>) -> SavedCase {
        let verdict = self.outcome();
        let (message, keys) = current.map_or((None, &[][..]), |(message, keys)| (Some(message), keys));
        let Self {
            id, description, message: own_message, outcome, duration_ms, error, failures, details, trials, ..
        } = self;
        let mut attempts: Vec<RawTrial> = trials.get("tries").cloned().map(parse_or_default).unwrap_or_default();
        if attempts.is_empty() {
            attempts.push(RawTrial { outcome, duration_ms, error, failures, details });
        }
        SavedCase {
            id,
            description,
            outcome: verdict,
            regression,
            message: own_message.or(message),
            trials: attempts.into_iter().map(|trial| trial.into_saved(keys)).collect(),
        }
    }
}

/// Parses a value, or returns the default: other runners may use the key for something else.
fn parse_or_default<T: DeserializeOwned + Default>(value: Value) -> T {
    serde_json::from_value(value).unwrap_or_default()
}

impl RawTrial {
    fn into_saved(self, keys: &[String]) -> SavedTrial {
        // Only an object is karat's: serde would also fill the fields from a list, in order.
        let details: RawDetails =
            if self.details.is_object() { parse_or_default(self.details) } else { RawDetails::default() };
        let failures: Vec<RawFailure> = parse_or_default(self.failures);
        let turns: Vec<TurnDetails> = parse_or_default(details.turns);
        let of_turns = turns.iter().enumerate().flat_map(|(turn, details)| {
            details.assertions.iter().cloned().map(move |assertion| (Some(turn), false, assertion))
        });
        let of_case = details.assertions.into_iter().map(|assertion| (None, false, assertion));
        let security: Option<SecurityDetails> = serde_json::from_value(details.security).ok();
        let of_safety = security.iter().flat_map(|security| &security.assertions);
        let of_safety = of_safety.map(|assertion| (None, true, assertion.clone()));
        let mut assertions: Vec<AssertionReport> = Vec::new();
        for (turn, safety, AssertionVerdict { assertion, verdict }) in of_turns.chain(of_case).chain(of_safety) {
            let (assertion, verdict) = (assertion.into_owned(), Some(verdict));
            let (does_not_apply, messages) = (false, Vec::new());
            assertions.push(AssertionReport { assertion, turn, safety, verdict, does_not_apply, messages });
        }
        for failure in failures {
            let (turn, safety) = (failure.turn(), failure.is_safety());
            let RawFailure { assertion, message, .. } = failure;
            let is_own = |report: &&mut AssertionReport| {
                report.assertion == assertion && (report.turn, report.safety) == (turn, safety)
            };
            if let Some(report) = assertions.iter_mut().find(is_own) {
                report.messages.push(message);
            } else {
                let (verdict, messages) = (Some(AssertionOutcome::Failed), vec![message]);
                let does_not_apply = false;
                assertions.push(AssertionReport { assertion, turn, safety, verdict, does_not_apply, messages });
            }
        }
        // Without a verdict, there was no answer to judge. What a turn expects is not known here.
        if !assertions.is_empty() && turns.is_empty() {
            let end = end_of_judging(&assertions);
            for key in keys {
                if assertions.iter().all(|report| report.safety || report.assertion != *key) {
                    assertions.push(AssertionReport {
                        assertion: key.clone(),
                        turn: None,
                        safety: false,
                        verdict: None,
                        does_not_apply: end.is_none_or(|end| position(key).is_some_and(|key| key < end)),
                        messages: Vec::new(),
                    });
                }
            }
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a duration is not negative")]
        let duration_ms = self.duration_ms.max(0.0).round() as u64;
        SavedTrial {
            outcome: self.outcome,
            duration_ms,
            error: self.error,
            response: details.response,
            tool_calls: details.tool_calls,
            calls_unreported: details.calls_unreported,
            stop_reason: details.stop_reason,
            first_token_ms: details.first_token_ms,
            assertions,
            skipped_tokens: details.skipped_tokens,
            warnings: details.warnings,
            near_misses: details.near_misses,
            calls: serde_json::from_value(details.calls).ok(),
            security,
            simulated_user: serde_json::from_value(details.simulated_user).ok(),
            turns,
        }
    }
}

/// Returns the position of an assertion in the order of judging.
fn position(assertion: &str) -> Option<usize> {
    Field::ALL.iter().position(|field| field.name() == assertion)
}

/// Returns the position after which no assertion was judged, because one had failed; `None` if all were judged.
fn end_of_judging(assertions: &[AssertionReport]) -> Option<usize> {
    let is_failed = |report: &&AssertionReport| {
        matches!(report.verdict, Some(AssertionOutcome::Failed | AssertionOutcome::Errored))
    };
    // A mistake in the case is found before the first assertion.
    let last = assertions.iter().filter(|report| !report.safety).max_by_key(|report| position(&report.assertion));
    last.filter(is_failed).map(|report| position(&report.assertion).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn read(cases: &Value) -> SavedResult {
        let result = json!({"runId": "r", "tier": "golden", "toolName": "x", "cases": cases});
        serde_json::from_value(result).expect("a result")
    }

    #[test]
    fn reads_cases_with_the_verdict_of_each_assertion() {
        let result = read(&json!([{
            "id": "a", "description": "d", "passed": false, "outcome": "failed", "durationMs": 12,
            "error": "responseContains: expected 'ok'",
            "failures": [{"assertion": "responseContains", "message": "responseContains: expected 'ok'", "pointer": "/x"}],
            "details": {
                "response": "no", "toolCalls": [{"name": "f", "params": {"a": 1}}],
                "assertions": [
                    {"assertion": "toolsCalled", "verdict": "passed"},
                    {"assertion": "responseContains", "verdict": "failed"}
                ]
            }
        }]));
        let keys = ["toolsCalled", "responseContains", "maxTokens"].map(str::to_owned);
        let case = result.cases[0].clone().into_saved(true, Some(("hello".to_owned(), &keys)));
        assert_eq!((case.outcome, case.message.as_deref(), case.regression), (Outcome::Failed, Some("hello"), true));
        let trial = &case.trials[0];
        assert_eq!((trial.response.as_deref(), trial.duration_ms, trial.tool_calls.len()), (Some("no"), 12, 1));
        let verdicts: Vec<_> =
            trial.assertions.iter().map(|report| (report.assertion.as_str(), report.verdict)).collect();
        assert_eq!(
            verdicts,
            [
                ("toolsCalled", Some(AssertionOutcome::Passed)),
                ("responseContains", Some(AssertionOutcome::Failed)),
                ("maxTokens", None),
            ]
        );
        assert_eq!(trial.assertions[1].messages, ["responseContains: expected 'ok'"]);
    }

    #[rstest]
    #[case::all_passed(&[("toolsCalled", "passed"), ("maxTokens", "passed")], true)]
    #[case::only_earlier_ones(&[("toolsCalled", "passed")], true)]
    #[case::an_earlier_one_failed(&[("toolsCalled", "failed")], false)]
    #[case::an_earlier_one_errored(&[("toolsCalled", "errored")], false)]
    #[case::a_later_one_failed(&[("toolsCalled", "passed"), ("maxTokens", "failed")], true)]
    #[case::all_failures(&[("toolsCalled", "failed"), ("maxTokens", "passed")], true)]
    fn an_assertion_without_a_verdict_failed_earlier_or_does_not_apply(
        #[case] judged: &[(&str, &str)],
        #[case] does_not_apply: bool,
    ) {
        let assertions: Vec<Value> =
            judged.iter().map(|(name, verdict)| json!({"assertion": name, "verdict": verdict})).collect();
        let result = read(&json!([{"id": "a", "passed": true, "details": {"assertions": assertions}}]));
        let keys = ["noToolErrors".to_owned()];
        let case = result.cases[0].clone().into_saved(false, Some(("m".to_owned(), &keys)));
        let report = case.trials[0].assertions.last().expect("a report");
        assert_eq!(
            (report.assertion.as_str(), report.verdict, report.does_not_apply),
            ("noToolErrors", None, does_not_apply)
        );
    }

    #[test]
    fn reads_results_of_other_runners() {
        let result = read(&json!([{"id": "a", "passed": true, "details": ["other"], "trials": 3}]));
        let case = result.cases[0].clone().into_saved(false, None);
        assert_eq!((case.outcome, case.message, case.trials.len()), (Outcome::Passed, None, 1));
        assert_eq!(case.trials[0].response, None);
    }
}
