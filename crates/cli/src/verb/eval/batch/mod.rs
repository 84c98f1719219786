//! `karat eval batch`: eval functions as a filter for other engines.
//!
//! Its exit code says whether it worked; what the verdicts are is in the rows.

mod input;
mod sink;

use std::io;
use std::ops::ControlFlow;

use karat_core::exit::ExitStatus;
use karat_json::nearest;
use karat_sandbox::{ArrowColumns, ArrowError, Input, Position, read_arrow, read_lines};
use karat_workflows::Context;
use karat_workflows::functions::paths_among;
use karat_workflows::judge_stream::{Evaluators, FilterEvent, FilterRequest, StreamEnd, filter_traces};

use self::input::{Format, find_format};
use self::sink::{ArrowSink, LineSink, Sink};
use crate::args::EvalBatchArgs;
use crate::failure::Failure;
use crate::surface::Surface;

pub(crate) fn run(args: &EvalBatchArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let paths = paths_among(&args.functions, &surface.environment.process.current_dir);
    let context = surface.context(&args.limits.config_args(), &paths)?;
    let evaluators =
        Evaluators { functions: args.functions.clone(), options: args.limits.options(context.settings.eval_limits)? };
    if surface.environment.stdin_is_terminal {
        surface.printer.note("reading traces from the terminal, one JSON object on each line");
    }
    // Until something was read there is nothing to finish: Ctrl-C ends the program as it does any other.
    let (format, input) = find_format(io::stdin(), args.input_format)?;
    match format {
        Format::JsonLines => {
            let request = FilterRequest { evaluators, traces: read_lines(input) };
            filter(request, LineSink::new(io::stdout()), &context, surface)
        }
        Format::Arrow => {
            let columns = ArrowColumns { trace: args.trace_column.clone(), trace_id: args.trace_id_column.clone() };
            let (traces, batches) = read_arrow(input, &columns).map_err(arrow_failure)?;
            match ArrowSink::new(io::stdout(), batches) {
                Ok(sink) => filter(FilterRequest { evaluators, traces }, sink, &context, surface),
                Err(error) => unwritable(&error),
            }
        }
    }
}

fn filter<T>(
    request: FilterRequest<T>,
    mut sink: impl Sink + Send,
    context: &Context<'_>,
    surface: &Surface<'_>,
) -> Result<ExitStatus, Failure>
where
    T: Iterator<Item = io::Result<Vec<Input<Position>>>> + Send + 'static,
{
    let mut unwritten = None;
    let mut take = |event| match write(event, &mut sink) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            unwritten = Some(error);
            ControlFlow::Break(())
        }
    };
    let ended = surface.run_cancellable(async |cancel| filter_traces(request, context, &mut take, &cancel).await);
    let is_whole = matches!(ended, Ok(StreamEnd::Finished));
    if let Err(error) = unwritten.map_or_else(|| sink.end(is_whole), Err) {
        return unwritable(&error);
    }
    if ended? == StreamEnd::Interrupted {
        surface.printer.talk("interrupted: what had been judged was written");
        return Ok(ExitStatus::Interrupted);
    }
    Ok(ExitStatus::Success)
}

fn write(event: FilterEvent, sink: &mut impl Sink) -> io::Result<()> {
    match event {
        FilterEvent::Idle => sink.flush(),
        FilterEvent::Judged(judged) => {
            // The engine's own name for it is what the engine will look for.
            let id = sink.begin_trace()?.or_else(|| judged.trace_id.clone());
            for row in judged.into_executions(id.as_deref()) {
                sink.write(&row)?;
            }
            sink.end_trace()
        }
    }
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
