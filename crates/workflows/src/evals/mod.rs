//! Adds, lists and shows evals of the store, and creates eval functions and their cases on disk.

mod add_case;
mod new;

use karat_evals::port::EvalStore;
use karat_evals::report::{EvalAdded, EvalDetails, EvalHistory, EvalList, EvalsAdded};
use karat_evals::version::{AddedVersion, EvalVersion, NewVersion};
use karat_store::Store;

pub use self::add_case::{AddCaseReport, AddCaseRequest, add_case};
pub(crate) use self::new::parse_name;
pub use self::new::{NewEval, new_eval};
use crate::context::Context;
use crate::context::sandbox::find_guest;
use crate::error::Error;
use crate::functions::{load_functions, no_functions};
use crate::notice::Notices;
use crate::stored_eval::{find_eval, select_version, versions_of};

pub struct AddRequest {
    /// Files, folders and names of functions; all functions of the project if empty.
    pub functions: Vec<String>,
    /// A note on the new version.
    pub note: Option<String>,
}

/// Adds eval functions to the store, each as a new version unless its code equals that of the newest.
pub async fn add(request: AddRequest, context: &Context<'_>) -> Result<EvalsAdded, Error> {
    let functions = load_functions(&request.functions, &context.settings)?;
    if functions.is_empty() {
        return Err(no_functions(&context.settings));
    }
    let note = request.note.as_deref().map(str::trim).filter(|note| !note.is_empty());
    let guest = find_guest(context.process_env.guest.as_deref())?;
    context
        .write_store(async |store| {
            let mut evals = Vec::with_capacity(functions.len());
            for loaded in &functions {
                let function = &loaded.function;
                let version = NewVersion {
                    eval_id: function.name.clone(),
                    code: function.source.to_string(),
                    options: function.options.clone(),
                    code_hash: function.code_hash.clone(),
                    guest_hash: guest.hash().to_owned(),
                    note: note.map(str::to_owned),
                    created_at: context.clock.now(),
                    after: None,
                };
                let (number, is_new) = add_version(&version, store, context.notices).await?;
                evals.push(EvalAdded {
                    eval_id: version.eval_id,
                    version: number,
                    added: is_new,
                    file: loaded.display_path.clone(),
                    code_hash: version.code_hash,
                    guest_hash: version.guest_hash,
                });
            }
            Ok(EvalsAdded { evals })
        })
        .await
}

/// Adds a version after the newest. Returns its number and whether it is new.
async fn add_version(version: &NewVersion, store: &Store, notices: &dyn Notices) -> Result<(u64, bool), Error> {
    loop {
        let before = store.versions(&version.eval_id).await?;
        let after = before.last().map(|newest| newest.version);
        match store.add_version(&NewVersion { after, ..version.clone() }).await? {
            AddedVersion::Added(number) => {
                warn_about_old_code(version, &before, notices);
                return Ok((number, true));
            }
            AddedVersion::Unchanged(number) => {
                warn_about_lost_note(version, number, &before, notices);
                return Ok((number, false));
            }
            // Another process added a version: retry after it.
            AddedVersion::Conflict(_) => {}
        }
    }
}

/// Warns if the note is not saved: a stored version never changes, and the newest has this code already.
fn warn_about_lost_note(version: &NewVersion, number: u64, before: &[EvalVersion], notices: &dyn Notices) {
    let is_stored = || before.iter().any(|stored| stored.version == number && stored.note == version.note);
    if version.note.is_some() && !is_stored() {
        let name = &version.eval_id;
        notices.warn(&format!(
            "{name}: the note was not saved, since the code equals that of version {number}, which never changes"
        ));
    }
}

/// Warns if the code equals that of an older version: adding an outdated file would silently undo a refinement.
fn warn_about_old_code(version: &NewVersion, before: &[EvalVersion], notices: &dyn Notices) {
    let Some((newest, older)) = before.split_last() else { return };
    if let Some(same) = older.iter().rev().find(|older| older.code_hash == version.code_hash) {
        let (name, old, replaced) = (&version.eval_id, same.version, newest.version);
        let note = newest.note.as_deref().map(|note| format!(" ({note})")).unwrap_or_default();
        notices.warn(&format!("{name}: the code of version {old} replaces that of version {replaced}{note}"));
    }
}

pub async fn list(context: &Context<'_>) -> Result<EvalList, Error> {
    context.read_store(async |store| Ok(EvalList { evals: store.evals().await? })).await
}

pub struct ShowRequest {
    /// The eval's name, with or without `eval_`.
    pub eval: String,
    /// Default: the newest.
    pub version: Option<u64>,
}

/// Returns the code of an eval and the verdict counts of all versions.
pub async fn show(request: ShowRequest, context: &Context<'_>) -> Result<EvalDetails, Error> {
    context
        .read_store(async |store| {
            let eval = find_eval(store, &request.eval).await?;
            let versions = versions_of(store, &eval).await?;
            let version = select_version(&versions, request.version)?;
            let counts = store.version_counts(&eval.eval_id).await?;
            Ok(EvalDetails::new(version, &versions, &counts))
        })
        .await
}

/// Returns the versions of an eval, by name with or without `eval_`.
pub async fn history(eval: &str, context: &Context<'_>) -> Result<EvalHistory, Error> {
    context
        .read_store(async |store| {
            let eval = find_eval(store, eval).await?;
            let versions = versions_of(store, &eval).await?;
            let counts = store.version_counts(&eval.eval_id).await?;
            Ok(EvalHistory::new(&eval.eval_id, &versions, &counts))
        })
        .await
}
