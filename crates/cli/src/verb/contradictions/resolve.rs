//! `karat contradictions resolve`.

use karat_core::agreement::ResolvedContradiction;
use karat_core::exit::ExitStatus;
use karat_core::feedback::Rating;
use karat_core::port::{Clock, ComparisonStore};
use karat_core::stored::{Contradiction, ContradictionFilter, Resolution, ResolutionKind};
use karat_report::printable;
use karat_store::Store;

use crate::args::{ContradictionsResolveArgs, OutputFormat};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::runtime_that_ends;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use crate::store::{open_store_to_read, with_store};
use crate::stored_eval::find_eval;
use crate::trace_id::resolve_trace_id;
use karat_workflows::context::clock::SystemClock;

pub(super) fn run(
    args: &ContradictionsResolveArgs,
    environment: &Environment,
    printer: &Printer,
) -> Result<ExitStatus, Failure> {
    let settings = resolve_settings(&args.store.config_args(), &[], environment, printer)?;
    let author = args.author.name(environment)?;
    let resolution = Resolution {
        kind: args.kind.into(),
        note: args.note.clone().filter(|note| !note.trim().is_empty()),
        author,
        resolved_at: SystemClock.now(),
    };
    let resolved = with_store(open_store_to_read(&settings), async |store| resolve(args, resolution, store).await);
    let resolved = runtime_that_ends()?.block_on(resolved)?;
    match args.format {
        OutputFormat::Json => printer.print_json(&resolved)?,
        OutputFormat::Human => {
            let line = told(&resolved, args.kind.into());
            printer.print(&line)?;
            advise(&resolved.contradiction, args.kind.into(), printer);
        }
    }
    Ok(ExitStatus::Success)
}

fn told(resolved: &ResolvedContradiction, kind: ResolutionKind) -> String {
    let contradiction = &resolved.contradiction;
    let before = resolved.before.map(|before| format!(" (was {})", before.name())).unwrap_or_default();
    let (eval, trace) = (printable(&contradiction.eval_id), printable(&contradiction.trace_id));
    format!("{eval} on {trace}: {}{before}\n", kind.name())
}

/// Says what still has to be done: a resolution corrects nothing by itself.
fn advise(contradiction: &Contradiction, kind: ResolutionKind, printer: &Printer) {
    let trace = shell_words::quote(&contradiction.trace_id);
    match kind {
        ResolutionKind::LabelWrong => {
            let right = if contradiction.rating == Rating::Positive { Rating::Negative } else { Rating::Positive };
            printer.note(&format!("the rating still counts; to correct it: karat feedback add {trace} {right}"));
        }
        ResolutionKind::EvalWrong => {
            printer.note("the verdict still counts; a new version of the eval can judge otherwise");
        }
        ResolutionKind::Dismissed => printer.note("it still counts in the figures"),
    }
}

async fn resolve(
    args: &ContradictionsResolveArgs,
    resolution: Resolution,
    store: &Store,
) -> Result<ResolvedContradiction, Failure> {
    let eval_id = find_eval(store, &args.name).await?.eval_id;
    let trace_id = resolve_trace_id(store, &args.trace).await?;
    let filter = ContradictionFilter {
        eval_id: Some(eval_id.clone()),
        trace_id: Some(trace_id.clone()),
        resolved: true,
        limit: Some(1),
    };
    let none = || {
        Failure::nothing_selected(format!("people do not contradict {eval_id} on trace {trace_id}"))
            .hint(format!("'karat contradictions {eval_id}' lists where they do"))
    };
    let found = store.contradictions(&filter).await?;
    let contradiction = found.into_iter().next().ok_or_else(none)?;
    let before = contradiction.resolution.as_ref().map(|resolution| resolution.kind);
    if !store.resolve(&eval_id, &trace_id, &resolution).await? {
        // Somebody judged or rated it again in the meantime.
        return Err(none());
    }
    Ok(ResolvedContradiction { contradiction: Contradiction { resolution: Some(resolution), ..contradiction }, before })
}
