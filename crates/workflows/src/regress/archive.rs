//! Moves a case from its eval file to the archive next to it.

use std::path::PathBuf;

use karat_cases::regression::{ArchivedCase, is_regression};
use karat_json::canonical::canonical_hash;
use karat_json::nearest;
use karat_project::{EvalPath, LoadedSuite, archive_path, archived_ids, read_archive};

use super::{RegressReport, ReportedCase, cannot_edit, load_valid, open_editor, user_file, write_file};
use crate::context::Context;
use crate::error::Error;

pub struct ArchiveRequest {
    /// The id of the case.
    pub id: String,
    pub reason: Option<String>,
    /// The eval file of the case; searched for by default.
    pub file: Option<PathBuf>,
}

pub fn archive(request: ArchiveRequest, context: &Context<'_>) -> Result<RegressReport, Error> {
    let ArchiveRequest { id, reason, file } = request;
    let settings = &context.settings;
    let _lock = context.edit_lock()?;
    let path = match &file {
        Some(file) => user_file(file, settings),
        None => find_file(&id, &load_valid(context)?)?,
    };
    let mut editor = open_editor(&path)?;
    let file = editor.file().map_err(|error| Error::unavailable(error.to_string()))?;
    if file.cases.iter().any(|case| case.id == id && !is_regression(&file, case)) {
        return Err(Error::invalid(format!("'{id}' of {} is not a regression case", path.display_path))
            .hint("other cases can be edited or removed directly"));
    }
    let (case, sealed) =
        editor.remove(&id).map_err(|error| Error::invalid(format!("{}: {error}", path.display_path)))?;
    let hash = canonical_hash(&case);
    let sealed_hash = sealed.filter(|sealed| *sealed != hash);
    if sealed_hash.is_some() {
        let warning = format!("'{id}' was edited after it was sealed; archiving the current case with both hashes");
        context.notices.warn(&warning);
    }
    let archive_path = archive_path(&path.path);
    let display_path = settings.display_path(&archive_path);
    let mut archive = read_archive(&archive_path, &display_path)?;
    match archive.cases.iter().find(|archived| archived.id() == id) {
        // An earlier call was interrupted after it wrote the archive; the eval file is written below.
        Some(archived) if archived.case == case => {}
        Some(_) => {
            return Err(Error::invalid(format!("{display_path} has another case with the id '{id}'"))
                .hint("ids must be unique: give this case another id"));
        }
        None => {
            let archived_at = context.clock.now().to_string();
            archive
                .add(ArchivedCase { archived_at, reason, hash: hash.clone(), sealed_hash, case })
                .map_err(|error| cannot_edit(&display_path, &error))?;
            // Write the archive first, so that the case is never lost.
            write_file(&archive_path, &display_path, &archive.into_text())?;
        }
    }
    write_file(&path.path, &path.display_path, &editor.into_text())?;
    let case = ReportedCase { id, path: path.display_path, archive: Some(display_path), hash, case: None };
    Ok(RegressReport { written: true, cases: vec![case] })
}

/// Finds the eval file of a regression case.
fn find_file(id: &str, loaded: &[LoadedSuite]) -> Result<EvalPath, Error> {
    let regressions = |loaded: &'_ LoadedSuite| -> Vec<String> {
        let file = &loaded.file;
        file.cases.iter().filter(|case| is_regression(file, case)).map(|case| case.id.clone()).collect()
    };
    let matches: Vec<&LoadedSuite> =
        loaded.iter().filter(|suite| regressions(suite).iter().any(|known| known == id)).collect();
    match matches.as_slice() {
        [suite] => Ok(suite.path.clone()),
        [] => {
            let is_archived = |suite: &&LoadedSuite| archived_ids(&suite.path.path).is_some_and(|ids| ids.contains(id));
            if let Some(suite) = loaded.iter().find(is_archived) {
                return Err(Error::invalid(format!("'{id}' of {} is already archived", suite.path.display_path)));
            }
            let error = Error::not_found(format!("no eval file has a regression case '{id}'"));
            let ids: Vec<String> = loaded.iter().flat_map(regressions).collect();
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            Err(match nearest(id, &ids) {
                Some(near) => error.hint(format!("did you mean '{near}'?")),
                None => error,
            })
        }
        several => {
            let names: Vec<&str> = several.iter().map(|suite| suite.path.display_path.as_str()).collect();
            Err(Error::invalid(format!("several eval files have a case '{id}': {}", names.join(", ")))
                .hint("pass --file to choose one"))
        }
    }
}
