//! Stores a run while it executes: the run, the trials of its cases, and a trace of each answer. Forwards events to the
//! reporters once their cases are stored.
//!
//! Everything stored comes from results, which are already redacted.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use karat_core::document::RunOrigin;
use karat_core::event::{ReportError, RunEvent, RunTotals};
use karat_core::port::{Agent, Clock, RunStore, StoreError};
use karat_core::result::{CaseDetails, CaseResult, Outcome};
use karat_core::stored::{NewTrace, StoredCase, StoredRun};
use karat_json::hash::short_hash;
use karat_runner::{Plan, Reporters, RunSink, SuitePlan};
use karat_store::Store;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use crate::batch_writer::{BatchOutcome, BatchWriter};
use crate::error::Error;
use crate::trace_filter::RUN_SOURCE;

/// Maximum time that a finished case waits for its batch; it is reported only after that.
const MAX_DELAY: Duration = Duration::from_millis(50);

/// Maximum number of cases in a batch: a fast agent answers more within the delay, and each commit takes time.
const MAX_BATCH_CASES: usize = 1000;

/// Maximum number of bytes of a case id in a trace id.
const MAX_ID_BYTES: usize = 200;

/// A trial whose trace could not be stored.
#[derive(Debug, Clone)]
pub struct NotStored {
    pub case_id: String,
    pub reason: String,
}

/// The result of storing and reporting a run.
#[derive(Default)]
pub(super) struct RecordOutcome {
    pub(super) not_stored: Vec<NotStored>,
    /// The error if the run is not completely stored.
    pub(super) error: Option<StoreError>,
    pub(super) report_errors: Vec<ReportError>,
}

#[derive(Clone)]
struct FinishedCase {
    suite: usize,
    index: usize,
    result: Arc<CaseResult>,
}

type CaseWriter = BatchWriter<'static, FinishedCase, Vec<NotStored>>;

/// Stores a run and delays its events until their cases are stored.
pub(super) struct RunRecorder<'r> {
    /// Writes result files at once, while the last cases are stored: each holds all that it reports.
    result_files: Reporters,
    /// Gets the events once their cases are stored.
    reporters: Reporters,
    store: Store,
    record: Arc<RunRecord>,
    clock: &'r dyn Clock,
    writer: CaseWriter,
    /// Events that are not forwarded yet.
    waiting: VecDeque<RunEvent>,
    /// The number of waiting cases that are stored.
    stored: usize,
    not_stored: Vec<NotStored>,
    /// After an error of the store, events are forwarded immediately.
    error: Option<StoreError>,
}

impl<'r> RunRecorder<'r> {
    /// Stores the run, so that a store that cannot be written is detected before any agent is called.
    pub(super) async fn begin(
        store: Store,
        plan: &Plan,
        agents: &[Arc<dyn Agent>],
        clock: &'r dyn Clock,
        result_files: Reporters,
        reporters: Reporters,
    ) -> Result<Self, Error> {
        let now = clock.now();
        let record = Arc::new(RunRecord::new(plan, agents, now));
        store.put_run(&record.run).await?;
        let writer = case_writer(&store, &record, now);
        Ok(Self {
            result_files,
            reporters,
            store,
            record,
            clock,
            writer,
            waiting: VecDeque::new(),
            stored: 0,
            not_stored: Vec::new(),
            error: None,
        })
    }

    /// Stores and reports the rest after the run has ended.
    pub(super) async fn finish(mut self) -> RecordOutcome {
        while let Some(written) = self.writer.flush().await {
            self.written(written);
        }
        if let Some(RunEvent::RunFinished { totals, .. }) = self.waiting.back() {
            let run = self.record.ended(totals, self.clock.now());
            let stored = self.store.put_run(&run).await;
            self.error = self.error.take().or(stored.err());
        }
        // Closing copies the log into the database, which takes as long as writing the reports.
        let store = self.store.clone();
        let closing = tokio::spawn(async move { store.close().await });
        self.stored = self.waiting.len();
        self.forward_events();
        closing.await.ok();
        let mut report_errors = self.result_files.into_errors();
        report_errors.extend(self.reporters.into_errors());
        RecordOutcome { not_stored: self.not_stored, error: self.error, report_errors }
    }

    fn written(&mut self, written: BatchOutcome<FinishedCase, Vec<NotStored>>) {
        self.stored += written.committed.len() + written.failed.len();
        self.not_stored.extend(written.results.into_iter().flatten());
        if let Some((_, error)) = written.failed.into_iter().next() {
            self.error.get_or_insert(error);
        }
    }

    /// Forwards the events before the first case that is not stored yet. The end of the run waits until its totals are
    /// stored.
    fn forward_events(&mut self) {
        let mut forwarded = false;
        while let Some(event) = self.waiting.pop_front_if(|event| match event {
            RunEvent::CaseFinished { .. } | RunEvent::RunFinished { .. } => self.stored > 0,
            _ => true,
        }) {
            if matches!(event, RunEvent::CaseFinished { .. }) {
                self.stored -= 1;
            }
            if matches!(event, RunEvent::RubricFinished { .. } | RunEvent::RunFinished { .. }) {
                // Flush buffered output of the cases before the events that follow from them.
                self.reporters.flush();
            }
            self.reporters.report(&event);
            forwarded = true;
        }
        if forwarded {
            self.reporters.flush();
        }
    }
}

impl RunSink for RunRecorder<'_> {
    fn emit(&mut self, event: RunEvent) {
        self.result_files.report(&event);
        if let RunEvent::CaseFinished { suite, index, result } = &event {
            match &self.error {
                None => self.writer.push(FinishedCase { suite: *suite, index: *index, result: Arc::clone(result) }),
                Some(_) => self.stored += 1,
            }
        }
        self.waiting.push_back(event);
    }

    fn flush(&mut self) {
        self.forward_events();
    }

    async fn work(&mut self) -> Infallible {
        loop {
            let written = self.writer.next().await;
            self.written(written);
            self.forward_events();
        }
    }
}

/// Writes cases and their traces on a thread of its own: making documents of a batch would delay the calls to agents.
fn case_writer(store: &Store, record: &Arc<RunRecord>, now: Timestamp) -> CaseWriter {
    let (store, record) = (store.clone(), Arc::clone(record));
    let write = move |batch: Arc<Vec<FinishedCase>>| {
        let (store, record) = (store.clone(), Arc::clone(&record));
        async move {
            let runtime = Handle::current();
            let put = async move {
                let (cases, traces) = record.stored(&batch);
                match store.put_cases(&cases, &traces, now).await {
                    Ok(()) => Ok(Vec::new()),
                    Err(error) if batch.len() > 1 => Err(error),
                    Err(_) => put_each_trial(&store, cases, &traces, now).await,
                }
            };
            let writing = spawn_blocking(move || runtime.block_on(put));
            writing.await.unwrap_or_else(|error| {
                Err(StoreError { message: format!("cannot store the run: {error}"), hint: None })
            })
        }
    };
    BatchWriter::new(write).max_rows(MAX_BATCH_CASES).max_delay(MAX_DELAY)
}

/// Stores the trials of a case one by one; without the trace if the trace cannot be stored.
async fn put_each_trial(
    store: &Store,
    cases: Vec<StoredCase>,
    traces: &[NewTrace],
    now: Timestamp,
) -> Result<Vec<NotStored>, StoreError> {
    let mut not_stored = Vec::new();
    for mut trial in cases {
        let trace = traces.iter().find(|trace| Some(&trace.head.trace_id) == trial.trace_id.as_ref());
        let put = store.put_cases(slice::from_ref(&trial), trace.map_or(&[], slice::from_ref), now).await;
        let Err(error) = put else { continue };
        trial.trace_id = None;
        store.put_cases(slice::from_ref(&trial), &[], now).await.map_err(|_| error.clone())?;
        not_stored.push(NotStored { case_id: trial.case_id, reason: error.message });
    }
    Ok(not_stored)
}

/// The data of a run that is not part of its results.
struct RunRecord {
    run_id: Arc<str>,
    run: StoredRun,
    suites: Vec<Suite>,
}

struct Suite {
    /// From 1, in the order of the run. A file has one number per agent.
    number: usize,
    eval_file: Arc<str>,
    tool_name: Arc<str>,
    tier: Arc<str>,
    agent: Arc<str>,
    /// The first messages of the conversations, by the position of their case. Those of other cases are in the results.
    messages: HashMap<usize, String>,
}

impl RunRecord {
    fn new(plan: &Plan, agents: &[Arc<dyn Agent>], started_at: Timestamp) -> Self {
        let text = |text: &str| plan.redactor.text(text).into_owned();
        let agents: Vec<String> = agents.iter().map(|agent| text(&agent.identity())).collect();
        let suite = |(index, suite): (usize, &SuitePlan)| Suite {
            number: index + 1,
            eval_file: suite.project_path.as_str().into(),
            tool_name: suite.tool_name().into(),
            tier: suite.file.tier.to_string().into(),
            agent: agents[suite.agent].as_str().into(),
            messages: (0..)
                .zip(&suite.file.cases)
                .filter(|(_, case)| case.has_turns())
                .map(|(index, case)| (index, text(case.message(0))))
                .collect(),
        };
        let suites: Vec<Suite> = plan.suites.iter().enumerate().map(suite).collect();
        let run = StoredRun {
            run_id: plan.run_id.clone(),
            started_at,
            ended_at: None,
            agents,
            suites: suites.len() as u64,
            cases: 0,
            passed: 0,
            failed: 0,
            errored: 0,
            interrupted: false,
        };
        Self { run_id: run.run_id.as_str().into(), run, suites }
    }

    fn ended(&self, totals: &RunTotals, ended_at: Timestamp) -> StoredRun {
        StoredRun {
            ended_at: Some(ended_at),
            cases: totals.cases as u64,
            passed: totals.passed as u64,
            // In the totals, errored cases also count as failed.
            failed: totals.failed.saturating_sub(totals.errored) as u64,
            errored: totals.errored as u64,
            interrupted: totals.interrupted,
            ..self.run.clone()
        }
    }

    fn stored(&self, cases: &[FinishedCase]) -> (Vec<StoredCase>, Vec<NewTrace>) {
        let (mut stored, mut traces) = (Vec::with_capacity(cases.len()), Vec::with_capacity(cases.len()));
        for FinishedCase { suite, index, result } in cases {
            let Some(suite) = self.suites.get(*suite) else { continue };
            let message = suite.messages.get(index).map_or(result.message.as_str(), String::as_str);
            for (number, trial) in (1..).zip(trials_of(result)) {
                let trace = trial.has_answer().then(|| self.trace(suite, &result.id, message, number, &trial));
                stored.push(StoredCase {
                    run_id: Arc::clone(&self.run_id),
                    suite: suite.number as u64,
                    position: *index as u64 + 1,
                    eval_file: Arc::clone(&suite.eval_file),
                    tool_name: Arc::clone(&suite.tool_name),
                    tier: Arc::clone(&suite.tier),
                    agent: Arc::clone(&suite.agent),
                    case_id: result.id.clone(),
                    trial: number,
                    outcome: trial.outcome,
                    error: trial.error.map(str::to_owned),
                    duration_ms: trial.duration_ms,
                    trace_id: trace.as_ref().map(|trace| trace.head.trace_id.clone()),
                });
                traces.extend(trace);
            }
        }
        (stored, traces)
    }

    fn trace(&self, suite: &Suite, case_id: &str, message: &str, number: u64, trial: &TrialResult<'_>) -> NewTrace {
        let id = format!("{}:{}:{}:{number}", self.run.run_id, suite.number, case_key(case_id));
        let origin = RunOrigin {
            run_id: &self.run.run_id,
            eval_file: &suite.eval_file,
            case_id,
            trial: number,
            agent: &suite.agent,
        };
        NewTrace::from_answer(&trial.details.document(&id, message, Some(origin)), RUN_SOURCE)
    }
}

/// Returns the key of a case in its trace ids: the case id, or its prefix and hash if it is too long for a key in the
/// store.
fn case_key(case_id: &str) -> Cow<'_, str> {
    if case_id.len() <= MAX_ID_BYTES {
        return Cow::Borrowed(case_id);
    }
    let beginning = &case_id[..case_id.floor_char_boundary(MAX_ID_BYTES)];
    Cow::Owned(format!("{beginning}~{}", short_hash(case_id.as_bytes())))
}

/// One trial of a case.
struct TrialResult<'t> {
    outcome: Outcome,
    duration_ms: u64,
    error: Option<&'t str>,
    details: &'t CaseDetails,
    /// Whether an assertion was evaluated, or there was none.
    was_judged: bool,
}

impl TrialResult<'_> {
    /// Whether the agent answered; false after a timeout or an error.
    fn has_answer(&self) -> bool {
        let turns = &self.details.turns;
        if !turns.is_empty() {
            return turns.iter().any(|turn| turn.response.is_some());
        }
        self.was_judged || *self.details != CaseDetails::default()
    }
}

fn trials_of(result: &CaseResult) -> impl Iterator<Item = TrialResult<'_>> {
    let single = result.trials.is_none().then(|| TrialResult {
        outcome: result.outcome,
        duration_ms: result.duration_ms,
        error: result.error.as_deref(),
        details: &result.details,
        was_judged: result.assertions_run + result.assertions_skipped > 0 || result.vacuous,
    });
    let several = result.trials.iter().flat_map(|trials| &trials.attempts).map(|trial| TrialResult {
        outcome: trial.outcome,
        duration_ms: trial.duration_ms,
        error: trial.error.as_deref(),
        details: &trial.details,
        was_judged: trial.assertions_run + trial.assertions_skipped > 0 || trial.vacuous,
    });
    single.into_iter().chain(several)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortens_long_ids_and_keeps_them_distinct() {
        assert_eq!(case_key("gs-001"), "gs-001");
        let long = "ä".repeat(1000);
        let (first, second) = (case_key(&long).into_owned(), case_key(&format!("{long}b")).into_owned());
        assert!(first.len() < 220 && first.starts_with("ää"), "{first}");
        assert_ne!(first, second);
    }
}
