//! `karat eval add`: eval functions become versions in the store.

use karat_core::exit::ExitStatus;
use karat_core::port::{Clock, EvalStore};
use karat_core::stored::{AddedVersion, EvalAdded, EvalVersion, EvalsAdded, NewVersion};
use karat_report::{evals_added_text, printable};
use karat_store::Store;

use crate::args::{EvalAddArgs, OutputFormat};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::runtime_that_ends;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use crate::store::{open_store, with_store};
use karat_workflows::context::clock::SystemClock;
use karat_workflows::context::sandbox::find_guest;
use karat_workflows::functions::{load_functions, no_functions, paths_among};

/// Says that code comes back which another version was made to replace: a file that was left as it was would undo a
/// refinement, and nobody would know.
fn warn_of_return(version: &NewVersion, before: &[EvalVersion], printer: &Printer) {
    let Some((newest, older)) = before.split_last() else { return };
    if let Some(same) = older.iter().rev().find(|older| older.code_hash == version.code_hash) {
        let (name, again, replaced) = (printable(&version.eval_id), same.version, newest.version);
        let why = newest.note.as_deref().map(|note| format!(" ({})", printable(note))).unwrap_or_default();
        printer.warn(&format!("{name}: the code of version {again} again, in place of version {replaced}{why}"));
    }
}

/// Adds a version after those that there are, and returns its number and whether it is new.
async fn add(version: &NewVersion, store: &Store, printer: &Printer) -> Result<(u64, bool), Failure> {
    loop {
        let before = store.versions(&version.eval_id).await?;
        let after = before.last().map(|newest| newest.version);
        match store.add_version(&NewVersion { after, ..version.clone() }).await? {
            AddedVersion::Added(number) => {
                warn_of_return(version, &before, printer);
                return Ok((number, true));
            }
            AddedVersion::Unchanged(number) => return Ok((number, false)),
            // Somebody else added one, which is then what this one replaces.
            AddedVersion::Conflict(_) => {}
        }
    }
}

pub(crate) fn run(args: &EvalAddArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    let paths = paths_among(&args.functions, &environment.process.current_dir);
    let settings = resolve_settings(&args.store.config_args(), &paths, environment, printer)?;
    let functions = load_functions(&args.functions, &settings)?;
    if functions.is_empty() {
        return Err(no_functions(&settings).into());
    }
    let note = args.note.as_deref().map(str::trim).filter(|note| !note.is_empty());
    let guest = find_guest(environment.process.guest.as_deref())?;
    let adding = with_store(open_store(&settings), async |store| {
        let mut evals = Vec::with_capacity(functions.len());
        for loaded in &functions {
            let function = &loaded.function;
            let version = NewVersion {
                eval_id: function.name.clone(),
                code: function.source.to_string(),
                code_hash: function.code_hash.clone(),
                guest_hash: guest.hash().to_owned(),
                note: note.map(str::to_owned),
                created_at: SystemClock.now(),
                after: None,
            };
            let (number, is_new) = add(&version, store, printer).await?;
            evals.push(EvalAdded {
                eval_id: version.eval_id,
                version: number,
                added: is_new,
                file: loaded.shown.clone(),
                code_hash: version.code_hash,
                guest_hash: version.guest_hash,
            });
        }
        Ok(EvalsAdded { evals })
    });
    let report = runtime_that_ends()?.block_on(adding)?;
    match args.format {
        OutputFormat::Json => printer.print_json(&report)?,
        OutputFormat::Human => printer.print(&evals_added_text(&report, printer.console()))?,
    }
    Ok(ExitStatus::Success)
}
