//! Takes a case out of its eval file into the archive beside it.

use std::path::PathBuf;

use karat_core::regression::{ArchivedCase, is_regression};
use karat_json::canonical::canonical_hash;
use karat_json::nearest;
use karat_project::{EvalPath, Loaded, archive_path, archived_ids, read_archive};

use super::{RegressReport, ReportedCase, cannot_edit, load_valid, named_file, open_editor, write_file};
use crate::context::Context;
use crate::error::Error;

pub struct ArchiveRequest {
    /// The case's id.
    pub id: String,
    pub reason: Option<String>,
    /// The eval file that holds the case; else it is looked for.
    pub file: Option<PathBuf>,
}

pub fn archive(request: ArchiveRequest, context: &Context<'_>) -> Result<RegressReport, Error> {
    let ArchiveRequest { id, reason, file } = request;
    let settings = &context.settings;
    let _lock = context.edit_lock()?;
    let path = match &file {
        Some(file) => named_file(file, settings),
        None => find_file(&id, &load_valid(context)?)?,
    };
    let mut editor = open_editor(&path)?;
    let file = editor.file().map_err(|error| Error::unavailable(error.to_string()))?;
    if file.cases.iter().any(|case| case.id == id && !is_regression(&file, case)) {
        return Err(Error::invalid(format!("'{id}' of {} is no regression case", path.shown))
            .hint("other cases can be edited and removed as they are"));
    }
    let (case, sealed) = editor.remove(&id).map_err(|error| Error::invalid(format!("{}: {error}", path.shown)))?;
    let hash = canonical_hash(&case);
    let sealed_hash = sealed.filter(|sealed| *sealed != hash);
    if sealed_hash.is_some() {
        let warning = format!("'{id}' was edited after it was made; it is archived as it is now, with both hashes");
        context.notices.warn(&warning);
    }
    let archive_path = archive_path(&path.path);
    let shown = settings.shown(&archive_path);
    let mut archive = read_archive(&archive_path, &shown)?;
    match archive.cases.iter().find(|archived| archived.id() == id) {
        // An earlier call was interrupted between the two files; the rest is done below.
        Some(archived) if archived.case == case => {}
        Some(_) => {
            return Err(Error::invalid(format!("{shown} holds another case with the id '{id}'"))
                .hint("ids are never used twice: give this case another one"));
        }
        None => {
            let archived_at = context.clock.now().to_string();
            archive
                .add(ArchivedCase { archived_at, reason, hash: hash.clone(), sealed_hash, case })
                .map_err(|error| cannot_edit(&shown, &error))?;
            // First, so that at no time the case is nowhere.
            write_file(&archive_path, &shown, &archive.into_text())?;
        }
    }
    write_file(&path.path, &path.shown, &editor.into_text())?;
    let case = ReportedCase { id, path: path.shown, archive: Some(shown), hash, case: None };
    Ok(RegressReport { written: true, cases: vec![case] })
}

/// Finds the one eval file that holds a regression case.
fn find_file(id: &str, loaded: &[Loaded]) -> Result<EvalPath, Error> {
    let regressions = |loaded: &'_ Loaded| -> Vec<String> {
        let file = &loaded.file;
        file.cases.iter().filter(|case| is_regression(file, case)).map(|case| case.id.clone()).collect()
    };
    let holders: Vec<&Loaded> = loaded.iter().filter(|one| regressions(one).iter().any(|found| found == id)).collect();
    match holders.as_slice() {
        [one] => Ok(one.path.clone()),
        [] => {
            let is_archived = |one: &&Loaded| archived_ids(&one.path.path).is_some_and(|ids| ids.contains(id));
            if let Some(one) = loaded.iter().find(is_archived) {
                return Err(Error::invalid(format!("'{id}' of {} is archived already", one.path.shown)));
            }
            let error = Error::not_found(format!("no eval file holds a regression case '{id}'"));
            let ids: Vec<String> = loaded.iter().flat_map(regressions).collect();
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            Err(match nearest(id, &ids) {
                Some(near) => error.hint(format!("did you mean '{near}'?")),
                None => error,
            })
        }
        several => {
            let names: Vec<&str> = several.iter().map(|one| one.path.shown.as_str()).collect();
            Err(Error::invalid(format!("several eval files hold '{id}': {}", names.join(", ")))
                .hint("name the one that is meant with --file"))
        }
    }
}
