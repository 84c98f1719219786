//! `karat eval run`: traces judged by eval functions.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use karat_core::exit::ExitStatus;
use karat_core::judgement::{Conclusion, ErrorKind, Execution, Judge, JudgedTrace, Tally};
use karat_core::port::Clock;
use karat_report::eval_run_text;
use karat_sandbox::{Judged, Task, judge_in_order};

use super::listening::{Hearer, Listening};
use super::progress::JudgingProgress;
use super::rows::Rows;
use crate::args::{EvalRunArgs, RowFormat};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use crate::traces::{Origins, Traces};
use karat_workflows::context::clock::SystemClock;
use karat_workflows::context::sandbox::open_sandbox;
use karat_workflows::functions::{LoadedFunction, load_functions, paths_among};

pub(crate) fn run(args: &EvalRunArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    if let Some(flag) = args.only_stored() {
        return Err(
            Failure::invalid(format!("{flag} is for traces in the store")).hint("--stored in place of --traces")
        );
    }
    let (functions, traces) = args.functions_and_traces(&environment.process.current_dir);
    if functions.is_empty() {
        return Err(Failure::invalid("no eval function is named").hint("karat eval run FILE|NAME --traces FILE"));
    }
    let paths = paths_among(&functions, &environment.process.current_dir);
    let settings = resolve_settings(&args.limits.config_args(), &paths, environment, printer)?;
    let limits = args.limits.limits(settings.eval_limits)?;
    let jobs = args.limits.jobs()?;
    let functions = load_functions(&functions, &settings)?;
    let traces = Traces::open(&traces, environment)?;
    let sandbox = open_sandbox(environment.process.guest.as_deref())?;
    // From here on there is something to finish.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::errored(format!("cannot start: {error}")))?;
    let interrupts = Interrupts::listen(&runtime);
    let is_typed = traces.read_stdin() && environment.stdin_is_terminal;
    if is_typed {
        printer.note("reading traces from the terminal, one JSON object on each line");
    }
    let started = Instant::now();
    let names = traces.names().join(", ");
    let is_table = args.format == RowFormat::Table;
    let progress = if is_table && !is_typed { JudgingProgress::new(environment, printer, traces.bytes) } else { None };
    let task = Task {
        functions: functions.iter().map(|loaded| Arc::clone(&loaded.function)).collect(),
        limits,
        isolation: args.limits.isolation(),
        jobs,
    };
    let (batches, origins) = traces.into_batches();
    let hashes = functions.iter().map(|loaded| (loaded.function.name.as_str(), loaded.function.code_hash.as_str()));
    let hearing = Hearing {
        tally: Tally::new(hashes),
        functions: &functions,
        guest_hash: sandbox.guest_hash(),
        origins: &origins,
        clock: &SystemClock,
        rows: Rows::new(args.format),
        progress,
    };
    let mut listening = Listening::new(hearing, interrupts);
    let judged = judge_in_order(&sandbox, &task, batches, listening.ear());
    let Listening { hearer: Hearing { tally, mut rows, progress, .. }, unwritten, interrupted, .. } = listening;
    if let Some(progress) = progress {
        progress.end(printer);
    }
    let elapsed = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let judged = judged.map_err(|error| origins.refusal().unwrap_or_else(|| Failure::from(error)));
    if tally.traces() == 0
        && let Err(failure) = judged
    {
        return Err(failure);
    }
    let summary = tally.summary(elapsed, interrupted);
    let ended = unwritten.map_or_else(|| rows.end(&summary), Err);
    match ended {
        // Whoever closed our stdout has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(error) => return Err(Failure::errored(format!("cannot write the rows: {error}"))),
        Ok(()) => {}
    }
    if is_table && tally.traces() > 0 {
        let text = eval_run_text(&summary, printer.console());
        printer.print(&text)?;
    }
    judged?;
    if interrupted {
        if tally.traces() == 0 {
            printer.talk("interrupted: nothing had been judged");
        } else if !is_table {
            printer.talk("interrupted: what had been judged was written");
        }
        return Ok(ExitStatus::Interrupted);
    }
    if tally.traces() == 0 {
        return Err(Failure::nothing_selected(format!("there are no traces in {names}"))
            .hint("a trace is a JSON object on a line of its own"));
    }
    Ok(tally.status())
}

/// Hears what came of each trace: counts it, and writes its rows.
struct Hearing<'h> {
    tally: Tally,
    functions: &'h [LoadedFunction],
    guest_hash: &'h str,
    origins: &'h Origins,
    clock: &'h dyn Clock,
    rows: Rows,
    progress: Option<JudgingProgress>,
}

impl Hearer for Hearing<'_> {
    type Error = io::Error;

    fn hear(&mut self, mut judged: Judged) -> io::Result<()> {
        let origin = self.origins.of(self.tally.traces());
        let (number, trace_id) = (judged.number, &judged.trace_id);
        self.tally.add(&judged.judgements, || match (trace_id, origin) {
            (Some(id), _) => id.clone(),
            (None, None) => format!("line {number}"),
            (None, Some(origin)) => format!("{origin} line {number}"),
        });
        if let Some(origin) = origin {
            // A line's number says nothing without its file. In the summary it does: there the file is named with it.
            for judgement in &mut judged.judgements {
                match &mut judgement.conclusion {
                    Conclusion::Error(error) if error.kind == ErrorKind::Validation => {
                        error.message = format!("{origin} {}", error.message);
                    }
                    _ => {}
                }
            }
        }
        let Judged { trace_id, trace_hash, judgements, .. } = judged;
        let mut written = Ok(());
        if self.rows.are_wanted() {
            let executed_at = self.clock.now().to_string();
            let trace = JudgedTrace { id: trace_id.as_deref(), hash: &trace_hash };
            for (loaded, judgement) in self.functions.iter().zip(judgements) {
                let function = &loaded.function;
                let judge =
                    Judge { eval_id: &function.name, code_hash: &function.code_hash, guest_hash: self.guest_hash };
                let row = Execution::new(judge, trace, judgement, executed_at.clone());
                written = written.and_then(|()| self.rows.write(&row));
            }
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.rows.flush()
    }

    fn goes_on(&mut self) {
        if let Some(progress) = &mut self.progress {
            progress.show(self.tally.traces(), self.tally.counts(), self.origins.read());
        }
    }
}
