//! Runs the rubric suites of a plan, after all other suites.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::{StreamExt, stream};
use karat_cases::registry::same_name;
use karat_cases::{Case, Dimension, RubricCase, Tier};
use karat_core::assertion::Mode;
use karat_core::chat::{ChatModel, ChatPrompt, ChatReply};
use karat_core::conversation::{Exchange, total_trace};
use karat_core::event::RunEvent;
use karat_core::gate::GateMetrics;
use karat_core::port::{Agent, AgentError, TrialContext};
use karat_core::result::{CaseDetails, TurnDetails, unused_stubs_warning};
use karat_core::rubric::{
    Judge, RubricCaseResult, RubricMetadata, RubricOutcome, RubricResult, RubricScore, RubricSuite, RubricSummary,
    RubricTotals, RubricVerdict, evidence, judge_prompt, read_score, total_usage,
};
use karat_core::staleness::{Staleness, check_staleness};
use karat_core::trace::Usage;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::case::{NOT_RUN, redact_details, truncate_message, whole_millis};
use crate::dialog::Dialog;
use crate::plan::RubricPlan;
use crate::sample::Samples;
use crate::shared::SharedState;
use crate::sink::{RunSink, with_sink_work};
use crate::stopwatch::{Stopwatch, millis_between};
use crate::stubs::count_unused_stubs;
use crate::surroundings::Surroundings;
use crate::timeout::with_timeout;

/// Runs all rubric suites one after the other. `passed` contains for each deterministic suite whether all cases passed;
/// `metrics` has an entry per agent.
pub(crate) async fn run_rubrics(
    shared: &SharedState,
    mut samples: Samples,
    passed: &[bool],
    metrics: &mut [GateMetrics],
    timestamp: &str,
    cancel: &CancellationToken,
    sink: &mut impl RunSink,
) -> Option<RubricTotals> {
    let rubrics = &shared.plan.rubrics;
    if rubrics.suites.is_empty() {
        return None;
    }
    let mut totals = RubricTotals::default();
    let mut next_number = shared.units.len();
    for suite in &rubrics.suites {
        let first_number = next_number;
        next_number += suite.file.cases.len();
        let judge =
            if cancel.is_cancelled() { Err(INTERRUPTED.to_owned()) } else { select_judge(shared, suite, passed) };
        let outcome = match judge {
            Err(reason) => RubricOutcome::Skipped(shared.plan.redactor.text(&reason).into_owned()),
            Ok((judge, warnings)) => {
                let trial = |(case, number): (&RubricCase, usize)| Trial {
                    number,
                    sample: samples.reserve(suite.agent, &case.case, 1),
                };
                let trials = suite.file.cases.iter().zip(first_number..).map(trial).collect();
                let suite_run = SuiteRun { shared, suite, judge, cancel };
                let run = suite_run.run(trials, timestamp, warnings);
                RubricOutcome::Result(Arc::new(with_sink_work(sink, run).await))
            }
        };
        let agent = suite.agent;
        let suite = Arc::new(finished_suite(shared, suite, outcome));
        totals.add(&suite);
        metrics[agent].add_rubric(&suite);
        sink.emit(RunEvent::RubricFinished { suite });
        sink.flush();
    }
    Some(totals)
}

const INTERRUPTED: &str = "the run was interrupted";

/// Returns the judge of a suite with warnings, or the reason to skip the suite.
fn select_judge<'s>(
    shared: &'s SharedState,
    suite: &RubricPlan,
    passed: &[bool],
) -> Result<(&'s dyn ChatModel, Vec<String>), String> {
    let Some(judge) = shared.plan.rubrics.judge.as_deref() else {
        return Err("no judge is configured: set 'judge' in karat.json, or pass --judge".to_owned());
    };
    let is_same_tool = |index: &usize| {
        let other = &shared.plan.suites[*index];
        other.agent == suite.agent && same_name(other.tool_name(), suite.tool_name())
    };
    let same_tool: Vec<usize> = (0..shared.plan.suites.len()).filter(is_same_tool).collect();
    let failed: Vec<&str> = same_tool
        .iter()
        .filter(|index| !passed.get(**index).copied().unwrap_or_default())
        .map(|index| shared.plan.suites[*index].path.as_str())
        .collect();
    if !failed.is_empty() {
        return Err(format!("not all cases of {} passed", failed.join(", ")));
    }
    if shared.stop.load(Ordering::Relaxed) {
        return Err("the run was stopped".to_owned());
    }
    if let Some(case) = suite.skipped.first().filter(|_| suite.file.cases.is_empty()) {
        return Err(format!("all cases are skipped: {}", case.reason));
    }
    let mut warnings = Vec::new();
    if same_tool.is_empty() {
        warnings.push("scored without a golden, labeled or regression suite of this tool in the run".to_owned());
    }
    Ok((judge, warnings))
}

fn finished_suite(shared: &SharedState, suite: &RubricPlan, outcome: RubricOutcome) -> RubricSuite {
    let redactor = &shared.plan.redactor;
    let lines =
        suite.file.cases.iter().map(|case| (redactor.text(&case.case.id).into_owned(), case.case.location.line));
    let agent = (shared.agents.len() > 1).then(|| shared.agents[suite.agent].identity());
    RubricSuite {
        path: suite.path.clone(),
        tool_name: suite.tool_name().to_owned(),
        agent: agent.map(|name| redactor.text(&name).into_owned()),
        selected: suite.file.cases.len(),
        lines: lines.collect(),
        outcome,
    }
}

/// The trial of a rubric case.
#[derive(Clone, Copy)]
struct Trial {
    /// The number in the run, after the trials of all other suites.
    number: usize,
    sample: u32,
}

struct SuiteRun<'r> {
    shared: &'r SharedState,
    suite: &'r RubricPlan,
    judge: &'r dyn ChatModel,
    cancel: &'r CancellationToken,
}

impl SuiteRun<'_> {
    async fn run(&self, trials: Vec<Trial>, timestamp: &str, mut warnings: Vec<String>) -> RubricResult {
        let start = Instant::now();
        let (plan, file, agent) = (&self.shared.plan, &self.suite.file, self.agent());
        let mut results: Vec<Option<RubricCaseResult>> = vec![None; file.cases.len()];
        let cases = file.cases.iter().zip(trials).enumerate();
        let mut running = stream::iter(cases)
            .map(|(index, (case, trial))| async move {
                // Checked when the case starts, since an earlier case may have stopped the run.
                let is_stopped = self.shared.stop.load(Ordering::Relaxed) || self.cancel.is_cancelled();
                let result = if is_stopped { None } else { Some(self.run_case(case, trial).await) };
                // A cancelled case has not finished and is not reported.
                (index, result.filter(|_| !self.cancel.is_cancelled()))
            })
            .buffer_unordered(plan.concurrency.max(1));
        while let Some((index, result)) = running.next().await {
            results[index] = result;
        }
        drop(running);
        let cases: Vec<RubricCaseResult> = results.into_iter().flatten().collect();
        warnings.extend(self.warnings(&cases));
        let redacted = |mut parameters| {
            plan.redactor.map(&mut parameters);
            parameters
        };
        RubricResult {
            run_id: plan.run_id.clone(),
            timestamp: timestamp.to_owned(),
            tier: Tier::Rubric,
            tool_name: self.suite.tool_name().to_owned(),
            agent_endpoint: plan.redactor.text(&agent.identity()).into_owned(),
            judge: Judge {
                identity: plan.redactor.text(&self.judge.identity()).into_owned(),
                parameters: redacted(self.judge.parameters()),
            },
            metadata: RubricMetadata {
                eval_file: self.suite.project_path.clone(),
                eval_file_hash: file.hash.clone(),
                parameters: redacted(agent.parameters()),
            },
            warnings,
            summary: RubricSummary::from_cases(&cases, file.cases.len()),
            cases,
            wall_clock_ms: millis_between(start, Instant::now()),
        }
    }

    fn agent(&self) -> &dyn Agent {
        self.shared.agents[self.suite.agent].as_ref()
    }

    fn warnings(&self, cases: &[RubricCaseResult]) -> Vec<String> {
        let stale = check_staleness(&self.suite.file.without_rubrics(), &self.suite.current);
        let mut warnings: Vec<String> =
            stale.iter().filter(|staleness| staleness.is_stale()).map(Staleness::warning).collect();
        let planned = self.suite.file.cases.iter().map(|case| &case.case);
        warnings.extend(unused_stubs_warning(count_unused_stubs(planned, self.agent())));
        let skipped = self.suite.skipped.iter().map(|case| format!("'{}' is skipped: {}", case.id, case.reason));
        warnings.extend(skipped.map(|text| self.shared.plan.redactor.text(&text).into_owned()));
        let is_routing_only = |case: &&RubricCase| self.agent().mode(&case.case) == Mode::RoutingOnly;
        if self.suite.file.cases.iter().any(|case| is_routing_only(&case)) {
            let text = "cases without stubs were scored by the model's first turn, before any tool result";
            warnings.push(text.to_owned());
        }
        let agent_warnings: BTreeSet<&str> =
            cases.iter().flat_map(|case| &case.details.warnings).map(String::as_str).collect();
        warnings.extend(agent_warnings.into_iter().take(5).map(str::to_owned));
        warnings
    }

    /// Calls the agent, then the judge for each dimension.
    async fn run_case(&self, case: &RubricCase, trial: Trial) -> RubricCaseResult {
        let plan = &self.shared.plan;
        let mut record = CaseRecord::default();
        let scores = self.score(case, trial, &mut record).await;
        let mut result = RubricCaseResult {
            id: case.case.id.clone(),
            description: case.case.description.clone(),
            outcome: RubricVerdict::Judged,
            duration_ms: whole_millis(record.duration.as_secs_f64() * 1000.0),
            error: None,
            dimensions: Vec::new(),
            score: None,
            max_score: sum_scores(case.rubric.iter().map(|dimension| dimension.max_score)),
            judge_usage: total_usage(record.usages.iter().map(Option::as_ref)),
            judge_called: !record.usages.is_empty(),
            details: record.details,
        };
        match scores {
            Ok(dimensions) => {
                result.score = Some(sum_scores(dimensions.iter().map(|dimension| dimension.score)));
                result.dimensions = dimensions;
            }
            Err(message) => {
                result.outcome = RubricVerdict::Errored;
                result.error = Some(message);
                if plan.fail_fast {
                    self.shared.stop.store(true, Ordering::Relaxed);
                }
            }
        }
        if !plan.redactor.is_empty() {
            let scores = result.dimensions.iter_mut();
            let score_texts = scores.flat_map(|score| [&mut score.dimension, &mut score.criteria, &mut score.reason]);
            let texts =
                [&mut result.id, &mut result.description].into_iter().chain(&mut result.error).chain(score_texts);
            texts.for_each(|text| plan.redactor.string(text));
        }
        // After redaction, which does not recognise a partial secret.
        result.error.iter_mut().for_each(truncate_message);
        result
    }

    async fn score(
        &self,
        case: &RubricCase,
        trial: Trial,
        record: &mut CaseRecord,
    ) -> Result<Vec<RubricScore>, String> {
        let redactor = &self.shared.plan.redactor;
        let exchanges = self.answers(case, trial, &mut record.duration).await?;
        let mut evidence = evidence(case, &exchanges);
        record.details = conversation_details(&case.case, &exchanges);
        if !redactor.is_empty() {
            // The agent's secrets must not be sent to the judge.
            redactor.map(&mut evidence);
            redact_details(&mut record.details, redactor);
        }
        let mut scores = Vec::with_capacity(case.rubric.len());
        for dimension in &case.rubric {
            let name = &dimension.dimension;
            let reply = self.ask_judge(&judge_prompt(&evidence, dimension)).await;
            // A failed call may have been billed, but its usage is unknown.
            record.usages.push(reply.as_ref().ok().and_then(|reply| reply.usage.clone()));
            let reply = reply.map_err(|message| format!("the judge gave no score for '{name}': {message}"))?;
            let score = read_score(&reply.value, dimension)
                .map_err(|message| format!("the judge's answer for '{name}' is not valid: {message}"))?;
            let Dimension { dimension, criteria, max_score } = dimension.clone();
            scores.push(RubricScore { dimension, criteria, max_score, score: score.score, reason: score.reason });
        }
        Ok(scores)
    }

    /// Sends the messages of a case and returns the whole conversation.
    async fn answers(&self, case: &RubricCase, trial: Trial, duration: &mut Duration) -> Result<Vec<Exchange>, String> {
        let reachability = &self.shared.reachability[self.suite.agent];
        if reachability.skips_call() {
            return Err(NOT_RUN.to_owned());
        }
        let (watch, agent) = (Stopwatch::start(), self.agent());
        let (run_id, timeout) = (&self.shared.plan.run_id, self.shared.plan.timeout);
        let Trial { number, sample } = trial;
        let has_turns = case.case.has_turns();
        let trial = TrialContext { run_id, number, case: &case.case, sample, has_turns, wait_observer: &watch };
        let mut dialog = Dialog::start(agent, trial, timeout, &watch);
        let mut surroundings = Surroundings::new(&self.shared.plan, &case.case, &mut dialog, &watch);
        let result = tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(INTERRUPTED.to_owned()),
            prepared = surroundings.prepare() => prepared,
        };
        let result = match result {
            Ok(()) => tokio::select! {
                biased;
                () = self.cancel.cancelled() => Err(INTERRUPTED.to_owned()),
                answered = dialog.send_all(&case.case) => Ok(answered),
            },
            Err(message) => Err(message),
        };
        let hook_errors = surroundings.finish().await;
        let result = result?;
        reachability.record(&result);
        *duration = match &result {
            Ok(exchanges) => {
                let latency_ms: f64 = exchanges.iter().map(|exchange| exchange.trace.latency_ms).sum();
                Duration::try_from_secs_f64(latency_ms / 1000.0).unwrap_or_default()
            }
            Err(error) => error.elapsed,
        };
        match hook_errors.into_iter().next() {
            Some(error) => Err(error),
            None => result.map_err(|error| self.handle_error(error)),
        }
    }

    async fn ask_judge(&self, prompt: &ChatPrompt) -> Result<ChatReply, String> {
        let watch = Stopwatch::start();
        let result = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(INTERRUPTED.to_owned()),
            result = with_timeout(self.shared.plan.timeout, &watch, || self.judge.complete(prompt, &watch)) => result,
        };
        let result =
            result.unwrap_or_else(|abandoned| abandoned.notify(|error| self.judge.on_abandoned(prompt, error)));
        result.map_err(|error| self.handle_error(error))
    }

    /// Returns the message of an error; stops the run if no other case can succeed.
    fn handle_error(&self, error: AgentError) -> String {
        if error.ends_run() {
            self.shared.stop.store(true, Ordering::Relaxed);
        }
        error.message
    }
}

/// The parts of a case result that exist even without a score.
#[derive(Default)]
struct CaseRecord {
    duration: Duration,
    details: CaseDetails,
    /// Usage of each judge call, if known.
    usages: Vec<Option<Usage>>,
}

fn conversation_details(case: &Case, exchanges: &[Exchange]) -> CaseDetails {
    let details = CaseDetails::from(total_trace(exchanges.iter().map(|exchange| &exchange.trace)));
    if !case.has_turns() {
        return details;
    }
    let turn =
        |Exchange { message, trace }: &Exchange| TurnDetails::answered(message, trace, whole_millis(trace.latency_ms));
    CaseDetails { turns: exchanges.iter().map(turn).collect(), ..details }
}

fn sum_scores(scores: impl Iterator<Item = u64>) -> u64 {
    scores.fold(0, u64::saturating_add)
}
