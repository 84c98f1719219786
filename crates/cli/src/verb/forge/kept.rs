//! Sessions on disk: what a person decided is there before the next question is asked.

use std::fs::{File, TryLockError};
use std::io;
use std::path::PathBuf;

use karat_core::exit::ExitStatus;
use karat_core::regression::slug;
use karat_forge::session::Session;
use karat_project::replace_file;
use karat_report::printable;
use karat_store::make_folder;
use karat_tools::overlap::command_word;

use crate::failure::Failure;
use crate::printer::Printer;
use karat_workflows::settings::Settings;

/// A tool's session, which nobody else works on.
pub(super) struct KeptSession {
    path: PathBuf,
    shown: String,
    tool: String,
    /// The system's lock, which ends with the process; none where the file system has none.
    _lock: Option<File>,
}

fn folder(settings: &Settings) -> PathBuf {
    settings.layout.root.join(".karat").join("forge")
}

/// Returns a name that every file system takes, the same for the same tool.
fn file_stem(tool: &str) -> String {
    let slug = slug(tool);
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    if !slug.is_empty() && slug.len() <= 100 && slug.chars().all(is_plain) {
        return slug;
    }
    let plain: String = slug.chars().take(60).map(|letter| if is_plain(letter) { letter } else { '-' }).collect();
    format!("{plain}.{}", karat_json::hash::short_hash(tool.as_bytes()))
}

impl KeptSession {
    /// Takes the tool's session for this process.
    pub(super) fn open(tool: &str, settings: &Settings) -> Result<Self, Failure> {
        let folder = folder(settings);
        let fail = |error: io::Error| {
            Failure::invalid(format!("cannot keep a session in {}: {error}", settings.shown(&folder)))
        };
        // Sessions are one person's work in progress.
        make_folder(&folder).map_err(fail)?;
        let stem = file_stem(tool);
        let lock = File::options().create(true).truncate(false).write(true).open(folder.join(format!(".{stem}.lock")));
        let lock = lock.map_err(fail)?;
        let lock = match lock.try_lock() {
            Ok(()) => Some(lock),
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::invalid(format!("another karat forge is at work on '{tool}'"))
                    .hint("leave it there with q; what was approved is kept"));
            }
            // Some network file systems have no locks.
            Err(TryLockError::Error(_)) => None,
        };
        let path = folder.join(format!("{stem}.json"));
        let shown = settings.shown(&path);
        Ok(Self { path, shown, tool: tool.to_owned(), _lock: lock })
    }

    /// Reads what was kept, if anything was.
    pub(super) fn read(&self) -> Result<Option<Session>, Failure> {
        let restart = format!("karat forge {} --restart forgets it", command_word(&self.tool));
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::invalid(format!("cannot read {}: {error}", self.shown))),
        };
        let session = Session::read(&text)
            .map_err(|error| Failure::invalid(format!("the session {}: {error}", self.shown)).hint(restart))?;
        if session.tool != self.tool {
            return Err(Failure::invalid(format!("the session {} is of the tool '{}'", self.shown, session.tool)));
        }
        Ok(Some(session))
    }

    /// Keeps a session: it is there whole, or as it was before.
    pub(super) fn save(&self, session: &Session) -> Result<(), Failure> {
        replace_file(&self.path, &session.text())
            .map_err(|error| Failure::errored(format!("cannot keep the session in {}: {error}", self.shown)))
    }

    /// Forgets the session: all that was approved is written, or a person wants it so.
    pub(super) fn forget(&self) -> Result<(), Failure> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Failure::errored(format!("cannot remove {}: {error}", self.shown)))
            }
            _ => Ok(()),
        }
    }

    /// Says how to go on later.
    pub(super) fn how_to_go_on(&self) -> String {
        format!("kept in {}: karat forge {} --resume goes on here", self.shown, command_word(&self.tool))
    }
}

fn kept(settings: &Settings) -> Vec<Session> {
    let entries = std::fs::read_dir(folder(settings)).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let is_session = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "json");
    let texts = paths.iter().filter(is_session).filter_map(|path| std::fs::read_to_string(path).ok());
    texts.filter_map(|text| Session::read(&text).ok()).collect()
}

/// Returns the tools of which a session is kept.
pub(super) fn kept_tools(settings: &Settings) -> Vec<String> {
    kept(settings).into_iter().map(|session| session.tool).collect()
}

/// Shows which sessions are kept.
pub(super) fn list(settings: &Settings, printer: &Printer) -> Result<ExitStatus, Failure> {
    let mut out = String::from("Several sessions are kept:\n");
    for session in kept(settings) {
        let (number, of) = session.place();
        let tier = session.batch().map_or("all decided", |batch| batch.tier.name());
        let place = if session.batch().is_some() { format!(", batch {number} of {of}") } else { String::new() };
        let told = format!("  {}: {tier}{place}, {} approved", session.tool, session.approved_count());
        out.push_str(&printable(&told));
        out.push('\n');
    }
    printer.print(&out)?;
    Err(Failure::nothing_selected("several sessions are kept").hint("name the tool: karat forge TOOL --resume"))
}
