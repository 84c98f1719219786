//! `karat eval batch`: judges traces from stdin for other programs.
//!
//! The exit code does not depend on the verdicts, which are in the rows.

use std::io::{self, Read};
use std::ops::ControlFlow;

use karat_core::exit::ExitStatus;
use karat_json::nearest;
use karat_report::{ArrowSink, ExecutionRows, RowLayout, RowSink};
use karat_sandbox::{ArrowColumns, ArrowError, Input, Position, read_arrow, read_lines};
use karat_workflows::Context;
use karat_workflows::judge_stream::{
    Content, Evaluators, FilterEvent, FilterRequest, PeekedReader, StreamEnd, detect_content, filter_traces,
};

use super::output::write_failure;
use crate::args::{EvalBatchArgs, InputFormat};
use crate::failure::Failure;
use crate::surface::Surface;

pub(crate) fn run(args: &EvalBatchArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.function_context(&args.functions)?;
    let evaluators =
        Evaluators { functions: args.functions.clone(), options: args.limits.options(context.settings.eval_limits)? };
    if surface.environment.stdin_is_terminal {
        surface.printer.note("reading traces from the terminal, one JSON object per line");
    }
    // Not cancellable yet: before the first input, Ctrl-C just ends the program.
    let (format, input) = resolve_format(io::stdin(), args.input_format)?;
    match format {
        Format::JsonLines => {
            let request = FilterRequest { evaluators, traces: read_lines(input) };
            filter(request, ExecutionRows::new(io::stdout(), RowLayout::Lines), &context, surface)
        }
        Format::Arrow => {
            let columns = ArrowColumns { trace: args.trace_column.clone(), trace_id: args.trace_id_column.clone() };
            let (traces, batches) = read_arrow(input, &columns).map_err(arrow_failure)?;
            match ArrowSink::new(io::stdout(), batches) {
                Ok(sink) => filter(FilterRequest { evaluators, traces }, sink, &context, surface),
                Err(error) => write_failure(&error).map(|()| ExitStatus::Success),
            }
        }
    }
}

fn filter<T>(
    request: FilterRequest<T>,
    mut sink: impl RowSink + Send,
    context: &Context<'_>,
    surface: &Surface<'_>,
) -> Result<ExitStatus, Failure>
where
    T: Iterator<Item = io::Result<Vec<Input<Position>>>> + Send + 'static,
{
    let mut write_error = None;
    let mut on_event = |event| match write(event, &mut sink) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            write_error = Some(error);
            ControlFlow::Break(())
        }
    };
    let ended = surface.run_cancellable(async |cancel| filter_traces(request, context, &mut on_event, &cancel).await);
    let is_complete = matches!(ended, Ok(StreamEnd::Finished));
    if let Err(error) = write_error.map_or_else(|| sink.finish(is_complete), Err) {
        return write_failure(&error).map(|()| ExitStatus::Success);
    }
    if ended? == StreamEnd::Interrupted {
        surface.printer.print_stderr("interrupted: verdicts so far were written");
        return Ok(ExitStatus::Interrupted);
    }
    Ok(ExitStatus::Success)
}

fn write(event: FilterEvent, sink: &mut impl RowSink) -> io::Result<()> {
    match event {
        FilterEvent::Idle => sink.flush(),
        FilterEvent::Judged(judged) => {
            // The id in the id column takes precedence, since the caller joins on it.
            let id = sink.begin_trace()?.or_else(|| judged.trace_id.clone());
            for row in judged.into_executions(id.as_deref()) {
                sink.write(&row)?;
            }
            sink.end_trace()
        }
    }
}

fn arrow_failure(error: ArrowError) -> Failure {
    let text = error.to_string();
    match error {
        ArrowError::NotArrow => Failure::invalid(text).hint("pass --input-format jsonl to read JSON Lines"),
        ArrowError::MissingColumn { name, columns } => {
            let flag = if name == "trace" { "pass --trace-column NAME" } else { "see --trace-id-column" };
            let names: Vec<&str> = columns.iter().map(String::as_str).collect();
            let failure = Failure::invalid(text);
            match nearest(&name, &names) {
                Some(near) => failure.hint(format!("did you mean '{near}'?")),
                None if names.is_empty() => failure.hint("the input has no columns"),
                None => failure.hint(format!("available columns: {}; {flag}", names.join(", "))),
            }
        }
        ArrowError::NotText { .. } => Failure::invalid(text).hint("cast the column to text; traces are JSON text"),
        ArrowError::Invalid(_) => Failure::errored(text),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    JsonLines,
    Arrow,
}

/// Returns the format of the input, detected from its first bytes unless the flag sets it.
fn resolve_format<R: Read>(input: R, flag: InputFormat) -> Result<(Format, PeekedReader<R>), Failure> {
    let unread = |input| io::Cursor::new(Vec::new()).chain(input);
    match flag {
        InputFormat::Jsonl => Ok((Format::JsonLines, unread(input))),
        InputFormat::Arrow => Ok((Format::Arrow, unread(input))),
        InputFormat::Auto => {
            let detected = detect_content(input);
            let (content, whole) = detected.map_err(|error| Failure::errored(format!("cannot read stdin: {error}")))?;
            match content {
                Content::JsonLines => Ok((Format::JsonLines, whole)),
                Content::Arrow => Ok((Format::Arrow, whole)),
                Content::Unsupported(known) => {
                    let message = format!("stdin is {}; expected JSON Lines or an Arrow stream", known.description);
                    Err(Failure::invalid(message).hint(match known.converter {
                        Some(program) => format!("{program} FILE | karat eval batch …"),
                        None => "send Arrow or JSON Lines instead".to_owned(),
                    }))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flag_overrides_detection() {
        let format = |flag| resolve_format(&b"PAR1"[..], flag).map(|(format, _)| format).ok();
        assert_eq!(format(InputFormat::Jsonl), Some(Format::JsonLines));
        assert_eq!(format(InputFormat::Arrow), Some(Format::Arrow));
        assert_eq!(format(InputFormat::Auto), None);
    }
}
