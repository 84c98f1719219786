//! `karat run --watch`: reruns the cases that a change affects, until interrupted.

use karat_core::exit::ExitStatus;
use karat_report::counted;
use karat_workflows::run_suites::{Request, SelectionRequest};
use karat_workflows::watch::{AffectedCases, Change, Watch};
use karat_workflows::{CancellationToken, Context};

use super::run_once;
use crate::args::RunArgs;
use crate::failure::Failure;
use crate::surface::Surface;

/// Maximum number of changed files in a note.
const MAX_LISTED_FILES: usize = 3;

/// Maximum number of watched files and folders in a note.
const MAX_LISTED_ROOTS: usize = 8;

pub(super) async fn watch<'s>(
    args: &RunArgs,
    request: &Request,
    mut context: Context<'s>,
    surface: &Surface<'s>,
    cancel: &CancellationToken,
) -> Result<ExitStatus, Failure> {
    let printer = surface.printer;
    // Before the run, so that a change during the run is not missed.
    let mut files = Watch::start(&request.paths, &context.settings);
    let mut next = Some(request.clone());
    loop {
        if let Some(request) = next.take() {
            let is_part = request.selection.is_part;
            // An error does not end the watch, since the next change may fix it.
            match run_once(args, request, &context, surface, cancel).await {
                Err(failure) if is_part && failure.status == ExitStatus::NothingSelected => {
                    printer.note("no selected case changed");
                }
                Err(failure) => printer.failure(&failure),
                Ok(_) => {}
            }
        }
        if !cancel.is_cancelled() {
            let count = counted(files.file_count(), "file");
            let names = watched_names(&files, &context);
            printer.note(&format!("watching {count} ({names}); press Ctrl-C to stop"));
        }
        let change = tokio::select! {
            change = files.next_change(&context.settings) => change,
            () = cancel.cancelled() => return Ok(ExitStatus::Interrupted),
        };
        next = rerun(request, &change);
        if next.is_some() {
            printer.note(&format!("changed: {}", changed_names(&change, &context)));
        }
        if change.affected == AffectedCases::Everything {
            match surface.context(&args.paths()) {
                Ok(resolved) => {
                    context = resolved;
                    // The settings may name other files now.
                    files = Watch::start(&request.paths, &context.settings);
                }
                Err(failure) => {
                    printer.failure(&failure);
                    next = None;
                }
            }
        }
    }
}

/// Returns the part of the run to repeat.
fn rerun(request: &Request, change: &Change) -> Option<Request> {
    match &change.affected {
        AffectedCases::Nothing => None,
        AffectedCases::Everything => Some(request.clone()),
        AffectedCases::EvalFiles(paths) => {
            let selection = SelectionRequest { is_part: true, ..request.selection.clone() };
            Some(Request { paths: paths.clone(), selection, ..request.clone() })
        }
        AffectedCases::Functions(functions) => {
            let selection =
                SelectionRequest { functions: functions.clone(), is_part: true, ..request.selection.clone() };
            Some(Request { selection, ..request.clone() })
        }
    }
}

/// Names the watched files and folders.
fn watched_names(files: &Watch, context: &Context<'_>) -> String {
    let layout = &context.settings.layout;
    let mut names: Vec<String> = files.roots().into_iter().map(|path| layout.display_path(path)).collect();
    if names.len() > MAX_LISTED_ROOTS {
        let more = names.split_off(MAX_LISTED_ROOTS - 1).len();
        names.push(format!("{more} more"));
    }
    names.join(", ")
}

fn changed_names(change: &Change, context: &Context<'_>) -> String {
    let display_path = |path: &std::path::PathBuf| context.settings.layout.display_path(path);
    let mut names: Vec<String> = change.paths.iter().take(MAX_LISTED_FILES).map(display_path).collect();
    if change.paths.len() > MAX_LISTED_FILES {
        names.push(format!("{} more", change.paths.len() - MAX_LISTED_FILES));
    }
    names.join(", ")
}
