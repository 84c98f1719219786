//! Stores a run while it goes on, and passes its events on after they are stored: the run, the tries of its cases, and a
//! trace of each answer.
//!
//! What is stored is made of results, which secrets were taken out of.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use karat_core::event::{ReportError, RunEvent, RunTotals};
use karat_core::port::{Agent, Clock, RunStore, StoreError};
use karat_core::result::{CaseDetails, CaseResult, Outcome};
use karat_core::stored::{NewTrace, StoredCase, StoredRun};
use karat_core::trace::RunOrigin;
use karat_json::hash::short_hash;
use karat_runner::{Plan, Reporters, RunSink, SuitePlan};
use karat_store::Store;

use crate::batch_writer::{BatchWriter, Written};
use crate::error::Error;
use crate::trace_filter::RUN_SOURCE;

/// How long a finished case waits for others to be stored with it: it is shown after that.
const MAX_DELAY: Duration = Duration::from_millis(50);

/// How many bytes of a case's id its traces' ids have.
const MAX_ID_BYTES: usize = 200;

/// A try whose trace the store did not take.
#[derive(Debug, Clone)]
pub struct NotStored {
    pub case_id: String,
    pub reason: String,
}

/// What came of storing and reporting a run.
#[derive(Default)]
pub(super) struct Recorded {
    pub(super) not_stored: Vec<NotStored>,
    /// Why the run is not whole in the store.
    pub(super) error: Option<Error>,
    pub(super) report_errors: Vec<ReportError>,
}

#[derive(Clone)]
struct FinishedCase {
    suite: usize,
    index: usize,
    result: Arc<CaseResult>,
}

type CaseWriter = BatchWriter<'static, FinishedCase, Vec<NotStored>>;

/// Stores a run, and holds its events back until their cases are stored.
pub(super) struct RunRecorder<'r> {
    reporters: Reporters,
    store: Store,
    record: Arc<RunRecord>,
    clock: &'r dyn Clock,
    writer: CaseWriter,
    /// Events that wait for their turn.
    waiting: VecDeque<RunEvent>,
    /// How many of the waiting cases are stored.
    stored: usize,
    not_stored: Vec<NotStored>,
    /// Once the store fails, events are passed on at once.
    error: Option<StoreError>,
}

impl<'r> RunRecorder<'r> {
    /// Puts the run into the store, so that a store that takes nothing is found before an agent is asked.
    pub(super) async fn begin(
        store: Store,
        plan: &Plan,
        agents: &[Arc<dyn Agent>],
        clock: &'r dyn Clock,
        reporters: Reporters,
    ) -> Result<Self, Error> {
        let now = clock.now();
        let record = Arc::new(RunRecord::new(plan, agents, now));
        store.put_run(&record.run).await?;
        let writer = case_writer(&store, &record, now);
        Ok(Self {
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

    /// Stores and reports what is left, after the run has ended.
    pub(super) async fn finish(mut self) -> Recorded {
        while let Some(written) = self.writer.flush().await {
            self.written(written);
        }
        if let Some(RunEvent::RunFinished { totals, .. }) = self.waiting.back() {
            let run = self.record.ended(totals, self.clock.now());
            let stored = self.store.put_run(&run).await;
            self.error = self.error.take().or(stored.err());
        }
        self.stored = self.waiting.len();
        self.pass_on();
        self.store.close().await;
        Recorded {
            not_stored: self.not_stored,
            error: self.error.map(Error::from),
            report_errors: self.reporters.into_errors(),
        }
    }

    fn written(&mut self, written: Written<FinishedCase, Vec<NotStored>>) {
        self.stored += written.committed.len() + written.failed.len();
        self.not_stored.extend(written.results.into_iter().flatten());
        if let Some((_, error)) = written.failed.into_iter().next() {
            self.error.get_or_insert(error);
        }
    }

    /// Hands on the events before the first case that is not stored yet. The run's end waits for the run's own numbers.
    fn pass_on(&mut self) {
        let mut passed_on = false;
        while let Some(event) = self.waiting.pop_front_if(|event| match event {
            RunEvent::CaseFinished { .. } | RunEvent::RunFinished { .. } => self.stored > 0,
            _ => true,
        }) {
            if matches!(event, RunEvent::CaseFinished { .. }) {
                self.stored -= 1;
            }
            if matches!(event, RunEvent::RubricFinished { .. } | RunEvent::RunFinished { .. }) {
                // What reporters held back of the cases comes before what follows from them.
                self.reporters.flush();
            }
            self.reporters.report(&event);
            passed_on = true;
        }
        if passed_on {
            self.reporters.flush();
        }
    }
}

impl RunSink for RunRecorder<'_> {
    fn emit(&mut self, event: RunEvent) {
        if let RunEvent::CaseFinished { suite, index, result } = &event {
            match &self.error {
                None => self.writer.push(FinishedCase { suite: *suite, index: *index, result: Arc::clone(result) }),
                Some(_) => self.stored += 1,
            }
        }
        self.waiting.push_back(event);
    }

    fn flush(&mut self) {
        self.pass_on();
    }

    async fn work(&mut self) -> Infallible {
        loop {
            let written = self.writer.next().await;
            self.written(written);
            self.pass_on();
        }
    }
}

/// Writes cases and their traces on tasks of their own: neither judging nor reporting waits for the store.
fn case_writer(store: &Store, record: &Arc<RunRecord>, now: Timestamp) -> CaseWriter {
    let (store, record) = (store.clone(), Arc::clone(record));
    let write = move |batch: Arc<Vec<FinishedCase>>| {
        let (store, record) = (store.clone(), Arc::clone(&record));
        async move {
            let writing = tokio::spawn(async move {
                let (tries, traces) = record.stored(&batch);
                match store.put_cases(&tries, &traces, now).await {
                    Ok(()) => Ok(Vec::new()),
                    Err(error) if batch.len() > 1 => Err(error),
                    Err(_) => put_each_try(&store, tries, &traces, now).await,
                }
            });
            writing.await.unwrap_or_else(|error| {
                Err(StoreError { message: format!("cannot store the run: {error}"), hint: None })
            })
        }
    };
    BatchWriter::new(write).max_delay(MAX_DELAY)
}

/// Stores the tries of a case one by one, each without its trace where the store does not take that.
async fn put_each_try(
    store: &Store,
    tries: Vec<StoredCase>,
    traces: &[NewTrace],
    now: Timestamp,
) -> Result<Vec<NotStored>, StoreError> {
    let mut not_stored = Vec::new();
    for mut one in tries {
        let trace = traces.iter().find(|trace| Some(&trace.head.trace_id) == one.trace_id.as_ref());
        let put = store.put_cases(slice::from_ref(&one), trace.map_or(&[], slice::from_ref), now).await;
        let Err(error) = put else { continue };
        one.trace_id = None;
        store.put_cases(slice::from_ref(&one), &[], now).await.map_err(|_| error.clone())?;
        not_stored.push(NotStored { case_id: one.case_id, reason: error.message });
    }
    Ok(not_stored)
}

/// What is known of the run beside its results.
struct RunRecord {
    run: StoredRun,
    suites: Vec<Suite>,
}

struct Suite {
    /// From 1, in the order of the run: one file may be asked of several agents.
    number: usize,
    eval_file: String,
    tool_name: String,
    tier: String,
    agent: String,
    /// What each case asks, in the cases' order.
    messages: Vec<String>,
}

impl RunRecord {
    fn new(plan: &Plan, agents: &[Arc<dyn Agent>], started_at: Timestamp) -> Self {
        let text = |text: &str| plan.redactor.text(text).into_owned();
        let agents: Vec<String> = agents.iter().map(|agent| text(&agent.identity())).collect();
        let suite = |(index, suite): (usize, &SuitePlan)| Suite {
            number: index + 1,
            eval_file: suite.project_path.clone(),
            tool_name: suite.tool_name().to_owned(),
            tier: suite.file.tier.to_string(),
            agent: agents[suite.agent].clone(),
            messages: suite.file.cases.iter().map(|case| text(&case.input.message)).collect(),
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
        Self { run, suites }
    }

    fn ended(&self, totals: &RunTotals, ended_at: Timestamp) -> StoredRun {
        StoredRun {
            ended_at: Some(ended_at),
            cases: totals.cases as u64,
            passed: totals.passed as u64,
            // Totals count what errored among what did not pass.
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
            let message = suite.messages.get(*index).map(String::as_str).unwrap_or_default();
            for (place, one) in tries_of(result).enumerate() {
                let trial = place as u64 + 1;
                let trace = one.has_answer().then(|| self.trace(suite, &result.id, message, trial, &one));
                stored.push(StoredCase {
                    run_id: self.run.run_id.clone(),
                    suite: suite.number as u64,
                    place: *index as u64 + 1,
                    eval_file: suite.eval_file.clone(),
                    tool_name: suite.tool_name.clone(),
                    tier: suite.tier.clone(),
                    agent: suite.agent.clone(),
                    case_id: result.id.clone(),
                    trial,
                    outcome: one.outcome,
                    error: one.error.map(str::to_owned),
                    duration_ms: one.duration_ms,
                    trace_id: trace.as_ref().map(|trace| trace.head.trace_id.clone()),
                });
                traces.extend(trace);
            }
        }
        (stored, traces)
    }

    fn trace(&self, suite: &Suite, case_id: &str, message: &str, trial: u64, one: &Try<'_>) -> NewTrace {
        let id = format!("{}:{}:{}:{trial}", self.run.run_id, suite.number, key_of(case_id));
        let origin =
            RunOrigin { run_id: &self.run.run_id, eval_file: &suite.eval_file, case_id, trial, agent: &suite.agent };
        NewTrace::of_answer(&one.details.document(&id, message, origin), RUN_SOURCE)
    }
}

/// Returns what stands for a case in its traces' ids: its own id, or where that is long, its beginning and its hash. A
/// store takes no key of any length.
fn key_of(case_id: &str) -> Cow<'_, str> {
    if case_id.len() <= MAX_ID_BYTES {
        return Cow::Borrowed(case_id);
    }
    let beginning = &case_id[..case_id.floor_char_boundary(MAX_ID_BYTES)];
    Cow::Owned(format!("{beginning}~{}", short_hash(case_id.as_bytes())))
}

/// One try of a case.
struct Try<'t> {
    outcome: Outcome,
    duration_ms: u64,
    error: Option<&'t str>,
    details: &'t CaseDetails,
    /// An assertion was looked at, or there was none to look at.
    was_judged: bool,
}

impl Try<'_> {
    /// Tells whether the agent answered: else it took too long, or there was an error in place of an answer.
    fn has_answer(&self) -> bool {
        self.was_judged || *self.details != CaseDetails::default()
    }
}

fn tries_of(result: &CaseResult) -> impl Iterator<Item = Try<'_>> {
    let single = result.trials.is_none().then(|| Try {
        outcome: result.outcome,
        duration_ms: result.duration_ms,
        error: result.error.as_deref(),
        details: &result.details,
        was_judged: result.assertions_run + result.assertions_skipped > 0 || result.vacuous,
    });
    let several = result.trials.iter().flat_map(|trials| &trials.tries).map(|one| Try {
        outcome: one.outcome,
        duration_ms: one.duration_ms,
        error: one.error.as_deref(),
        details: &one.details,
        was_judged: one.assertions_run + one.assertions_skipped > 0 || one.vacuous,
    });
    single.into_iter().chain(several)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_id_is_shortened_and_stays_apart() {
        assert_eq!(key_of("gs-001"), "gs-001");
        let long = "ä".repeat(1000);
        let (one, other) = (key_of(&long).into_owned(), key_of(&format!("{long}b")).into_owned());
        assert!(one.len() < 220 && one.starts_with("ää"), "{one}");
        assert_ne!(one, other);
    }
}
