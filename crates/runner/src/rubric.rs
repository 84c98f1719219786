//! Runs the rubric suites of a plan, after everything that passes or fails.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::{StreamExt, stream};
use karat_core::assertion::Mode;
use karat_core::case::{Dimension, RubricCase, Tier};
use karat_core::chat::{ChatModel, ChatPrompt, ChatReply};
use karat_core::event::RunEvent;
use karat_core::gate::Figures;
use karat_core::port::{Agent, AgentError, Ask};
use karat_core::registry::same_name;
use karat_core::result::CaseDetails;
use karat_core::rubric::{
    Judge, RubricCaseResult, RubricMetadata, RubricOutcome, RubricResult, RubricScore, RubricSuite, RubricSummary,
    RubricTotals, RubricVerdict, evidence, judge_prompt, read_score, total_usage,
};
use karat_core::staleness::{Staleness, check_staleness};
use karat_core::trace::{Trace, Usage};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::case::{cut, details, redact_details, whole_millis};
use crate::plan::RubricPlan;
use crate::sample::Samples;
use crate::sink::{RunSink, while_working};
use crate::stopwatch::{Stopwatch, millis};
use crate::stubs::unused_stubs;
use crate::worker::{Shared, within};

/// Runs all rubric suites, one after the other; `passed` says of each deterministic suite whether all of it passed, and
/// `figures` are those of each agent.
pub(crate) async fn run_rubrics(
    shared: &Shared,
    mut samples: Samples,
    passed: &[bool],
    figures: &mut [Figures],
    timestamp: &str,
    cancel: &CancellationToken,
    sink: &mut impl RunSink,
) -> Option<RubricTotals> {
    let rubrics = &shared.plan.rubrics;
    if rubrics.suites.is_empty() {
        return None;
    }
    let mut totals = RubricTotals::default();
    for suite in &rubrics.suites {
        let allowed = if cancel.is_cancelled() { Err(INTERRUPTED.to_owned()) } else { admit(shared, suite, passed) };
        let outcome = match allowed {
            Err(reason) => RubricOutcome::Skipped(shared.plan.redactor.text(&reason).into_owned()),
            Ok((judge, warnings)) => {
                let next = |case: &RubricCase| samples.take(suite.agent, &case.case, 1);
                let asked = suite.file.cases.iter().map(next).collect();
                let run = SuiteRun { shared, suite, judge };
                let scoring = run.result(asked, timestamp, warnings, cancel);
                RubricOutcome::Result(Arc::new(while_working(sink, scoring).await))
            }
        };
        let agent = suite.agent;
        let suite = Arc::new(suite_at_its_end(shared, suite, outcome));
        totals.add(&suite);
        figures[agent].add_rubric(&suite);
        sink.emit(RunEvent::RubricFinished { suite });
        sink.flush();
    }
    Some(totals)
}

const INTERRUPTED: &str = "the run was interrupted";

/// Returns who scores the suite and what is doubtful about that, or why it is not run.
fn admit<'s>(
    shared: &'s Shared,
    suite: &RubricPlan,
    passed: &[bool],
) -> Result<(&'s dyn ChatModel, Vec<String>), String> {
    let Some(judge) = shared.plan.rubrics.judge.as_deref() else {
        return Err("no judge is configured: set 'judge' in karat.json, or give --judge".to_owned());
    };
    let is_same = |index: &usize| {
        let other = &shared.plan.suites[*index];
        other.agent == suite.agent && same_name(other.tool_name(), suite.tool_name())
    };
    let same: Vec<usize> = (0..shared.plan.suites.len()).filter(is_same).collect();
    let failed: Vec<&str> = same
        .iter()
        .filter(|index| !passed.get(**index).copied().unwrap_or_default())
        .map(|index| shared.plan.suites[*index].path.as_str())
        .collect();
    if !failed.is_empty() {
        return Err(format!("not all cases of {} passed, and only what passes is scored", failed.join(", ")));
    }
    if shared.stop.load(Ordering::Relaxed) {
        return Err("the run stopped before".to_owned());
    }
    let mut warnings = Vec::new();
    if same.is_empty() {
        warnings.push("scored although no golden, labeled or regression suite of this tool was in the run".to_owned());
    }
    Ok((judge, warnings))
}

fn suite_at_its_end(shared: &Shared, suite: &RubricPlan, outcome: RubricOutcome) -> RubricSuite {
    let redactor = &shared.plan.redactor;
    let lines = suite.file.cases.iter().map(|case| (redactor.text(&case.case.id).into_owned(), case.case.line));
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

struct SuiteRun<'r> {
    shared: &'r Shared,
    suite: &'r RubricPlan,
    judge: &'r dyn ChatModel,
}

impl SuiteRun<'_> {
    async fn result(
        &self,
        samples: Vec<u32>,
        timestamp: &str,
        mut warnings: Vec<String>,
        cancel: &CancellationToken,
    ) -> RubricResult {
        let begun = Instant::now();
        let (plan, file, agent) = (&self.shared.plan, &self.suite.file, self.agent());
        let mut results: Vec<Option<RubricCaseResult>> = vec![None; file.cases.len()];
        let cases = file.cases.iter().zip(samples).enumerate();
        let mut running = stream::iter(cases)
            .map(|(index, (case, sample))| async move {
                // Asked only now, since a case before it may have been the last that is to begin.
                let stopped = self.shared.stop.load(Ordering::Relaxed);
                (index, if stopped { None } else { Some(self.case(case, sample).await) })
            })
            .buffer_unordered(plan.concurrency.max(1));
        let cancelled = cancel.cancelled();
        tokio::pin!(cancelled);
        loop {
            // Cancelled while asking: the case has not ended, so there is nothing to report.
            tokio::select! {
                biased;
                () = &mut cancelled => break,
                ended = running.next() => match ended {
                    Some((index, result)) => results[index] = result,
                    None => break,
                },
            }
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
            summary: RubricSummary::of(&cases, file.cases.len()),
            cases,
            wall_clock_ms: millis(begun, Instant::now()),
        }
    }

    fn agent(&self) -> &dyn Agent {
        self.shared.agents[self.suite.agent].as_ref()
    }

    fn warnings(&self, cases: &[RubricCaseResult]) -> Vec<String> {
        let stale = check_staleness(&self.suite.file.without_rubrics(), &self.suite.current);
        let mut warnings: Vec<String> = stale.iter().filter(|one| one.is_stale()).map(Staleness::warning).collect();
        warnings.extend(unused_stubs(self.suite.file.cases.iter().map(|case| &case.case), self.agent()));
        let routed = |case: &&RubricCase| self.agent().mode(&case.case) == Mode::RoutingOnly;
        if self.suite.file.cases.iter().any(|case| routed(&case)) {
            let text = "cases without stubs were scored by a model's first turn, before any tool answered";
            warnings.push(text.to_owned());
        }
        let odd: BTreeSet<&str> = cases.iter().flat_map(|case| &case.details.warnings).map(String::as_str).collect();
        warnings.extend(odd.into_iter().take(5).map(str::to_owned));
        warnings
    }

    /// Asks the agent, then the judge about each dimension.
    async fn case(&self, case: &RubricCase, sample: u32) -> RubricCaseResult {
        let plan = &self.shared.plan;
        let mut judged = Judged::default();
        let rubric = self.score(case, sample, &mut judged).await;
        let mut result = RubricCaseResult {
            id: case.case.id.clone(),
            description: case.case.description.clone(),
            outcome: RubricVerdict::Judged,
            duration_ms: whole_millis(judged.duration.as_secs_f64() * 1000.0),
            error: None,
            dimensions: Vec::new(),
            score: None,
            max_score: total(case.rubric.iter().map(|dimension| dimension.max_score)),
            judge_usage: total_usage(judged.usages.iter().map(Option::as_ref)),
            judge_asked: !judged.usages.is_empty(),
            details: judged.details,
        };
        match rubric {
            Ok(dimensions) => {
                result.score = Some(total(dimensions.iter().map(|dimension| dimension.score)));
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
            let words = scores.flat_map(|one| [&mut one.dimension, &mut one.criteria, &mut one.reason]);
            let texts = [&mut result.id, &mut result.description].into_iter().chain(&mut result.error).chain(words);
            texts.for_each(|text| plan.redactor.string(text));
        }
        // Only now, since half a secret is not recognised.
        result.error.iter_mut().for_each(cut);
        result
    }

    async fn score(&self, case: &RubricCase, sample: u32, judged: &mut Judged) -> Result<Vec<RubricScore>, String> {
        let redactor = &self.shared.plan.redactor;
        let trace = self.answer(case, sample, &mut judged.duration).await?;
        let mut evidence = evidence(case, &trace);
        judged.details = details(trace, Vec::new(), Vec::new());
        if !redactor.is_empty() {
            // The judge is somebody else than the agent: what the agent was trusted with is not for its eyes.
            redactor.map(&mut evidence);
            redact_details(&mut judged.details, redactor);
        }
        let mut scores = Vec::with_capacity(case.rubric.len());
        for dimension in &case.rubric {
            let name = &dimension.dimension;
            let reply = self.ask_judge(&judge_prompt(&evidence, dimension)).await;
            // A call that failed may have been paid for all the same, and nobody knows how much.
            judged.usages.push(reply.as_ref().ok().and_then(|reply| reply.usage.clone()));
            let reply = reply.map_err(|message| format!("the judge gave no score for '{name}': {message}"))?;
            let read = read_score(&reply.value, dimension);
            let score = read.map_err(|message| format!("the judge's answer for '{name}' cannot be used: {message}"))?;
            let Dimension { dimension, criteria, max_score } = dimension.clone();
            scores.push(RubricScore { dimension, criteria, max_score, score: score.score, reason: score.reason });
        }
        Ok(scores)
    }

    async fn answer(&self, case: &RubricCase, sample: u32, duration: &mut Duration) -> Result<Trace, String> {
        let (watch, agent) = (Stopwatch::start(), self.agent());
        let ask = Ask { case: &case.case, sample, waiting: &watch };
        let give_up = |error: &AgentError| agent.given_up(ask, error);
        let answered = within(self.shared.plan.timeout, &watch, || agent.answer(ask), give_up).await;
        *duration = match &answered {
            Ok(trace) => Duration::try_from_secs_f64(trace.latency_ms / 1000.0).unwrap_or_default(),
            Err(error) => error.elapsed,
        };
        answered.map_err(|error| self.heed(error))
    }

    async fn ask_judge(&self, prompt: &ChatPrompt) -> Result<ChatReply, String> {
        let watch = Stopwatch::start();
        let give_up = |error: &AgentError| self.judge.given_up(prompt, error);
        let complete = || self.judge.complete(prompt, &watch);
        let replied = within(self.shared.plan.timeout, &watch, complete, give_up).await;
        replied.map_err(|error| self.heed(error))
    }

    /// Returns what went wrong, and lets no further case begin where none would fare better.
    fn heed(&self, error: AgentError) -> String {
        if error.ends_run() {
            self.shared.stop.store(true, Ordering::Relaxed);
        }
        error.message
    }
}

/// What is kept of a case whether or not it came to a score.
#[derive(Default)]
struct Judged {
    duration: Duration,
    details: CaseDetails,
    /// Of each question to the judge, where it is known.
    usages: Vec<Option<Usage>>,
}

fn total(scores: impl Iterator<Item = u64>) -> u64 {
    scores.fold(0, u64::saturating_add)
}
