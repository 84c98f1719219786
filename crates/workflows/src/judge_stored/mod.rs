//! Judges stored traces with stored evals.
//!
//! Skips traces that the version of an eval has already judged in their current state. Executions are stored in batches
//! along the way, so that an interrupted run can be resumed.

mod pages;
mod plan;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use karat_core::judgement::EvalOptions;
use karat_core::port::StoreError;
use karat_core::stored::TraceFilter;
use karat_evals::execution::GuestFunction;
use karat_evals::port::EvalStore;
use karat_evals::report::StoredEvalRunSummary;
use karat_evals::tally::Tally;
use karat_evals::version::{EvalVersion, StoredExecution};
use karat_sandbox::{Finding, Function, Judged, ProjectRules, Sandbox, StreamError, validate_with};
use karat_store::Store;
use tokio_util::sync::CancellationToken;

use self::pages::{TraceKey, TracePages};
use self::plan::{PlannedEval, plan, warn_about_edited_files};
use crate::batch_writer::{BatchOutcome, BatchWriter};
use crate::context::Context;
use crate::context::sandbox::SandboxOptions;
use crate::context::store::{open_existing_store, with_open_store};
use crate::error::Error;
use crate::event::EventSink;

pub struct Request {
    /// Names of evals in the store; all if empty.
    pub evals: Vec<String>,
    /// The version, if there is only one eval; default: the newest.
    pub version: Option<u64>,
    pub filter: TraceFilter,
    /// Also judge traces that were judged before.
    pub again: bool,
    pub options: SandboxOptions,
}

pub enum Event {
    /// The number of missing executions.
    Planned { to_judge: u64 },
    /// An execution was stored.
    Stored(Box<StoredExecution>),
    /// The totals so far.
    Progress { judged: u64, passed: u64, failed: u64, errored: u64 },
    /// No more events are available now: flush buffered output.
    Idle,
}

/// The summary of a run, with the error if it ended early. Executions are stored in either case.
pub struct Outcome {
    pub summary: StoredEvalRunSummary,
    pub error: Option<Error>,
}

pub async fn judge_stored(
    request: Request,
    context: &Context<'_>,
    events: &mut dyn EventSink<Event>,
    cancel: &CancellationToken,
) -> Result<Outcome, Error> {
    let guest = context.find_guest()?;
    let planning = with_open_store(open_existing_store(&context.settings), async |store| {
        plan(store, &request, guest.hash(), &context.settings).await
    });
    let (store, (traces, planned)) = tokio::select! {
        planned = planning => planned?,
        () = cancel.cancelled() => return Err(Error::cancelled()),
    };
    if request.version.is_none() {
        warn_about_edited_files(&planned, &context.settings, context.notices);
    }
    let to_judge = planned.iter().map(|eval| eval.to_judge).sum();
    let started = Instant::now();
    let mut run = Run { request: &request, context, events, cancel, store, summary: StoredEvalRunSummary::new(traces) };
    let mut ended = Ok(run.emit(Event::Planned { to_judge }));
    let sandbox = if to_judge > 0 { Some(Sandbox::open(&guest)?) } else { None };
    for eval in &planned {
        let version = &eval.version;
        let mut tally = Tally::new([(version.eval_id.as_str(), version.code_hash.as_str())]);
        if let Some(sandbox) = sandbox.as_ref().filter(|_| eval.to_judge > 0) {
            ended = run.judge(eval, sandbox, &mut tally).await;
        }
        // Count executions even after an error.
        run.summary.add(version.version, eval.judged_before, &tally);
        if !matches!(ended, Ok(ControlFlow::Continue(()))) {
            break;
        }
    }
    let Run { store, mut summary, .. } = run;
    store.close().await;
    summary.elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(Outcome { summary, error: ended.err() })
}

/// The state that all evals of a run share.
struct Run<'r, 'c> {
    request: &'r Request,
    context: &'r Context<'c>,
    events: &'r mut dyn EventSink<Event>,
    cancel: &'r CancellationToken,
    store: Store,
    summary: StoredEvalRunSummary,
}

impl Run<'_, '_> {
    fn emit(&mut self, event: Event) -> ControlFlow<()> {
        self.events.emit(event)
    }

    /// Judges the missing traces of one eval and adds them to the tally.
    async fn judge(
        &mut self,
        planned: &PlannedEval,
        sandbox: &Sandbox,
        tally: &mut Tally,
    ) -> Result<ControlFlow<()>, Error> {
        let task = self.request.options.task(vec![Arc::clone(&planned.function)]);
        let mut stream = sandbox.judge_stream(&task, TracePages::new(&self.store, planned, self.request))?;
        let mut writer = execution_writer(&self.store);
        let mut flow = ControlFlow::Continue(());
        let mut ended = Ok(());
        while flow.is_continue() {
            let ready = tokio::select! {
                written = writer.next() => {
                    flow = self.report(written)?;
                    continue;
                }
                ready = stream.next(), if !writer.is_full() => ready,
                () = self.cancel.cancelled() => {
                    self.summary.interrupted = true;
                    // Store what is already judged.
                    flow = ControlFlow::Break(());
                    Ok(stream.take_ready())
                }
            };
            match ready {
                Ok(ready) if ready.is_empty() => break,
                Ok(ready) => {
                    for judged in ready {
                        writer.push(self.execution(&planned.version, sandbox, judged, tally));
                    }
                    if flow.is_continue() {
                        flow = self.emit(self.progress(tally));
                    }
                }
                Err(error) => {
                    ended = Err(match error {
                        StreamError::Sandbox(error) => Error::from(error),
                        StreamError::Source(error) => Error::from(error),
                    });
                    break;
                }
            }
        }
        drop(stream);
        while let Some(written) = writer.flush().await {
            // Store the rest even if the event sink is closed.
            let _ = self.report(written)?;
        }
        ended.map(|()| flow)
    }

    fn execution(
        &self,
        version: &EvalVersion,
        sandbox: &Sandbox,
        judged: Judged<TraceKey>,
        tally: &mut Tally,
    ) -> StoredExecution {
        let Judged { key: TraceKey { id, hash }, mut judgements, .. } = judged;
        tally.add(&judgements, || id.clone());
        let function = guest_function(version, sandbox.guest_hash());
        // The task has one function.
        let judgement = judgements.remove(0);
        StoredExecution::new(function, version.version, (&id, &hash), judgement, self.context.clock.now())
    }

    fn progress(&self, tally: &Tally) -> Event {
        let (passed, failed, errored) = tally.counts();
        let before = &self.summary;
        Event::Progress {
            judged: before.judged + tally.traces(),
            passed: before.passed + passed,
            failed: before.failed + failed,
            errored: before.errored + errored,
        }
    }

    /// Emits the stored executions.
    fn report(&mut self, written: BatchOutcome<StoredExecution>) -> Result<ControlFlow<()>, Error> {
        let failed = written.failed.into_iter().next();
        let mut flow = ControlFlow::Continue(());
        for execution in written.committed {
            if flow.is_continue() {
                flow = self.emit(Event::Stored(Box::new(execution)));
            }
        }
        if flow.is_continue() {
            flow = self.emit(Event::Idle);
        }
        failed.map_or(Ok(flow), |(_, error)| Err(error.into()))
    }
}

fn guest_function<'f>(version: &'f EvalVersion, guest_hash: &'f str) -> GuestFunction<'f> {
    GuestFunction { eval_id: &version.eval_id, code_hash: &version.code_hash, guest_hash }
}

fn execution_writer(store: &Store) -> BatchWriter<'static, StoredExecution> {
    let store = store.clone();
    BatchWriter::new(move |batch: Arc<Vec<StoredExecution>>| {
        let store = store.clone();
        async move {
            // Spawned so that writing continues while judgements arrive.
            let writing = tokio::spawn(async move { store.put_executions(&batch).await });
            writing.await.unwrap_or_else(|error| {
                Err(StoreError { message: format!("cannot store executions: {error}"), hint: None })
            })
        }
    })
}

/// Validates code that may use the optional features in `options`.
pub(crate) fn validate_with_options(code: &str, options: &EvalOptions) -> Result<Function, Vec<Finding>> {
    let helper = |name: &str| options.helpers.get(name).map(|source| source.clone().into_bytes());
    validate_with(code.as_bytes(), &ProjectRules::of_options(options, &helper))
}

/// Validates the code of a stored version: it was valid when it was added, but the rules of karat may have changed.
pub fn validate_version(version: &EvalVersion) -> Result<Function, Error> {
    let refused = |reason: String| {
        let message = format!("version {} of {} is no longer valid: {reason}", version.version, version.eval_id);
        Error::invalid(message).hint(crate::hint::Hint::FixEval)
    };
    let function = validate_with_options(&version.code, &version.options)
        .map_err(|findings| refused(findings.first().map(|finding| finding.message.clone()).unwrap_or_default()))?;
    if function.name != version.eval_id {
        return Err(refused(format!("it defines {}", function.name)));
    }
    Ok(function)
}
