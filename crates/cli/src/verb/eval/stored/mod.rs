//! `karat eval run --stored`: traces of the store, judged by evals of the store.
//!
//! Only what is missing is judged: a version of an eval and a trace as it is now. What was judged is kept in batches as it
//! comes, so that a run that is killed goes on where it was.

mod hearing;
mod keeper;
mod pages;

use std::io;
use std::sync::Arc;
use std::time::Instant;

use karat_core::exit::ExitStatus;
use karat_core::judgement::Tally;
use karat_core::port::{Clock, EvalStore, TraceStore};
use karat_core::stored::{EvalSummary, EvalVersion, StoredEvalRunSummary, TraceFilter};
use karat_report::stored_eval_run_text;
use karat_sandbox::{Function, Sandbox, Task, judge_in_order, validate};
use karat_store::Store;
use tokio::runtime::Runtime;

use self::hearing::{Hearing, Unkept};
use self::keeper::Keeper;
use self::pages::{Pages, Wanted};
use super::listening::Listening;
use super::progress::JudgingProgress;
use super::rows::Rows;
use crate::args::{EvalRunArgs, RowFormat};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::{Interrupts, end_at_once};
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use crate::store::{keep_store, open_store_to_read};
use karat_workflows::context::clock::SystemClock;
use karat_workflows::context::sandbox::open_sandbox;
use karat_workflows::functions::find_functions;
use karat_workflows::functions::is_written_as_path;
use karat_workflows::settings::Settings;
use karat_workflows::stored_eval::{named, version_among, versions_of};

/// A version of an eval, and how much there is for it to do.
struct Planned {
    version: EvalVersion,
    function: Arc<Function>,
    judged_before: u64,
    to_judge: u64,
}

pub(crate) fn run(args: &EvalRunArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    refuse_files(&args.functions)?;
    let settings = resolve_settings(&args.config_args(), &[], environment, printer)?;
    let limits = args.limits.limits(settings.eval_limits)?;
    let jobs = args.limits.jobs()?;
    let filter = args.filter.filter(SystemClock.now())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::errored(format!("cannot start: {error}")))?;
    let interrupts = Interrupts::listen(&runtime);
    let preparing =
        keep_store(open_store_to_read(&settings), async |store| plan(store, args, &filter, &settings).await);
    let (store, (traces, planned)) = match runtime.block_on(interrupts.unless_asked(preparing)) {
        Ok(prepared) => prepared,
        Err(failure) => {
            // What was given up must not keep the program.
            runtime.shutdown_background();
            return Err(failure);
        }
    };
    let to_judge = planned.iter().map(|one| one.to_judge).sum();
    let sandbox = if to_judge > 0 {
        // Nobody listens while it is opened, and there is nothing to finish yet.
        let asked = interrupts.clone();
        let leaving = runtime.spawn(async move {
            asked.asked().await;
            end_at_once();
        });
        let sandbox = open_sandbox(environment.process.guest.as_deref())?;
        leaving.abort();
        Some(sandbox)
    } else {
        None
    };
    let started = Instant::now();
    let progress = if args.format == RowFormat::Table && to_judge > 0 {
        JudgingProgress::new(environment, printer, Some(to_judge))
    } else {
        None
    };
    let mut judging = Judging {
        args,
        filter,
        interrupts,
        runtime: &runtime,
        store,
        rows: Rows::new(args.format),
        progress,
        summary: StoredEvalRunSummary::new(traces),
    };
    let mut ended = Ok(());
    for one in &planned {
        let task =
            Task { functions: vec![Arc::clone(&one.function)], limits, isolation: args.limits.isolation(), jobs };
        ended = judging.judge(one, sandbox.as_ref(), &task);
        if ended.is_err() || judging.summary.interrupted {
            break;
        }
    }
    if let Some(progress) = judging.progress.take() {
        progress.end(printer);
    }
    judging.summary.elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let Judging { mut rows, summary, store, .. } = judging;
    runtime.block_on(store.close());
    // The reader of traces may be under way still.
    runtime.shutdown_background();
    finish(ended, &mut rows, &summary, args.format, printer)
}

/// Tells what came of it; a part that was judged is told too where the rest was not.
fn finish(
    ended: Result<(), Unkept>,
    rows: &mut Rows,
    summary: &StoredEvalRunSummary,
    format: RowFormat,
    printer: &Printer,
) -> Result<ExitStatus, Failure> {
    let written = match &ended {
        Err(Unkept::Rows(error)) => Err(io::Error::new(error.kind(), error.to_string())),
        _ => rows.end(summary),
    };
    match written {
        // Whoever closed our stdout has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(error) => return Err(Failure::errored(format!("cannot write the rows: {error}"))),
        Ok(()) => {}
    }
    if format == RowFormat::Table && (ended.is_ok() || summary.judged > 0) {
        printer.print(&stored_eval_run_text(summary, printer.console()))?;
    }
    match ended {
        Err(Unkept::Store(error)) => return Err(Failure::from(error)),
        Err(Unkept::Sandbox(error)) => return Err(Failure::from(error)),
        Err(Unkept::Rows(_)) | Ok(()) => {}
    }
    if summary.interrupted {
        if format != RowFormat::Table {
            printer.talk("interrupted: what had been judged is kept");
        }
        return Ok(ExitStatus::Interrupted);
    }
    if summary.judged == 0 {
        printer.note("all of them were judged before; --force judges them again");
    }
    Ok(match (summary.failed, summary.errored) {
        (_, 1..) => ExitStatus::Errored,
        (1.., _) => ExitStatus::Failed,
        _ => ExitStatus::Success,
    })
}

/// A file is no version: nobody could say later what judged.
fn refuse_files(arguments: &[String]) -> Result<(), Failure> {
    match arguments.iter().find(|argument| is_written_as_path(argument)) {
        None => Ok(()),
        Some(file) => {
            Err(Failure::invalid(format!("{file} is a file: --stored judges by evals that are in the store"))
                .hint(format!("karat eval add {file}, and then its name")))
        }
    }
}

/// Finds the evals that are meant, and counts what is missing.
async fn plan(
    store: &Store,
    args: &EvalRunArgs,
    filter: &TraceFilter,
    settings: &Settings,
) -> Result<(u64, Vec<Planned>), Failure> {
    let evals = meant(store.evals().await?, &args.functions, settings)?;
    if args.version.is_some() && evals.len() != 1 {
        return Err(Failure::invalid("--version is a version of one eval: name it"));
    }
    let mut chosen = Vec::with_capacity(evals.len());
    for eval in &evals {
        let version = version_among(&versions_of(store, eval).await?, args.version)?;
        let function = Arc::new(validated(&version)?);
        chosen.push((version, function));
    }
    let traces = store.count_traces(filter).await?;
    if traces == 0 {
        return Err(no_traces(store, args).await);
    }
    let mut planned = Vec::with_capacity(chosen.len());
    for (version, function) in chosen {
        let to_judge = if args.force {
            traces
        } else {
            let unjudged = store.count_unjudged(&version.eval_id, version.version, filter).await;
            unjudged?
        };
        // Traces may have come in the meantime.
        let judged_before = traces.saturating_sub(to_judge);
        planned.push(Planned { version, function, judged_before, to_judge });
    }
    Ok((traces, planned))
}

/// Returns the evals that are named, each once, in their order; without a name, all.
fn meant(evals: Vec<EvalSummary>, names: &[String], settings: &Settings) -> Result<Vec<EvalSummary>, Failure> {
    if names.is_empty() {
        if evals.is_empty() {
            return Err(Failure::nothing_selected("there are no evals in the store")
                .hint("'karat eval add FILE' puts an eval function into the store"));
        }
        return Ok(evals);
    }
    let mut chosen: Vec<EvalSummary> = Vec::with_capacity(names.len());
    for name in names {
        let eval = named(evals.clone(), name).map_err(|failure| {
            if is_in_project(name, settings) {
                Failure { hints: Vec::new(), ..failure.into() }.hint(format!("'karat eval add {name}' puts it there"))
            } else {
                failure.into()
            }
        })?;
        if chosen.iter().all(|other| other.eval_id != eval.eval_id) {
            chosen.push(eval);
        }
    }
    Ok(chosen)
}

fn is_in_project(name: &str, settings: &Settings) -> bool {
    let wanted = if name.starts_with("eval_") { name.to_owned() } else { format!("eval_{name}") };
    find_functions(settings).is_ok_and(|functions| functions.get(&wanted).is_some())
}

/// Validates code that was valid when it was added, which another version of karat may see otherwise.
pub(super) fn validated(version: &EvalVersion) -> Result<Function, Failure> {
    let refused = |why: String| {
        let message = format!("version {} of {} is not valid any more: {why}", version.version, version.eval_id);
        Failure::invalid(message).hint("mend its file, and 'karat eval add' it as a new version")
    };
    let function = validate(version.code.as_bytes())
        .map_err(|findings| refused(findings.first().map(|finding| finding.message.clone()).unwrap_or_default()))?;
    if function.name != version.eval_id {
        return Err(refused(format!("it defines {}", function.name)));
    }
    Ok(function)
}

async fn no_traces(store: &Store, args: &EvalRunArgs) -> Failure {
    if args.filter.is_narrow() && store.count_traces(&TraceFilter::default()).await.is_ok_and(|all| all > 0) {
        return Failure::nothing_selected("no trace in the store is meant by these flags")
            .hint("'karat trace list' takes the same flags");
    }
    Failure::nothing_selected("there are no traces in the store").hint("'karat trace import FILE' puts traces there")
}

/// What all evals of a run share.
struct Judging<'j> {
    args: &'j EvalRunArgs,
    filter: TraceFilter,
    interrupts: Interrupts,
    runtime: &'j Runtime,
    store: Store,
    rows: Rows,
    progress: Option<JudgingProgress>,
    summary: StoredEvalRunSummary,
}

impl Judging<'_> {
    /// Judges what is missing of one eval. What was judged is in the summary and in the store, whatever comes of it.
    fn judge(&mut self, planned: &Planned, sandbox: Option<&Sandbox>, task: &Task) -> Result<(), Unkept> {
        let version = &planned.version;
        let mut tally = Tally::new([(version.eval_id.as_str(), version.code_hash.as_str())]);
        let mut ended = Ok(());
        if let Some(sandbox) = sandbox.filter(|_| planned.to_judge > 0) {
            let wanted = Wanted {
                eval_id: version.eval_id.clone(),
                version: version.version,
                filter: self.filter.clone(),
                again: self.args.force,
            };
            let (pages, named) = Pages::read(self.store.clone(), wanted, self.runtime.handle());
            let troubles = pages.troubles();
            let hearing = Hearing {
                eval: version,
                guest_hash: sandbox.guest_hash(),
                clock: &SystemClock,
                named,
                keeper: Keeper::new(self.store.clone(), self.runtime.handle().clone()),
                rows: &mut self.rows,
                tally: &mut tally,
                progress: &mut self.progress,
                before: &self.summary,
            };
            let mut listening = Listening::new(hearing, self.interrupts.clone());
            let judged = judge_in_order(sandbox, task, pages, listening.ear());
            let Listening { hearer, unwritten, interrupted, .. } = listening;
            let kept = match unwritten {
                // What was judged before a row could not be shown is kept all the same.
                Some(Unkept::Rows(error)) => hearer.end_quietly().and(Err(Unkept::Rows(error))),
                Some(error) => Err(error),
                None => hearer.end(),
            };
            self.summary.interrupted = interrupted;
            ended = kept
                .and_then(|()| judged.map_err(|error| troubles.take().map_or(Unkept::Sandbox(error), Unkept::Store)));
        }
        self.summary.add(version.version, planned.judged_before, &tally);
        ended
    }
}
