//! Evals in the store: add versions, list, show, history; and a first eval function on disk.

mod new;

use karat_evals::port::EvalStore;
use karat_evals::report::{EvalAdded, EvalHistory, EvalList, EvalShown, EvalsAdded};
use karat_evals::version::{AddedVersion, EvalVersion, NewVersion};
use karat_store::Store;

pub use self::new::{NewEval, new_eval};
use crate::context::Context;
use crate::context::sandbox::find_guest;
use crate::error::Error;
use crate::functions::{load_functions, no_functions};
use crate::notice::Notices;
use crate::stored_eval::{find_eval, version_among, versions_of};

pub struct AddRequest {
    /// Files, folders and names of functions; without any, all functions of the project.
    pub functions: Vec<String>,
    /// Why there is a new version.
    pub note: Option<String>,
}

/// Adds eval functions to the store, each as a new version unless its code is that of the newest.
pub async fn add(request: AddRequest, context: &Context<'_>) -> Result<EvalsAdded, Error> {
    let functions = load_functions(&request.functions, &context.settings)?;
    if functions.is_empty() {
        return Err(no_functions(&context.settings));
    }
    let note = request.note.as_deref().map(str::trim).filter(|note| !note.is_empty());
    let guest = find_guest(context.surroundings.guest.as_deref())?;
    context
        .write_store(async |store| {
            let mut evals = Vec::with_capacity(functions.len());
            for loaded in &functions {
                let function = &loaded.function;
                let version = NewVersion {
                    eval_id: function.name.clone(),
                    code: function.source.to_string(),
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
                    file: loaded.shown.clone(),
                    code_hash: version.code_hash,
                    guest_hash: version.guest_hash,
                });
            }
            Ok(EvalsAdded { evals })
        })
        .await
}

/// Adds a version after the newest, and returns its number and whether it is new.
async fn add_version(version: &NewVersion, store: &Store, notices: &dyn Notices) -> Result<(u64, bool), Error> {
    loop {
        let before = store.versions(&version.eval_id).await?;
        let after = before.last().map(|newest| newest.version);
        match store.add_version(&NewVersion { after, ..version.clone() }).await? {
            AddedVersion::Added(number) => {
                warn_of_old_code(version, &before, notices);
                return Ok((number, true));
            }
            AddedVersion::Unchanged(number) => return Ok((number, false)),
            // Another process added one: try again after it.
            AddedVersion::Conflict(_) => {}
        }
    }
}

/// Warns where code comes back that a newer version replaced: adding a file that was left as it was would silently undo a
/// refinement.
fn warn_of_old_code(version: &NewVersion, before: &[EvalVersion], notices: &dyn Notices) {
    let Some((newest, older)) = before.split_last() else { return };
    if let Some(same) = older.iter().rev().find(|older| older.code_hash == version.code_hash) {
        let (name, again, replaced) = (&version.eval_id, same.version, newest.version);
        let why = newest.note.as_deref().map(|note| format!(" ({note})")).unwrap_or_default();
        notices.warn(&format!("{name}: the code of version {again} again, in place of version {replaced}{why}"));
    }
}

pub async fn list(context: &Context<'_>) -> Result<EvalList, Error> {
    context.read_store(async |store| Ok(EvalList { evals: store.evals().await? })).await
}

pub struct ShowRequest {
    /// The eval's name, with or without `eval_`.
    pub eval: String,
    /// Else the newest.
    pub version: Option<u64>,
}

/// Returns an eval's code, and what each version said.
pub async fn show(request: ShowRequest, context: &Context<'_>) -> Result<EvalShown, Error> {
    context
        .read_store(async |store| {
            let eval = find_eval(store, &request.eval).await?;
            let versions = versions_of(store, &eval).await?;
            let version = version_among(&versions, request.version)?;
            let counts = store.version_counts(&eval.eval_id).await?;
            Ok(EvalShown::new(version, &versions, &counts))
        })
        .await
}

/// Returns the versions of an eval, by its name with or without `eval_`.
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
