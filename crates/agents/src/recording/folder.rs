//! The folder of recordings: reads, writes, counts.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use karat_core::port::{AgentError, Pending};
use karat_core::redact::Redactor;

use super::answer::{Answer, clean_error};
use super::difference::Known;
use super::file::{self, Unreadable};
use super::key::Key;

/// What the recordings are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingMode {
    /// Everything is asked and written.
    Record,
    /// What is recorded is replayed; what is not is asked and written.
    Auto,
    /// Nobody is asked and nothing is written; what is not recorded is an error.
    Strict,
}

/// The recordings of a run, for all its agents.
#[derive(Debug)]
pub struct RecordingFolder {
    path: PathBuf,
    /// What messages call it.
    shown: String,
    mode: RecordingMode,
    redactor: Redactor,
    replayed: AtomicUsize,
    asked: AtomicUsize,
    recorded: AtomicUsize,
    missed: AtomicUsize,
    warnings: Mutex<BTreeSet<String>>,
    failures: Mutex<BTreeSet<String>>,
    /// What is in the folder; looked at once, and only to say what a miss is like.
    known: OnceLock<Known>,
}

/// What the recordings were good for in a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordingTally {
    /// Answers and errors from the folder.
    pub replayed: usize,
    /// Answers and errors that somebody was asked for.
    pub asked: usize,
    /// How many of those were written.
    pub recorded: usize,
    /// Questions that had no recording and were not asked.
    pub missed: usize,
}

impl RecordingFolder {
    /// Opens a folder, which need not be there yet; messages call it `shown`.
    pub fn new(path: PathBuf, shown: String, mode: RecordingMode, redactor: Redactor) -> Self {
        Self {
            path,
            shown,
            mode,
            redactor,
            replayed: AtomicUsize::new(0),
            asked: AtomicUsize::new(0),
            recorded: AtomicUsize::new(0),
            missed: AtomicUsize::new(0),
            warnings: Mutex::default(),
            failures: Mutex::default(),
            known: OnceLock::new(),
        }
    }

    pub fn mode(&self) -> RecordingMode {
        self.mode
    }

    pub fn tally(&self) -> RecordingTally {
        let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        RecordingTally {
            replayed: count(&self.replayed),
            asked: count(&self.asked),
            recorded: count(&self.recorded),
            missed: count(&self.missed),
        }
    }

    /// Returns what is odd about recordings that were there.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Returns what could not be recorded.
    pub fn failures(&self) -> Vec<String> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub(super) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Answers from the folder, or asks and writes: as the mode says.
    pub(super) async fn answer<'a, A: Answer>(
        &'a self,
        key: &Key,
        ask: impl FnOnce() -> Pending<'a, Result<A, AgentError>>,
    ) -> Result<A, AgentError> {
        if self.mode != RecordingMode::Record
            && let Some(replayed) = self.replay(key)
        {
            return replayed;
        }
        let mut outcome = ask().await;
        // Also for this run, which else could judge what no replay will see.
        match &mut outcome {
            Ok(answer) => answer.clean(&self.redactor),
            Err(error) => clean_error(error, &self.redactor),
        }
        self.record(key, &outcome);
        outcome
    }

    /// Records that somebody was asked in vain, in place of an older answer too: it is not what this run came to.
    pub(super) fn give_up<A: Answer>(&self, key: &Key, error: &AgentError) {
        if self.mode == RecordingMode::Strict {
            return;
        }
        let mut error = error.clone();
        clean_error(&mut error, &self.redactor);
        self.record::<A>(key, &Err(error));
    }

    /// Returns none where somebody is to be asked.
    fn replay<A: Answer>(&self, key: &Key) -> Option<Result<A, AgentError>> {
        let is_strict = self.mode == RecordingMode::Strict;
        let miss = |message: String| {
            increment(&self.missed);
            Some(Err(AgentError::new(message, Duration::ZERO)))
        };
        match self.read(key) {
            Ok(Some(outcome)) if is_strict || outcome.is_ok() => {
                increment(&self.replayed);
                Some(outcome)
            }
            Ok(None) if is_strict => {
                let known = self.known.get_or_init(|| Known::scan(&self.path));
                let why = known.why_missed(key);
                let why = why.unwrap_or_else(|| format!("nothing in {} is like it", self.shown));
                miss(format!("no recording of this answer: {why}"))
            }
            Err(unreadable) if is_strict => miss(format!("the recording {} {unreadable}", self.shown_file(key))),
            Err(unreadable) => {
                let warning = format!("the recording {} {unreadable}; it was not replayed", self.shown_file(key));
                self.warnings.lock().unwrap_or_else(PoisonError::into_inner).insert(warning);
                None
            }
            // An error is worth another try.
            Ok(_) => None,
        }
    }

    fn read<A: Answer>(&self, key: &Key) -> Result<Option<Result<A, AgentError>>, Unreadable> {
        // Blocking, and still better for everybody: measured, a file is read in 7 µs and handed to a thread in 28 µs.
        match std::fs::read(self.path.join(key.file_name())) {
            Ok(bytes) => file::read(key, &bytes).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Unreadable::Io(error.to_string())),
        }
    }

    /// Without a point at which it could be let go: what is there is whole.
    fn record<A: Answer>(&self, key: &Key, outcome: &Result<A, AgentError>) {
        // A budget that is used up says nothing about the question: what was answered earlier still stands.
        if outcome.as_ref().is_err_and(AgentError::ends_run) {
            return;
        }
        increment(&self.asked);
        let written = file::write(key, outcome)
            .and_then(|bytes| write_whole(&self.path, key.file_name(), &bytes).map_err(|error| error.to_string()));
        match written {
            Ok(()) => increment(&self.recorded),
            Err(reason) => {
                let failure = format!("could not write the recording {}: {reason}", self.shown_file(key));
                self.failures.lock().unwrap_or_else(PoisonError::into_inner).insert(failure);
            }
        }
    }

    fn shown_file(&self, key: &Key) -> String {
        Path::new(&self.shown).join(key.file_name()).display().to_string()
    }
}

fn increment(counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Writes a file through a temporary one beside it. It is not forced to the disk: what a crash of the machine
/// leaves behind is found to be damaged, and can be recorded again.
fn write_whole(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".karat-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As for any file a program makes: the umask decides. The default is for the owner's eyes only.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut temporary = match builder.tempfile_in(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            std::fs::create_dir_all(folder)?;
            builder.tempfile_in(folder)?
        }
        made => made?,
    };
    temporary.write_all(bytes)?;
    temporary.persist(folder.join(name)).map_err(|error| error.error)?;
    Ok(())
}
