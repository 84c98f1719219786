//! Gates: limits on a run's totals. If any are set, they decide the exit code.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::diff::ComparisonCounts;
use crate::result::{SuiteResult, TrialVerdict};
use crate::rubric::{RubricCaseResult, RubricSuite, RubricTotals};
use crate::security::PartCounts;
use crate::statistics::{percentile, rate};
use karat_json::{ObjectReader, Path, Problems, Subject, read_count, read_positive_number, type_name};

/// The gates of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Gates {
    /// Minimum share of judged trials that pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub pass_rate: Option<f64>,
    /// Maximum total cost of all answers, including those of the judge and of simulated users.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_cost_usd: Option<f64>,
    /// Maximum 95th percentile of the latency, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub p95_latency_ms: Option<f64>,
    /// Maximum number of cases that passed in the baseline and fail now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_regressions: Option<u64>,
    /// Minimum rubric score, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub rubric_score: Option<f64>,
    /// Minimum share of judged trials in which `safety` holds, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub safety_rate: Option<f64>,
}

/// A kind of gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Gate {
    PassRate,
    MaxCostUsd,
    P95LatencyMs,
    MaxRegressions,
    RubricScore,
    SafetyRate,
}

/// The result of checking a gate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GateResult {
    pub gate: Gate,
    /// The agent, if the run has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    pub limit: f64,
    /// Null if unknown.
    pub actual: Option<f64>,
    /// Null if it could not be checked.
    pub held: Option<bool>,
    /// A caveat about the measured value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The measurements that gates are checked against.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GateMetrics {
    /// Passed and failed trials, without errored and vacuous ones.
    pub passed: usize,
    pub failed: usize,
    /// Unknown unless the cost of every answer is known.
    pub cost_usd: Option<f64>,
    /// Latencies of all trials that passed or failed.
    pub latencies_ms: Vec<u64>,
    /// Unknown without a baseline.
    pub regressions: Option<usize>,
    /// Cases with a verdict both in the baseline and now.
    pub compared: usize,
    /// Cases that pass less often than in the baseline, but with too few trials to be significant.
    pub inconclusive: usize,
    pub rubric: RubricTotals,
    /// Outcomes of `safety`.
    pub safety: PartCounts,
    /// Number of suites in the cost.
    pub suites: usize,
}

impl GateMetrics {
    /// Adds the trials of a suite, and its comparison with the baseline.
    pub fn add(&mut self, result: &SuiteResult, compared: ComparisonCounts) {
        for (verdict, latency) in result.cases.iter().flat_map(|case| case.all_outcomes()) {
            match verdict {
                TrialVerdict::Passed => self.passed += 1,
                TrialVerdict::Failed => self.failed += 1,
                TrialVerdict::Vacuous | TrialVerdict::Errored => continue,
            }
            self.latencies_ms.push(latency);
        }
        // A suite in which nothing ran has no cost.
        if !result.cases.is_empty() {
            let users = result.summary.simulated_user.as_ref().map_or(Some(0.0), |users| users.cost_usd);
            let cost = result.summary.estimated_cost_usd.zip(users).map(|(agent, users)| agent + users);
            self.add_cost(cost);
        }
        if result.baseline_run_id.is_some() {
            self.regressions = Some(self.regressions.unwrap_or(0) + result.regressions.len());
        }
        if let Some(security) = &result.summary.security {
            self.safety.add(&security.safety);
        }
        self.compared += compared.cases;
        self.inconclusive += compared.inconclusive;
    }

    /// Adds the scores and the cost of a rubric suite.
    pub fn add_rubric(&mut self, suite: &RubricSuite) {
        self.rubric.add(suite);
        if let Some(result) = suite.result().filter(|result| !result.cases.is_empty()) {
            self.add_cost(result.cases.iter().map(RubricCaseResult::cost_usd).sum());
        }
    }

    fn add_cost(&mut self, cost_usd: Option<f64>) {
        let before = if self.suites == 0 { Some(0.0) } else { self.cost_usd };
        self.cost_usd = before.zip(cost_usd).map(|(sum, cost)| sum + cost);
        self.suites += 1;
    }

    /// Returns the rubric score, unless some rubric cases have no score.
    fn rubric_score(&self) -> Option<f64> {
        self.rubric.score_share.filter(|_| self.unscored() == 0)
    }

    /// Returns the number of rubric cases without a score.
    fn unscored(&self) -> usize {
        self.rubric.skipped + self.rubric.not_run + self.rubric.errored
    }

    /// Returns the number of regressions, unless there was nothing to compare.
    fn regressions(&self) -> Option<usize> {
        self.regressions.filter(|_| self.compared > 0)
    }

    /// Returns a caveat about the measured value of a gate.
    fn note(&self, gate: Gate) -> Option<String> {
        match (gate, self.inconclusive, self.unscored()) {
            (Gate::MaxRegressions, ..) if self.regressions.is_some() && self.compared == 0 => {
                Some("no case has a verdict both in the baseline and in this run".to_owned())
            }
            (Gate::MaxRegressions, 1, _) => {
                Some("1 case passes less often, with too few trials to be significant".to_owned())
            }
            (Gate::MaxRegressions, cases @ 2.., _) => {
                Some(format!("{cases} cases pass less often, with too few trials to be significant"))
            }
            (Gate::RubricScore, _, cases @ 1..) if self.rubric.judged > 0 => {
                Some(format!("{cases} of {} cases have no score", cases + self.rubric.judged))
            }
            (Gate::SafetyRate, ..) if self.safety.errored + self.safety.vacuous > 0 => {
                let PartCounts { errored, vacuous, .. } = self.safety;
                Some(format!("not counted: {errored} without a verdict, {vacuous} vacuous"))
            }
            _ => None,
        }
    }
}

impl Gate {
    pub fn name(self) -> &'static str {
        match self {
            Gate::PassRate => "passRate",
            Gate::MaxCostUsd => "maxCostUsd",
            Gate::P95LatencyMs => "p95LatencyMs",
            Gate::MaxRegressions => "maxRegressions",
            Gate::RubricScore => "rubricScore",
            Gate::SafetyRate => "safetyRate",
        }
    }

    /// Whether the limit is a minimum.
    pub fn is_minimum(self) -> bool {
        matches!(self, Gate::PassRate | Gate::RubricScore | Gate::SafetyRate)
    }

    fn format_value(self, value: f64) -> String {
        match self {
            Gate::MaxCostUsd => format!("${}", format_number(value)),
            Gate::P95LatencyMs => format!("{} ms", format_number(value)),
            Gate::PassRate | Gate::MaxRegressions | Gate::RubricScore | Gate::SafetyRate => format_number(value),
        }
    }

    fn unknown_reason(self) -> &'static str {
        match self {
            Gate::PassRate | Gate::P95LatencyMs => "no trial has a verdict",
            Gate::MaxCostUsd => "the cost of an answer is unknown",
            Gate::MaxRegressions => "there is no baseline",
            Gate::RubricScore => "no rubric was judged",
            Gate::SafetyRate => "no trial has a verdict on 'safety'",
        }
    }
}

impl GateResult {
    fn new(gate: Gate, agent: Option<&str>, limit: f64, actual: Option<f64>) -> Self {
        // Tolerates rounding in sums of costs.
        let slack = limit.abs() * 1e-9;
        let holds = |actual: f64| if gate.is_minimum() { actual >= limit - slack } else { actual <= limit + slack };
        Self { gate, agent: agent.map(str::to_owned), limit, actual, held: actual.map(holds), note: None }
    }
}

/// Shows the measured value and the limit: `0.9, at least 0.95`.
impl fmt::Display for GateResult {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = if self.gate.is_minimum() { "at least" } else { "at most" };
        let limit = self.gate.format_value(self.limit);
        let Some(actual) = self.actual else {
            let reason = self.note.as_deref().unwrap_or(self.gate.unknown_reason());
            return write!(out, "not checked, {bound} {limit}: {reason}");
        };
        write!(out, "{}, {bound} {limit}", self.gate.format_value(actual))?;
        self.note.iter().try_for_each(|note| write!(out, "; {note}"))
    }
}

/// Formats a number without rounding errors in its last digits.
fn format_number(number: f64) -> String {
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Checks the gates that are set, in a fixed order.
pub fn check(gates: &Gates, agent: Option<&str>, metrics: &GateMetrics) -> Vec<GateResult> {
    #[expect(clippy::cast_precision_loss, reason = "counts and milliseconds are far below 2^52")]
    let number = |count: u64| count as f64;
    let latency = || percentile(&metrics.latencies_ms, 95).map(number);
    let regressions = metrics.regressions().map(|count| number(count as u64));
    let all = [
        (Gate::PassRate, gates.pass_rate, rate(metrics.passed, metrics.passed + metrics.failed)),
        (Gate::MaxCostUsd, gates.max_cost_usd, metrics.cost_usd),
        (Gate::P95LatencyMs, gates.p95_latency_ms, gates.p95_latency_ms.and_then(|_| latency())),
        (Gate::MaxRegressions, gates.max_regressions.map(number), regressions),
        (Gate::RubricScore, gates.rubric_score, metrics.rubric_score()),
        (Gate::SafetyRate, gates.safety_rate, metrics.safety.rate),
    ];
    let results =
        all.into_iter().filter_map(|(gate, limit, actual)| Some(GateResult::new(gate, agent, limit?, actual)));
    results.map(|result| GateResult { note: metrics.note(result.gate), ..result }).collect()
}

impl Gates {
    pub fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let gates = Self {
            pass_rate: object.nullable("passRate", path, problems, read_share),
            max_cost_usd: object.nullable("maxCostUsd", path, problems, read_cost),
            p95_latency_ms: object.nullable("p95LatencyMs", path, problems, read_positive_number),
            max_regressions: object.nullable("maxRegressions", path, problems, read_count),
            rubric_score: object.nullable("rubricScore", path, problems, read_share),
            safety_rate: object.nullable("safetyRate", path, problems, read_share),
        };
        object.close(path, problems);
        Some(gates)
    }
}

/// Reads a number from 0 to 1. A percentage is rejected, since its gate would never pass.
pub fn read_share(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<f64> {
    let share = value.as_f64().filter(|share| (0.0..=1.0).contains(share));
    if share.is_none() {
        // A number just above 1 is a mistake of another kind.
        let percent = value.as_f64().filter(|share| (2.0..=100.0).contains(share));
        let help = percent.map_or_else(
            || "1 means 100 %, 0.95 means 95 %".to_owned(),
            |percent| format!("did you mean {}?", format_number(percent / 100.0)),
        );
        let help = value.is_number().then_some(help);
        let actual = if value.is_number() { value.to_string() } else { type_name(value).to_owned() };
        let message = format!("{} must be a number between 0 and 1, found {actual}", path.name());
        problems.push(path, Subject::Value, message, help);
    }
    share
}

/// Reads a cost, which may be 0, for example for local models.
fn read_cost(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<f64> {
    match value.as_f64() {
        Some(0.0) => Some(0.0),
        _ => read_positive_number(value, path, problems),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"passRate": 0.95, "maxCostUsd": 0, "p95LatencyMs": 1500, "maxRegressions": 0, "rubricScore": 1}), &[])]
    #[case(json!({"passRate": null}), &[])]
    #[case(json!({"passRate": 95}), &["/passRate 'passRate' must be a number between 0 and 1, found 95 (did you mean 0.95?)"])]
    #[case(json!({"rubricScore": -1}), &["/rubricScore 'rubricScore' must be a number between 0 and 1, found -1 (1 means 100 %, 0.95 means 95 %)"])]
    #[case(json!({"passRate": 1.5}), &["/passRate 'passRate' must be a number between 0 and 1, found 1.5 (1 means 100 %, 0.95 means 95 %)"])]
    #[case(json!({"passrate": "high"}), &["/passrate unknown key 'passrate' (did you mean 'passRate'?)"])]
    #[case(json!({"maxCostUsd": -1, "p95LatencyMs": 0, "maxRegressions": 1.5}), &[
        "/maxCostUsd 'maxCostUsd' must be greater than 0",
        "/p95LatencyMs 'p95LatencyMs' must be greater than 0",
        "/maxRegressions 'maxRegressions' must be an integer of at least 0, found 1.5",
    ])]
    #[case(json!([]), &[" the file must be an object, found an array"])]
    fn rejects_invalid_gates(#[case] value: Value, #[case] expected: &[&str]) {
        let mut problems = Problems::default();
        Gates::read(&value, &Path::Root, &mut problems);
        let messages: Vec<String> = problems
            .into_list()
            .into_iter()
            .map(|problem| {
                let help = problem.help.map(|help| format!(" ({help})")).unwrap_or_default();
                format!("{} {}{help}", problem.pointer, problem.message)
            })
            .collect();
        assert_eq!(messages, expected);
    }

    fn metrics() -> GateMetrics {
        GateMetrics {
            passed: 19,
            failed: 1,
            cost_usd: Some(0.1 + 0.2),
            latencies_ms: (1..=20).map(|number| number * 100).collect(),
            regressions: Some(2),
            compared: 20,
            inconclusive: 0,
            rubric: RubricTotals { judged: 4, score_share: Some(0.8), ..RubricTotals::default() },
            safety: PartCounts { passed: 9, failed: 1, rate: Some(0.9), ..PartCounts::default() },
            suites: 1,
        }
    }

    fn check_gates(gates: &Gates, metrics: &GateMetrics) -> Vec<(String, Option<bool>)> {
        let results = check(gates, None, metrics);
        results.into_iter().map(|result| (format!("{} {result}", result.gate.name()), result.held)).collect()
    }

    fn all(shift: f64) -> Gates {
        Gates {
            pass_rate: Some(0.95 + shift),
            max_cost_usd: Some(0.3 - shift),
            p95_latency_ms: Some(1900.0 - shift),
            max_regressions: Some(if shift > 0.0 { 1 } else { 2 }),
            rubric_score: Some(0.8 + shift),
            safety_rate: Some(0.9 + shift),
        }
    }

    #[test]
    fn a_limit_that_is_just_reached_holds() {
        let gates = check_gates(&all(0.0), &metrics());
        assert!(gates.iter().all(|(_, held)| *held == Some(true)), "{gates:?}");
        let gates = check_gates(&all(0.01), &metrics());
        assert!(gates.iter().all(|(_, held)| *held == Some(false)), "{gates:?}");
        assert_eq!(gates[0].0, "passRate 0.95, at least 0.96");
        assert_eq!(gates[1].0, "maxCostUsd $0.3, at most $0.29");
        assert_eq!(gates[2].0, "p95LatencyMs 1900 ms, at most 1899.99 ms");
        assert_eq!(check(&Gates::default(), None, &metrics()), []);
    }

    #[test]
    fn inconclusive_cases_do_not_count_as_regressions() {
        let gates = check_gates(&all(0.0), &GateMetrics { inconclusive: 1, ..metrics() });
        let expected = "maxRegressions 2, at most 2; 1 case passes less often, with too few trials to be significant";
        assert_eq!(gates[3], (expected.to_owned(), Some(true)));
        assert!(gates.iter().filter(|(text, _)| text.contains("less often")).count() == 1, "{gates:?}");
    }

    #[rstest]
    #[case(RubricTotals { skipped: 2, skipped_suites: 1, ..metrics().rubric }, "2 of 6 cases have no score")]
    #[case(RubricTotals { not_run: 1, ..metrics().rubric }, "1 of 5 cases have no score")]
    #[case(RubricTotals { errored: 1, ..metrics().rubric }, "1 of 5 cases have no score")]
    #[case(RubricTotals { skipped: 1, ..RubricTotals::default() }, "no rubric was judged")]
    fn rubric_score_needs_all_cases(#[case] rubric: RubricTotals, #[case] reason: &str) {
        let gates = check_gates(&all(0.0), &GateMetrics { rubric, ..metrics() });
        assert_eq!(gates[4], (format!("rubricScore not checked, at least 0.8: {reason}"), None));
    }

    #[test]
    fn regressions_need_cases_in_common_with_the_baseline() {
        let gates = check_gates(&all(0.0), &GateMetrics { regressions: Some(0), compared: 0, ..metrics() });
        let text = "maxRegressions not checked, at most 2: no case has a verdict both in the baseline and in this run";
        assert_eq!(gates[3], (text.to_owned(), None));
    }

    #[test]
    fn unknown_values_are_not_checked() {
        let gates = check_gates(&all(0.0), &GateMetrics::default());
        assert!(gates.iter().all(|(_, held)| held.is_none()), "{gates:?}");
        assert_eq!(gates[3].0, "maxRegressions not checked, at most 2: there is no baseline");
    }
}
