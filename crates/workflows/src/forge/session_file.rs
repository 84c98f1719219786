//! Session files: each decision is saved before the next question.

use std::fs::{File, TryLockError};
use std::io;
use std::path::PathBuf;

use karat_cases::regression::slug;
use karat_forge::session::Session;
use karat_project::replace_file;
use karat_store::create_data_dir;

use crate::error::Error;
use crate::hint::Hint;
use crate::settings::Settings;

/// The file of a tool's session, locked for this process.
pub(super) struct SessionFile {
    path: PathBuf,
    pub(super) display_path: String,
    tool: String,
    /// The file lock, released when the process ends; `None` if the file system does not support locks.
    _lock: Option<File>,
}

fn folder(settings: &Settings) -> PathBuf {
    settings.layout.root.join(".karat").join("forge")
}

/// Returns a portable, deterministic file stem for a tool.
fn file_stem(tool: &str) -> String {
    let slug = slug(tool);
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    if !slug.is_empty() && slug.len() <= 100 && slug.chars().all(is_plain) {
        return slug;
    }
    let plain: String = slug.chars().take(60).map(|letter| if is_plain(letter) { letter } else { '-' }).collect();
    format!("{plain}.{}", karat_json::hash::short_hash(tool.as_bytes()))
}

impl SessionFile {
    /// Locks the tool's session for this process.
    pub(super) fn open(tool: &str, settings: &Settings) -> Result<Self, Error> {
        let folder = folder(settings);
        let fail = |error: io::Error| {
            Error::unavailable(format!("cannot save a session in {}: {error}", settings.display_path(&folder)))
        };
        // Creates the folder with a .gitignore: sessions are personal work in progress.
        create_data_dir(&folder).map_err(fail)?;
        let stem = file_stem(tool);
        let lock = File::options().create(true).truncate(false).write(true).open(folder.join(format!(".{stem}.lock")));
        let lock = lock.map_err(fail)?;
        let lock = match lock.try_lock() {
            Ok(()) => Some(lock),
            Err(TryLockError::WouldBlock) => {
                return Err(Error::invalid(format!("another karat forge process is working on '{tool}'"))
                    .hint("quit it with q; approved cases are saved"));
            }
            // Some network file systems do not support locks.
            Err(TryLockError::Error(_)) => None,
        };
        let path = folder.join(format!("{stem}.json"));
        let display_path = settings.display_path(&path);
        Ok(Self { path, display_path, tool: tool.to_owned(), _lock: lock })
    }

    /// Reads the saved session, if there is one.
    pub(super) fn read(&self) -> Result<Option<Session>, Error> {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::invalid(format!("cannot read {}: {error}", self.display_path))),
        };
        let session = Session::read(&text).map_err(|error| {
            Error::invalid(format!("invalid session {}: {error}", self.display_path))
                .hint(Hint::RestartForge { tool: self.tool.clone() })
        })?;
        if session.tool != self.tool {
            return Err(Error::invalid(format!(
                "the session {} belongs to tool '{}'",
                self.display_path, session.tool
            )));
        }
        Ok(Some(session))
    }

    /// Saves a session atomically.
    pub(super) fn save(&self, session: &Session) -> Result<(), Error> {
        replace_file(&self.path, &session.to_json())
            .map_err(|error| Error::unavailable(format!("cannot save the session in {}: {error}", self.display_path)))
    }

    pub(super) fn remove(&self) -> Result<(), Error> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::unavailable(format!("cannot remove {}: {error}", self.display_path)))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn resume_hint(&self) -> Hint {
        Hint::ResumeSavedForge { tool: self.tool.clone(), file: self.display_path.clone() }
    }
}

/// Reads all saved sessions; skips unreadable ones.
pub fn saved_sessions(settings: &Settings) -> Vec<Session> {
    let entries = std::fs::read_dir(folder(settings)).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let is_session = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "json");
    let texts = paths.iter().filter(is_session).filter_map(|path| std::fs::read_to_string(path).ok());
    texts.filter_map(|text| Session::read(&text).ok()).collect()
}
