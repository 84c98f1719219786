//! `karat contradictions resolve`: resolves a contradiction.

use karat_core::exit::ExitStatus;
use karat_core::rating::Rating;
use karat_evals::agreement::ResolvedContradiction;
use karat_evals::contradiction::{Contradiction, ResolutionKind};
use karat_report::printable;
use karat_workflows::contradictions::{ResolveRequest, resolve};

use crate::args::{ContradictionsResolveArgs, OutputFormat};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::surface::Surface;

pub(super) fn run(args: &ContradictionsResolveArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.store_context(&args.store)?;
    let kind = args.kind.into();
    let request = ResolveRequest {
        eval: args.name.clone(),
        trace: args.trace.clone(),
        kind,
        note: args.note.clone(),
        author: args.author.name(surface.environment)?,
    };
    let resolved = surface.run(resolve(request, &context))?;
    let printer = surface.printer;
    match args.format {
        OutputFormat::Json => printer.print_json(&resolved)?,
        OutputFormat::Human => {
            printer.print(&resolution_text(&resolved, kind))?;
            note_next_step(&resolved.contradiction, kind, printer);
        }
    }
    Ok(ExitStatus::Success)
}

fn resolution_text(resolved: &ResolvedContradiction, kind: ResolutionKind) -> String {
    let contradiction = &resolved.contradiction;
    let before = match resolved.before {
        None => String::new(),
        Some(before) if before == kind => " (as before)".to_owned(),
        Some(before) => format!(" (was {})", before.name()),
    };
    let (eval, trace) = (printable(&contradiction.eval_id), printable(&contradiction.trace_id));
    format!("{eval} on {trace}: {}{before}\n", kind.name())
}

/// Prints the next step: a resolution changes neither the verdict nor the rating.
fn note_next_step(contradiction: &Contradiction, kind: ResolutionKind, printer: &Printer) {
    let trace = shell_words::quote(&contradiction.trace_id);
    match kind {
        ResolutionKind::LabelWrong => {
            let corrected = if contradiction.rating == Rating::Positive { Rating::Negative } else { Rating::Positive };
            printer.note(&format!("the rating still counts; to correct it: karat feedback add {trace} {corrected}"));
        }
        ResolutionKind::EvalWrong => {
            printer.note("the verdict still counts; fix the eval and add a new version");
        }
        ResolutionKind::Dismissed => printer.note("the contradiction still counts in 'karat eval agreement'"),
    }
}
