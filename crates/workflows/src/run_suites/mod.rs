//! Runs eval files against the agents, judges the answers, writes result files, and stores the run.

mod plan;
mod recorder;
mod selection;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use karat_agents::Throttle;
use karat_core::event::{ReportError, Reporter, RunTotals};
use karat_core::port::Agent;
use karat_project::ResultFileReporter;
use karat_runner::{Plan, Reporters};
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::plan::{Prepared, load, prepare};
pub use self::recorder::NotStored;
use self::recorder::{EventSender, Recorded, RunRecorder};
pub use self::selection::SelectionRequest;
use crate::context::Context;
use crate::context::recordings::{RecordingSummary, Recordings};
use crate::error::Error;
use crate::hint::Hint;

pub struct Request {
    /// Eval files, folders or globs; none means the project's.
    pub paths: Vec<PathBuf>,
    pub selection: SelectionRequest,
    /// Whether the run and its traces are stored.
    pub store: bool,
}

/// How a run ended.
pub struct Outcome {
    pub run_id: String,
    pub totals: RunTotals,
    /// Reports and result files that could not be written.
    pub report_errors: Vec<ReportError>,
    /// Traces that the store did not take.
    pub not_stored: Vec<NotStored>,
    /// Why the run is not whole in the store.
    pub store_error: Option<Error>,
    pub recordings: Option<RecordingSummary>,
}

/// Runs to the end, or until cancelled: what finished by then is reported and stored as usual.
///
/// `reporters` makes the surface's reporters of the number of cases, once all that can fail beforehand has succeeded.
pub async fn run_suites(
    request: Request,
    context: &Context<'_>,
    reporters: impl FnOnce(usize) -> Result<Vec<Box<dyn Reporter>>, Error>,
    cancel: &CancellationToken,
) -> Result<Outcome, Error> {
    let loaded = load(&request, context)?;
    let Prepared { mut plan, agents, throttles } = tokio::select! {
        prepared = prepare(loaded, context) => prepared?,
        () = cancel.cancelled() => return Err(Error::cancelled()),
    };
    check_output_dir(&context.settings.layout.output_dir)?;
    let recordings = Recordings::open(&context.settings, &context.settings.layout.here)?;
    plan.rubrics.judge = plan.rubrics.judge.take().map(|judge| recordings.wrap_judge(judge));
    let scored = plan.rubrics.suites.iter().map(|suite| suite.file.cases.len());
    let cases = plan.suites.iter().map(|suite| suite.file.cases.len()).chain(scored).sum();
    let mut all = Reporters::default();
    all.add(Box::new(ResultFileReporter::new(context.settings.layout.output_dir.clone())));
    reporters(cases)?.into_iter().for_each(|reporter| all.add(reporter));
    let recorder = if request.store {
        tokio::select! {
            recorder = begin_recording(&plan, &agents, context) => Some(recorder?),
            () = cancel.cancelled() => return Err(Error::cancelled()),
        }
    } else {
        None
    };
    let run_id = plan.run_id.clone();
    let agents = agents.into_iter().map(|agent| recordings.wrap(agent)).collect();
    let running = run(plan, agents, recorder, context, &mut all, cancel);
    let (totals, in_store) = tokio::select! {
        ended = running => ended,
        never = report_rate_limits(&throttles, context) => match never {},
    };
    Ok(Outcome {
        run_id,
        totals,
        report_errors: all.into_errors(),
        not_stored: in_store.not_stored,
        store_error: in_store.error,
        recordings: recordings.close(),
    })
}

/// Runs the plan. With a recorder, reporters get the events after they are stored; without one, at once.
async fn run(
    plan: Plan,
    agents: Vec<Arc<dyn Agent>>,
    recorder: Option<RunRecorder<'_>>,
    context: &Context<'_>,
    reporters: &mut Reporters,
    cancel: &CancellationToken,
) -> (RunTotals, Recorded) {
    let (stop, stopped) = watch::channel(false);
    let stopping = async {
        cancel.cancelled().await;
        let _ = stop.send(true);
        std::future::pending::<Infallible>().await
    };
    let running = async {
        let Some(recorder) = recorder else {
            let totals = karat_runner::run(plan, agents, context.clock, stopped, reporters).await;
            return (totals, Recorded { not_stored: Vec::new(), error: None });
        };
        let (sender, events) = unbounded_channel();
        let mut to_recorder = Reporters::default();
        to_recorder.add(Box::new(EventSender(sender)));
        let running = async {
            let totals = karat_runner::run(plan, agents, context.clock, stopped, &mut to_recorder).await;
            // The recorder ends when no more events can come.
            drop(to_recorder);
            totals
        };
        tokio::join!(running, recorder.record(events, reporters))
    };
    tokio::select! {
        ended = running => ended,
        never = stopping => match never {},
    }
}

async fn begin_recording<'c>(
    plan: &Plan,
    agents: &[Arc<dyn Agent>],
    context: &Context<'c>,
) -> Result<RunRecorder<'c>, Error> {
    let begin = async { RunRecorder::begin(context.open_store().await?, plan, agents, context.clock).await };
    begin.await.map_err(|error: Error| error.hint(Hint::RunWithoutStore))
}

/// Finds out before anything is sent whether results can be written.
fn check_output_dir(folder: &Path) -> Result<(), Error> {
    let tried = std::fs::create_dir_all(folder)
        .and_then(|()| tempfile::Builder::new().prefix(".karat-").tempfile_in(folder).map(drop));
    tried.map_err(|error| Error::invalid(format!("cannot write results to {}: {error}", folder.display())))
}

/// Says once of each provider that it asked to slow down: a run that waits should not look like one that hangs.
async fn report_rate_limits(providers: &[(String, Arc<Throttle>)], context: &Context<'_>) -> Infallible {
    let mut reported = BTreeSet::new();
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        for (name, throttle) in providers {
            if let Some(window) = throttle.slowed_down()
                && reported.insert(name)
            {
                context.notices.note(&format!(
                    "{name} asks to slow down (HTTP 429): waiting as it says, for now with {window} at once"
                ));
            }
        }
    }
}
