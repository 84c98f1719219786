//! `karat contradictions`: verdicts that contradict ratings.

use karat_core::exit::ExitStatus;
use karat_report::{contradiction_notes, contradictions_text, resolution_note, resolution_text};
use karat_workflows::contradictions::{ListRequest, ResolveRequest, list, resolve};

use super::list_limit;
use crate::args::{
    ContradictionsAction, ContradictionsArgs, ContradictionsListArgs, ContradictionsResolveArgs, OutputFormat,
};
use crate::failure::Failure;
use crate::surface::Surface;

/// Default number of contradictions in text output.
const DEFAULT_LIMIT: u64 = 20;

pub(crate) fn run(args: ContradictionsArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    match args.action {
        None => run_list(&args.list, surface),
        Some(ContradictionsAction::Resolve(args)) => run_resolve(&args, surface),
    }
}

fn run_list(args: &ContradictionsListArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&[])?;
    let is_human = args.format == OutputFormat::Human;
    let request = ListRequest {
        eval: args.name.clone(),
        all: args.all,
        origin: args.source,
        limit: list_limit(args.limit, is_human, DEFAULT_LIMIT),
    };
    let list = surface.run(list(request, &context))?;
    surface.printer.print_result(args.format, &list, contradictions_text)?;
    if is_human {
        surface.printer.notes(contradiction_notes(&list));
    }
    Ok(ExitStatus::Success)
}

fn run_resolve(args: &ContradictionsResolveArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&[])?;
    let kind = args.kind;
    let request = ResolveRequest {
        eval: args.name.clone(),
        trace: args.trace.clone(),
        kind,
        note: args.note.clone(),
        author: args.author.name(surface.environment)?,
    };
    let resolved = surface.run(resolve(request, &context))?;
    surface.printer.print_result(args.format, &resolved, |resolved, _| resolution_text(resolved, kind))?;
    if args.format == OutputFormat::Human {
        surface.printer.note(&resolution_note(&resolved.contradiction, kind));
    }
    Ok(ExitStatus::Success)
}
