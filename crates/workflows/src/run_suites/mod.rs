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
use karat_core::port::{Agent, StoreError, Telemetry};
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
    plan.rubrics.judge = plan.rubrics.judge.take().map(|judge| recordings.wrap_judge(judge));
    let scored = plan.rubrics.suites.iter().map(|suite| suite.file.cases.len());
    let cases = plan.suites.iter().map(|suite| suite.file.cases.len()).chain(scored).sum();
    let mut all = Reporters::default();
    all.add(Box::new(ResultFileReporter::new(context.settings.layout.output_dir.clone())));
    reporters(cases)?.into_iter().for_each(|reporter| all.add(reporter));
    let run_id = plan.run_id.clone();
    let sink = if request.store {
        tokio::select! {
            recorder = begin_recording(&plan, &agents, context, all) => Sink::Stored(Box::new(recorder?)),
            () = cancel.cancelled() => return Err(Error::cancelled()),
        }
    } else {
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
    })
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
    reporters: Reporters,
) -> Result<RunRecorder<'c>, Error> {
    let begin = async { RunRecorder::begin(context.open_store().await?, plan, agents, context.clock, reporters).await };
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
