//! Keeps a run in the store while it goes on: the run, the tries of its cases, and a trace of each answer.
//!
//! What is kept is made of results, which secrets were taken out of. A task of its own writes, in batches, so that no case
//! waits for the store.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use karat_core::event::{ReportError, Reporter};
use karat_core::event::{RunEvent, RunTotals};
use karat_core::port::{Agent, Clock, RunStore, StoreError};
use karat_core::result::{CaseDetails, CaseResult, Outcome};
use karat_core::stored::{Expected, NewTrace, StoredCase, StoredRun, TraceHead};
use karat_json::hash::short_hash;
use karat_runner::{Plan, SuitePlan};
use karat_store::Store;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::failure::Failure;
use crate::store::open_store;
use karat_workflows::context::clock::SystemClock;
use karat_workflows::settings::Settings;
use karat_workflows::trace_filter::RUN_SOURCE;

/// How many tries are written at once, and how long one waits for others to be written with it.
const MOST: usize = 500;
const LONGEST: Duration = Duration::from_millis(200);
/// How many bytes of a case's id its traces' ids have.
const LONGEST_ID: usize = 200;

/// A run that is being kept.
pub(crate) struct KeptRun {
    words: UnboundedSender<Word>,
    writing: JoinHandle<Result<Vec<Unkept>, StoreError>>,
}

/// A try whose trace the store did not take.
pub(crate) struct Unkept {
    pub(crate) case_id: String,
    pub(crate) error: StoreError,
}

/// What the writer is told.
enum Word {
    Case { suite: usize, index: usize, result: Arc<CaseResult> },
    End(Box<RunTotals>),
}

impl KeptRun {
    /// Opens the store and puts the run there, so that a store that takes nothing is found before anybody is asked.
    pub(crate) async fn begin(settings: &Settings, plan: &Plan, agents: &[Arc<dyn Agent>]) -> Result<Self, Failure> {
        let unusable = |failure: Failure| failure.hint("--no-store runs without keeping anything there");
        let store = open_store(settings).await.map_err(unusable)?;
        let book = Book::new(plan, agents, SystemClock.now());
        store.put_run(&book.run).await.map_err(|error| unusable(Failure::from(error)))?;
        let (words, heard) = unbounded_channel();
        Ok(Self { words, writing: tokio::spawn(write(store, book, heard)) })
    }

    /// Returns who hears what there is to keep.
    pub(crate) fn reporter(&self) -> Box<dyn Reporter> {
        Box::new(Telling(self.words.clone()))
    }

    /// Waits until all is in the store, and returns which traces are not.
    pub(crate) async fn end(self) -> Result<Vec<Unkept>, StoreError> {
        drop(self.words);
        let broken = |error| StoreError { message: format!("the run was not kept: {error}"), hint: None };
        self.writing.await.map_err(broken)?
    }
}

/// Passes on what there is to keep. Whether it was kept is known at the end.
struct Telling(UnboundedSender<Word>);

impl Reporter for Telling {
    fn on_event(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        let word = match event {
            RunEvent::CaseFinished { suite, index, result } => {
                Word::Case { suite: *suite, index: *index, result: Arc::clone(result) }
            }
            RunEvent::RunFinished { totals, .. } => Word::End(Box::new(totals.clone())),
            RunEvent::RunStarted { .. } | RunEvent::SuiteFinished { .. } | RunEvent::RubricFinished { .. } => {
                return Ok(());
            }
        };
        // A writer that has given up says why at the end.
        let _ = self.0.send(word);
        Ok(())
    }
}

async fn write(store: Store, book: Book, heard: UnboundedReceiver<Word>) -> Result<Vec<Unkept>, StoreError> {
    let written = write_down(&store, book, heard).await;
    store.close().await;
    written
}

async fn write_down(
    store: &Store,
    mut book: Book,
    mut heard: UnboundedReceiver<Word>,
) -> Result<Vec<Unkept>, StoreError> {
    let mut unkept = Vec::new();
    let mut is_over = false;
    while !is_over {
        let mut cases = Vec::new();
        let mut deadline = None;
        while cases.len() < MOST {
            let word = match deadline {
                None => heard.recv().await,
                Some(deadline) => match timeout_at(deadline, heard.recv()).await {
                    Ok(word) => word,
                    Err(_) => break,
                },
            };
            match word {
                Some(Word::Case { suite, index, result }) => {
                    deadline.get_or_insert_with(|| Instant::now() + LONGEST);
                    cases.push((suite, index, result));
                }
                Some(Word::End(totals)) => book.end(&totals, SystemClock.now()),
                None => {
                    is_over = true;
                    break;
                }
            }
        }
        if !cases.is_empty() {
            let (cases, traces) = book.tries(&cases);
            if store.put_cases(&cases, &traces, SystemClock.now()).await.is_err() {
                put_one_by_one(store, cases, &traces, &mut unkept).await?;
            }
        }
    }
    if book.run.ended_at.is_some() {
        store.put_run(&book.run).await?;
    }
    Ok(unkept)
}

/// Puts tries in by themselves, so that a trace that cannot be kept costs no other. Its try is kept without it; where not
/// even that is taken, it is the store that takes nothing.
async fn put_one_by_one(
    store: &Store,
    cases: Vec<StoredCase>,
    traces: &[NewTrace],
    unkept: &mut Vec<Unkept>,
) -> Result<(), StoreError> {
    for mut case in cases {
        let trace = traces.iter().find(|trace| Some(&trace.head.trace_id) == case.trace_id.as_ref());
        let put =
            store.put_cases(std::slice::from_ref(&case), trace.map_or(&[], std::slice::from_ref), SystemClock.now());
        let Err(error) = put.await else { continue };
        case.trace_id = None;
        store.put_cases(std::slice::from_ref(&case), &[], SystemClock.now()).await.map_err(|_| error.clone())?;
        unkept.push(Unkept { case_id: case.case_id, error });
    }
    Ok(())
}

/// What is known of the run beside its results.
struct Book {
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

impl Book {
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

    fn end(&mut self, totals: &RunTotals, ended_at: Timestamp) {
        let run = &mut self.run;
        run.ended_at = Some(ended_at);
        run.cases = totals.cases as u64;
        run.passed = totals.passed as u64;
        // Totals count what errored among what did not pass.
        run.failed = totals.failed.saturating_sub(totals.errored) as u64;
        run.errored = totals.errored as u64;
        run.interrupted = totals.interrupted;
    }

    fn tries(&self, cases: &[(usize, usize, Arc<CaseResult>)]) -> (Vec<StoredCase>, Vec<NewTrace>) {
        let (mut kept, mut traces) = (Vec::with_capacity(cases.len()), Vec::with_capacity(cases.len()));
        for (suite, index, result) in cases {
            let Some(suite) = self.suites.get(*suite) else { continue };
            let message = suite.messages.get(*index).map(String::as_str).unwrap_or_default();
            for (place, one) in tries_of(result).enumerate() {
                let trial = place as u64 + 1;
                let trace = one.has_answer().then(|| self.trace(suite, &result.id, message, trial, &one));
                kept.push(StoredCase {
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
        (kept, traces)
    }

    fn trace(&self, suite: &Suite, case_id: &str, message: &str, trial: u64, one: &Try<'_>) -> NewTrace {
        let id = format!("{}:{}:{}:{trial}", self.run.run_id, suite.number, key_of(case_id));
        let mut document = one.details.document(&id, message);
        if let Value::Object(document) = &mut document {
            document.insert("name".to_owned(), Value::from(case_id));
            let origin = json!({
                "run_id": self.run.run_id,
                "eval_file": suite.eval_file,
                "case_id": case_id,
                "trial": trial,
                "agent": suite.agent,
            });
            document.insert("metadata".to_owned(), origin);
        }
        let text = document.to_string();
        NewTrace {
            head: TraceHead::of(&id, &document, &text),
            source: RUN_SOURCE.to_owned(),
            raw: text.clone().into_bytes(),
            document: text,
            expected: Expected::Anything,
        }
    }
}

/// Returns what stands for a case in its traces' ids: its own id, or where that is long, its beginning and its hash. A
/// store takes no key of any length.
fn key_of(case_id: &str) -> Cow<'_, str> {
    if case_id.len() <= LONGEST_ID {
        return Cow::Borrowed(case_id);
    }
    let beginning = &case_id[..case_id.floor_char_boundary(LONGEST_ID)];
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
