//! Outcomes of several agents: one row per case, one column per agent.

use std::collections::{BTreeSet, HashMap};

use karat_core::cost::dollars;
use karat_core::result::{Outcome, TrialVerdict};
use karat_core::run_report::{AgentFigures, Matrix, MatrixCell, MatrixRow};
use karat_core::statistics::{percentile, rate, wilson};

use crate::duration::rounded_duration_text;
use crate::record::{CaseRecord, RunRecord, SuiteRecord};

/// Compares the agents of a run, if there are several.
pub fn matrix_of(run: &RunRecord) -> Option<Matrix> {
    let columns = columns(run);
    if columns.len() < 2 {
        return None;
    }
    let mut agents: Vec<AgentFigures> = Vec::new();
    for (index, column) in columns.iter().enumerate() {
        // Agents that differ only in a secret have the same name.
        let same = columns[..index].iter().filter(|other| other.agent() == column.agent()).count();
        let number = if same == 0 { String::new() } else { format!(" ({})", same + 1) };
        let agent = format!("{}{number}", column.agent());
        agents.push(AgentFigures { agent, ..figures(&column.suites) });
    }
    let best_value = best_value(&agents).map(|best| agents[best].agent.clone());
    Some(Matrix { best_value, rows: rows(&columns), agents })
}

fn matrix_cell(case: &CaseRecord<'_>) -> MatrixCell {
    let result = case.result;
    let reason = match result.outcome {
        Outcome::Passed if result.vacuous => Some(format!("{}, so this proves nothing", result.vacuous_reason())),
        Outcome::Passed => None,
        Outcome::Failed | Outcome::Errored => case.reasons().first().map(|(message, _)| message.clone().into_owned()),
    };
    MatrixCell {
        outcome: result.outcome,
        vacuous: result.vacuous,
        regression: case.is_regression,
        duration_ms: result.duration_ms,
        trials: result.trials.as_ref().map(|trials| trials.counts()),
        reason,
    }
}

/// The suites of one agent.
pub(crate) struct Column<'r> {
    pub(crate) suites: Vec<&'r SuiteRecord>,
}

impl Column<'_> {
    fn agent(&self) -> &str {
        self.suites.first().and_then(|suite| suite.header.agent.as_deref()).unwrap_or_default()
    }
}

/// Groups suites by agent. The suites of an agent are consecutive, with one per file.
pub(crate) fn columns(run: &RunRecord) -> Vec<Column<'_>> {
    let mut columns: Vec<Column<'_>> = Vec::new();
    for suite in run.suites.iter().filter(|suite| suite.header.agent.is_some()) {
        let belongs_to = |column: &&mut Column<'_>| {
            let same_agent = column.suites.iter().all(|other| other.header.agent == suite.header.agent);
            same_agent && column.suites.iter().all(|other| other.header.path != suite.header.path)
        };
        match columns.last_mut().filter(belongs_to) {
            Some(column) => column.suites.push(suite),
            None => columns.push(Column { suites: vec![suite] }),
        }
    }
    columns
}

fn rows(columns: &[Column<'_>]) -> Vec<MatrixRow> {
    let mut paths: Vec<&str> = Vec::new();
    for suite in columns.iter().flat_map(|column| &column.suites) {
        if !paths.contains(&suite.header.path.as_str()) {
            paths.push(&suite.header.path);
        }
    }
    paths.into_iter().flat_map(|path| rows_of(path, columns)).collect()
}

fn rows_of(path: &str, columns: &[Column<'_>]) -> Vec<MatrixRow> {
    let suites: Vec<Option<&SuiteRecord>> =
        columns.iter().map(|column| column.suites.iter().copied().find(|suite| suite.header.path == path)).collect();
    let Some(header) = suites.iter().flatten().map(|suite| &suite.header).next() else {
        return Vec::new();
    };
    // After an interruption, agents may have different gaps.
    let mut order: BTreeSet<(Option<usize>, &str)> = BTreeSet::new();
    let mut cases_by_id: Vec<HashMap<&str, CaseRecord<'_>>> = Vec::new();
    for suite in &suites {
        let cases: Vec<CaseRecord<'_>> = suite.iter().flat_map(|suite| suite.cases()).collect();
        order.extend(cases.iter().map(|case| (case.index(), case.result.id.as_str())));
        cases_by_id.push(cases.into_iter().map(|case| (case.result.id.as_str(), case)).collect());
    }
    let row = |id: &str| MatrixRow {
        path: path.to_owned(),
        tool_name: header.tool_name.clone(),
        tier: header.tier,
        id: id.to_owned(),
        description: cases_by_id.iter().find_map(|cases| cases.get(id)).map_or_else(String::new, description),
        cells: cases_by_id.iter().map(|cases| cases.get(id).map(matrix_cell)).collect(),
    };
    order.into_iter().map(|(_, id)| row(id)).collect()
}

fn description(case: &CaseRecord<'_>) -> String {
    case.result.description.clone()
}

fn figures(suites: &[&SuiteRecord]) -> AgentFigures {
    let mut figures = AgentFigures::default();
    let mut latencies = Vec::new();
    let mut cost = Some(0.0);
    let mut answers = 0;
    for suite in suites {
        figures.not_run += suite.not_run();
        for case in suite.cases() {
            for (verdict, duration) in case.result.all_outcomes() {
                match verdict {
                    TrialVerdict::Passed => figures.passed += 1,
                    TrialVerdict::Failed => figures.failed += 1,
                    TrialVerdict::Vacuous => figures.vacuous += 1,
                    TrialVerdict::Errored => figures.errored += 1,
                }
                if verdict != TrialVerdict::Errored {
                    latencies.push(duration);
                }
            }
            for details in case.result.all_details() {
                let answer_cost = details.usage.as_ref().and_then(|usage| usage.cost_usd);
                cost = cost.zip(answer_cost).map(|(sum, answer_cost)| sum + answer_cost);
                answers += 1;
            }
        }
    }
    figures.pass_rate = rate(figures.passed, figures.passed + figures.failed);
    figures.cost_usd = cost.filter(|_| answers > 0);
    figures.cost_per_pass_usd =
        figures.cost_usd.filter(|_| figures.passed > 0).map(|cost| cost / count(figures.passed));
    figures.latency_p50_ms = percentile(&latencies, 50);
    figures.latency_p95_ms = percentile(&latencies, 95);
    figures
}

#[expect(clippy::cast_precision_loss, reason = "the number of cases is small")]
fn count(number: usize) -> f64 {
    number as f64
}

/// Whether the highest pass rate of all agents is above the 95 % interval of this agent's.
fn is_clearly_worse(agent: &AgentFigures, agents: &[AgentFigures]) -> bool {
    let best = agents.iter().filter_map(|agent| agent.pass_rate).max_by(f64::total_cmp);
    let interval = wilson(agent.passed, agent.passed + agent.failed);
    best.zip(interval).is_none_or(|(best, interval)| interval.high < best)
}

/// How far the pass rate of the best value may be below the highest, however few the cases are.
const MAX_LOST_PASS_RATE: f64 = 0.05;

/// Whether an agent's pass rate is too far below the highest of all agents to recommend it.
fn passes_less_often(agent: &AgentFigures, agents: &[AgentFigures]) -> bool {
    let best = agents.iter().filter_map(|agent| agent.pass_rate).max_by(f64::total_cmp).unwrap_or_default();
    // Of 20 cases, one more failure is just within the limit.
    let is_far_below = best - agent.pass_rate.unwrap_or_default() > MAX_LOST_PASS_RATE + 1e-9;
    is_far_below || is_clearly_worse(agent, agents)
}

/// Returns the agent with the lowest cost per pass; ties go to the higher pass rate. An agent that passes less often than
/// another is never the best value, however cheap.
fn best_value(agents: &[AgentFigures]) -> Option<usize> {
    let known = agents
        .iter()
        .enumerate()
        .filter(|(_, agent)| !passes_less_often(agent, agents))
        .filter_map(|(index, agent)| Some((index, agent.cost_per_pass_usd?, agent.pass_rate.unwrap_or_default())));
    // Of equal agents, choose the first.
    known.min_by(|left, right| left.1.total_cmp(&right.1).then(right.2.total_cmp(&left.2))).map(|(index, ..)| index)
}

/// A figure of all agents: a line of the summary below the cases.
pub(crate) struct FigureRow {
    pub(crate) name: &'static str,
    pub(crate) values: Vec<String>,
    /// Whether each value is the best; all false if the values are equal.
    pub(crate) best: Vec<bool>,
}

/// Returns the lines of the summary, with `unknown` for missing values.
pub(crate) fn figure_rows(matrix: &Matrix, unknown: &str) -> Vec<FigureRow> {
    let agents = &matrix.agents;
    let counted = |name, value: fn(&AgentFigures) -> usize| FigureRow {
        name,
        values: agents.iter().map(|agent| value(agent).to_string()).collect(),
        best: vec![false; agents.len()],
    };
    let compared = |name, value: &dyn Fn(&AgentFigures) -> Option<f64>, format: &dyn Fn(f64) -> String| {
        let values: Vec<Option<f64>> = agents.iter().map(value).collect();
        let texts: Vec<String> = values.iter().map(|value| value.map_or_else(|| unknown.to_owned(), format)).collect();
        let best = values.iter().flatten().copied().min_by(f64::total_cmp).map(format);
        // Compare the formatted values: of two that look equal, neither is better.
        let is_best = |text: &String| best.as_ref() == Some(text);
        let known: Vec<&String> =
            texts.iter().zip(&values).filter(|(_, value)| value.is_some()).map(|(text, _)| text).collect();
        let is_choice = known.iter().any(|text| !is_best(text));
        FigureRow { name, best: texts.iter().map(|text| is_choice && is_best(text)).collect(), values: texts }
    };
    #[expect(clippy::cast_precision_loss, reason = "a duration is small")]
    let latency = |value: Option<u64>| value.map(|value| value as f64);
    // Negated, so that the minimum is always the best.
    let mut rows = vec![compared("pass rate", &|agent| agent.pass_rate.map(|rate| -rate), &|rate| percent(-rate))];
    if agents.iter().any(|agent| agent.errored > 0) {
        rows.push(counted("errored", |agent| agent.errored));
    }
    if agents.iter().any(|agent| agent.vacuous > 0) {
        rows.push(counted("vacuous", |agent| agent.vacuous));
    }
    if agents.iter().any(|agent| agent.not_run > 0) {
        rows.push(counted("not run", |agent| agent.not_run));
    }
    rows.push(compared("cost", &|agent| agent.cost_usd, &dollars));
    rows.push(compared("cost per pass", &|agent| agent.cost_per_pass_usd, &dollars));
    rows.push(compared("latency p50", &|agent| latency(agent.latency_p50_ms), &rounded_duration_text));
    rows.push(compared("latency p95", &|agent| latency(agent.latency_p95_ms), &rounded_duration_text));
    rows
}

/// Explains the mark of the best values.
pub(crate) const BEST_LEGEND: &str = "* the best value of its row";

/// Describes the best value.
pub(crate) fn best_value_line(matrix: &Matrix, name: impl Fn(&str) -> String) -> String {
    let best = matrix.best_value.as_ref();
    let Some(agent) = matrix.agents.iter().find(|agent| Some(&agent.agent) == best) else {
        let is_known = matrix.agents.iter().any(|agent| agent.cost_per_pass_usd.is_some());
        let reason = if is_known {
            "the cost of the agents that pass most often is unknown"
        } else {
            "no agent has a known cost per passed case"
        };
        return format!("best value: unknown, since {reason}");
    };
    let cost = agent.cost_per_pass_usd.map(dollars).unwrap_or_default();
    let rate = agent.pass_rate.map(percent).unwrap_or_default();
    let known = matrix.agents.iter().filter(|agent| agent.cost_per_pass_usd.is_some()).count();
    let of_all = match matrix.agents.len() {
        all if all == known => String::new(),
        all => format!("; known for {known} of {all} agents"),
    };
    let is_cheaper =
        |other: &&AgentFigures| other.cost_per_pass_usd.is_some() && other.cost_per_pass_usd < agent.cost_per_pass_usd;
    let cheaper: Vec<&AgentFigures> = matrix.agents.iter().filter(is_cheaper).collect();
    let is_certain = cheaper.iter().all(|other| is_clearly_worse(other, &matrix.agents));
    let cheaper = match (cheaper.len(), is_certain) {
        (0, _) => "",
        (1, true) => "; a cheaper agent passes less often",
        (_, true) => "; cheaper agents pass less often",
        (1, false) => "; a cheaper agent passed less often, in too few cases to be sure",
        (_, false) => "; cheaper agents passed less often, in too few cases to be sure",
    };
    format!("best value: {}, {cost} per passed case at a pass rate of {rate}{cheaper}{of_all}", name(&agent.agent))
}

/// Formats a share in percent; only exact values are shown as 0% or 100%.
pub(crate) fn percent(share: f64) -> String {
    let tenths = (share * 1000.0).round();
    let tenths = if share < 1.0 { tenths.min(999.0) } else { tenths };
    let tenths = if share > 0.0 { tenths.max(1.0) } else { tenths };
    let text = format!("{:.1}", tenths / 10.0);
    format!("{}%", text.strip_suffix(".0").unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_shares_are_0_or_100_percent() {
        let texts: Vec<String> =
            [0.0, 0.000_1, 1.0 / 3.0, 0.5, 0.875, 0.999_99, 1.0].into_iter().map(percent).collect();
        assert_eq!(texts, ["0%", "0.1%", "33.3%", "50%", "87.5%", "99.9%", "100%"]);
    }

    /// An agent with this cost per pass, and this many passes of ten.
    fn agent(cost: Option<f64>, passed: usize) -> AgentFigures {
        let pass_rate = rate(passed, 10);
        AgentFigures { cost_per_pass_usd: cost, passed, failed: 10 - passed, pass_rate, ..AgentFigures::default() }
    }

    #[test]
    fn best_value_is_the_lowest_cost_per_pass() {
        assert_eq!(best_value(&[agent(None, 7), agent(Some(2.0), 7), agent(Some(1.0), 7)]), Some(2));
        assert_eq!(best_value(&[agent(Some(1.0), 5), agent(Some(1.0), 7), agent(Some(1.0), 7)]), Some(1));
        assert_eq!(best_value(&[agent(None, 10), agent(None, 5)]), None);
    }

    #[test]
    fn a_clearly_worse_agent_is_not_the_best_value() {
        assert_eq!(best_value(&[agent(Some(2.0), 10), agent(Some(1.0), 6)]), Some(0));
        assert_eq!(best_value(&[agent(None, 10), agent(Some(1.0), 6)]), None);
        assert_eq!(best_value(&[agent(Some(0.1), 0), agent(Some(2.0), 8)]), Some(1));
        // Within the interval of ten cases, but ten points lower.
        assert_eq!(best_value(&[agent(Some(2.0), 10), agent(Some(1.0), 9)]), Some(0));
        // One case of twenty is within the limit.
        let of_20 = |cost: f64, passed: usize| AgentFigures {
            passed,
            failed: 20 - passed,
            pass_rate: rate(passed, 20),
            ..agent(Some(cost), 0)
        };
        assert_eq!(best_value(&[of_20(2.0, 19), of_20(1.0, 18)]), Some(1));
        let agents = vec![agent(Some(2.0), 10), agent(Some(1.0), 6)];
        let matrix = Matrix { agents, best_value: Some(String::new()), rows: Vec::new() };
        let line = best_value_line(&matrix, |_| "a".to_owned());
        assert_eq!(
            line,
            "best value: a, $2.00 per passed case at a pass rate of 100%; a cheaper agent passes less often"
        );
    }
}
