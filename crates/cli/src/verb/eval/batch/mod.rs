//! `karat eval batch`: eval functions as a filter for other engines.
//!
//! Its exit code says whether it worked; what the verdicts are is in the rows.

mod filter;
mod input;
mod sink;

use std::io;

use karat_core::exit::ExitStatus;
use karat_json::nearest;
use karat_sandbox::{ArrowColumns, ArrowError, Input, Sandbox, Task, judge_in_order, read_arrow, read_lines};

use self::filter::Filter;
use self::input::{Format, find_format};
use self::sink::{ArrowSink, LineSink, Sink};
use super::listening::Listening;
use crate::args::EvalBatchArgs;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use karat_workflows::context::clock::SystemClock;
use karat_workflows::context::sandbox::open_sandbox;
use karat_workflows::functions::{load_functions, paths_among};

pub(crate) fn run(args: &EvalBatchArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    let paths = paths_among(&args.functions, &environment.process.current_dir);
    let settings = resolve_settings(&args.limits.config_args(), &paths, environment, printer)?;
    let limits = args.limits.limits(settings.eval_limits)?;
    let jobs = args.limits.jobs()?;
    let functions = load_functions(&args.functions, &settings)?;
    let functions = functions.into_iter().map(|loaded| loaded.function).collect();
    let task = Task { functions, limits, isolation: args.limits.isolation(), jobs };
    let sandbox = open_sandbox(environment.process.guest.as_deref())?;
    if environment.stdin_is_terminal {
        printer.note("reading traces from the terminal, one JSON object on each line");
    }
    // Until something was read there is nothing to finish: Ctrl-C ends the program as it does any other.
    let (format, input) = find_format(io::stdin(), args.input_format)?;
    match format {
        Format::JsonLines => filter(&sandbox, &task, read_lines(input), LineSink::new(io::stdout()), printer),
        Format::Arrow => {
            let columns = ArrowColumns { trace: args.trace_column.clone(), trace_id: args.trace_id_column.clone() };
            let (traces, batches) = read_arrow(input, &columns).map_err(arrow_failure)?;
            let sink = ArrowSink::new(io::stdout(), batches).map_err(|error| unwritable(&error));
            match sink {
                Ok(sink) => filter(&sandbox, &task, traces, sink, printer),
                Err(ended) => ended,
            }
        }
    }
}

fn filter(
    sandbox: &Sandbox,
    task: &Task,
    traces: impl Iterator<Item = io::Result<Vec<Input>>> + Send + 'static,
    sink: impl Sink,
    printer: &Printer,
) -> Result<ExitStatus, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::errored(format!("cannot start: {error}")))?;
    let interrupts = Interrupts::listen(&runtime);
    let filter = Filter::new(task.functions.clone(), sandbox.guest_hash(), &SystemClock, sink);
    let mut listening = Listening::new(filter, interrupts);
    let judged = judge_in_order(sandbox, task, traces, listening.ear());
    let Listening { hearer: filter, unwritten, interrupted, .. } = listening;
    let is_whole = judged.is_ok() && !interrupted;
    let ended = unwritten.map_or_else(|| filter.end(is_whole), Err);
    if let Err(error) = ended {
        return unwritable(&error);
    }
    judged?;
    if interrupted {
        printer.talk("interrupted: what had been judged was written");
        return Ok(ExitStatus::Interrupted);
    }
    Ok(ExitStatus::Success)
}

/// Whoever closed our stdout has read enough.
fn unwritable(error: &io::Error) -> Result<ExitStatus, Failure> {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Ok(ExitStatus::Success);
    }
    Err(Failure::errored(format!("cannot write the rows: {error}")))
}

fn arrow_failure(error: ArrowError) -> Failure {
    let text = error.to_string();
    match error {
        ArrowError::NotArrow => Failure::invalid(text).hint("--input-format jsonl reads a JSON object on each line"),
        ArrowError::NoColumn { name, columns } => {
            let flag = if name == "trace" { "--trace-column NAME names another" } else { "it was asked for by a flag" };
            let names: Vec<&str> = columns.iter().map(String::as_str).collect();
            let failure = Failure::invalid(text);
            match nearest(&name, &names) {
                Some(near) => failure.hint(format!("did you mean '{near}'?")),
                None if names.is_empty() => failure.hint("it has no columns at all"),
                None => failure.hint(format!("it has {}; {flag}", names.join(", "))),
            }
        }
        ArrowError::NotText { .. } => {
            Failure::invalid(text).hint("cast it to text in the engine that writes it: a trace is JSON text")
        }
        ArrowError::Broken(_) => Failure::errored(text),
    }
}
