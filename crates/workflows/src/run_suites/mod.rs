//! Runs eval files against the agents, judges the answers, writes result files and stores the run.

mod list;
mod plan;
mod recorder;
mod selection;
mod tool_errors;
mod unknown_tools;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use karat_agents::Throttle;
use karat_core::event::{ReportError, Reporter, RunTotals};
use karat_core::port::{Agent, Hook, HookError, Hooks, StoreError, Telemetry};
use karat_project::{ResultFileReporter, check_writable_folder};
use karat_runner::{Plan, Reporters};
use tokio_util::sync::CancellationToken;

pub use self::list::list_cases;
use self::plan::{PreparedRun, load, prepare};
pub use self::recorder::NotStored;
use self::recorder::{RecordOutcome, RunRecorder};
pub use self::selection::SelectionRequest;
use crate::context::Context;
use crate::context::recordings::{RecordingSummary, Recordings};
use crate::error::Error;
use crate::hint::Hint;

#[derive(Clone)]
pub struct Request {
    /// Eval files, folders or globs; all eval files of the project if empty.
    pub paths: Vec<PathBuf>,
    pub selection: SelectionRequest,
    /// Whether to store the run and its traces.
    pub store: bool,
    /// Receives the spans of the agents, if their tool calls are read from them.
    pub telemetry: Option<Arc<dyn Telemetry>>,
}

/// The outcome of a run.
pub struct Outcome {
    pub run_id: String,
    pub totals: RunTotals,
    /// Reports and result files that could not be written.
    pub report_errors: Vec<ReportError>,
    /// Traces that could not be stored.
    pub not_stored: Vec<NotStored>,
    /// The error if the run is not completely stored.
    pub store_error: Option<StoreError>,
    pub recordings: Option<RecordingSummary>,
    /// The error of the hook `afterRun`.
    pub hook_error: Option<String>,
}

/// Runs all selected cases, or until cancelled: finished cases are reported and stored as usual.
///
/// `reporters` creates the reporters of the surface from the number of cases. It is called after all preparation that
/// can fail.
pub async fn run_suites(
    request: Request,
    context: &Context<'_>,
    reporters: impl FnOnce(usize) -> Result<Vec<Box<dyn Reporter>>, Error>,
    cancel: &CancellationToken,
) -> Result<Outcome, Error> {
    let loaded = load(&request, context)?;
    let PreparedRun { mut plan, agents, throttles } = tokio::select! {
        prepared = prepare(loaded, request.telemetry.as_ref(), context) => prepared?,
        () = cancel.cancelled() => return Err(Error::cancelled()),
    };
    check_output_dir(&context.settings.layout.output_dir)?;
    if !plan.suites.is_empty() && context.settings.recording.calls_all() {
        tokio::select! {
            prepared = prepare_agents(&agents) => prepared?,
            () = cancel.cancelled() => return Err(Error::cancelled()),
        }
    }
    let recordings = Recordings::open(&context.settings, &context.settings.layout.current_dir)?;
    plan.rubrics.judge = plan.rubrics.judge.take().map(|judge| recordings.wrap_chat(judge));
    plan.simulated_users.values_mut().for_each(|model| *model = recordings.wrap_chat(Arc::clone(model)));
    let scored = plan.rubrics.suites.iter().map(|suite| suite.file.cases.len());
    let cases = plan.suites.iter().map(|suite| suite.file.cases.len()).chain(scored).sum();
    let reporters = reporters(cases)?;
    let hooks = plan.hooks.clone();
    before_run(hooks.as_deref(), context, cancel).await?;
    let running = Running { plan, agents, throttles, recordings, reporters };
    let ended = running.run(request.store, context, cancel).await;
    let hook_error = after_run(hooks.as_deref()).await;
    match ended {
        Ok(outcome) => Ok(Outcome { hook_error, ..outcome }),
        Err(error) => {
            if let Some(message) = &hook_error {
                context.notices.warn(message);
            }
            Err(error)
        }
    }
}

/// Calls the hook `beforeRun`. If it fails, nothing is sent.
async fn before_run(hooks: Option<&dyn Hooks>, context: &Context<'_>, cancel: &CancellationToken) -> Result<(), Error> {
    let Some(hooks) = hooks else { return Ok(()) };
    let called = tokio::select! {
        called = hooks.run(Hook::BeforeRun, None) => called.map_err(|HookError(message)| Error::no_verdict(message)),
        () = cancel.cancelled() => Err(Error::cancelled()),
    };
    if called.is_err()
        && let Some(message) = after_run(Some(hooks)).await
    {
        context.notices.warn(&message);
    }
    called
}

/// Calls the hook `afterRun` and returns its error.
async fn after_run(hooks: Option<&dyn Hooks>) -> Option<String> {
    hooks?.run(Hook::AfterRun, None).await.err().map(|HookError(message)| message)
}

/// A run between its hooks.
struct Running {
    plan: Plan,
    agents: Vec<Arc<dyn Agent>>,
    throttles: Vec<(String, Arc<Throttle>)>,
    recordings: Recordings,
    reporters: Vec<Box<dyn Reporter>>,
}

impl Running {
    async fn run(self, is_stored: bool, context: &Context<'_>, cancel: &CancellationToken) -> Result<Outcome, Error> {
        let Self { plan, agents, throttles, recordings, reporters } = self;
        let run_id = plan.run_id.clone();
        let result_files = ResultFileReporter::new(context.settings.layout.output_dir.clone());
        let sink = if is_stored {
            tokio::select! {
                recorder = begin_recording(&plan, &agents, context, result_files, reporters) => {
                    Sink::Stored(Box::new(recorder?))
                }
                () = cancel.cancelled() => return Err(Error::cancelled()),
            }
        } else {
            let mut all = Reporters::new(reporters);
            all.add(Box::new(result_files));
            Sink::Reported(all)
        };
        let agents = agents.into_iter().map(|agent| recordings.wrap(agent)).collect();
        let running = async {
            match sink {
                Sink::Stored(mut recorder) => {
                    let totals = karat_runner::run(plan, agents, context.clock, cancel, recorder.as_mut()).await;
                    (totals, recorder.finish().await)
                }
                Sink::Reported(mut reporters) => {
                    let totals = karat_runner::run(plan, agents, context.clock, cancel, &mut reporters).await;
                    (totals, RecordOutcome { report_errors: reporters.into_errors(), ..RecordOutcome::default() })
                }
            }
        };
        let (totals, recorded) = tokio::select! {
            ended = running => ended,
            never = report_rate_limits(&throttles, context) => match never {},
        };
        Ok(Outcome {
            run_id,
            totals,
            report_errors: recorded.report_errors,
            not_stored: recorded.not_stored,
            store_error: recorded.error,
            recordings: recordings.close(),
            hook_error: None,
        })
    }
}

/// Loads the agents that are functions of the project, so that one that cannot be loaded stops the run at once.
async fn prepare_agents(agents: &[Arc<dyn Agent>]) -> Result<(), Error> {
    for agent in agents {
        agent.prepare().await.map_err(Error::invalid)?;
    }
    Ok(())
}

/// The destination of the events of a run.
enum Sink<'r> {
    Stored(Box<RunRecorder<'r>>),
    Reported(Reporters),
}

async fn begin_recording<'c>(
    plan: &Plan,
    agents: &[Arc<dyn Agent>],
    context: &Context<'c>,
    result_files: ResultFileReporter,
    reporters: Vec<Box<dyn Reporter>>,
) -> Result<RunRecorder<'c>, Error> {
    let result_files = Reporters::new(vec![Box::new(result_files)]);
    let reporters = Reporters::new(reporters);
    let begin = async {
        let store = context.open_store().await?;
        RunRecorder::begin(store, plan, agents, context.clock, result_files, reporters).await
    };
    begin.await.map_err(|error: Error| error.hint(Hint::RunWithoutStore))
}

/// Checks that results can be written before any agent is called.
fn check_output_dir(folder: &Path) -> Result<(), Error> {
    check_writable_folder(folder)
        .map_err(|error| Error::unusable_folder(&format!("cannot write results to {}", folder.display()), &error))
}

/// Reports rate limiting once per provider, so that a waiting run does not look like a hanging one.
async fn report_rate_limits(providers: &[(String, Arc<Throttle>)], context: &Context<'_>) -> Infallible {
    let mut reported = BTreeSet::new();
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        for (name, throttle) in providers {
            if let Some(window) = throttle.reduced_window()
                && reported.insert(name)
            {
                context.notices.note(&format!(
                    "rate limited by {name} (HTTP 429): waiting as requested, then at most {window} calls in parallel"
                ));
            }
        }
    }
}
