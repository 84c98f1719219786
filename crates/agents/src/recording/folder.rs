//! The folder of recordings.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use karat_core::port::{AgentError, BoxFuture};
use karat_core::redact::Redactor;

use super::answer::{Answer, sanitise_error};
use super::difference::RecordingIndex;
use super::file::{self, RecordingError};
use super::key::Key;

/// How recordings are used in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingMode {
    /// Calls the agent for every request and records the answers.
    Record,
    /// Replays recorded answers; calls the agent for the others and records them.
    Auto,
    /// Replays only; a request without a recording is an error.
    Strict,
}

/// The recordings of a run, for all its agents.
#[derive(Debug)]
pub struct RecordingFolder {
    path: PathBuf,
    /// The path as it appears in messages.
    display_path: String,
    mode: RecordingMode,
    redactor: Redactor,
    replayed: AtomicUsize,
    requested: AtomicUsize,
    recorded: AtomicUsize,
    missed: AtomicUsize,
    warnings: Mutex<BTreeSet<String>>,
    failures: Mutex<BTreeSet<String>>,
    /// Built on the first miss, to find the most similar recording.
    index: OnceLock<RecordingIndex>,
}

/// Counts of replayed and recorded answers in a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordingTally {
    /// Replayed answers and errors.
    pub replayed: usize,
    /// Answers and errors that the agent returned.
    pub requested: usize,
    /// Requested answers that were recorded.
    pub recorded: usize,
    /// Requests without a recording in strict mode.
    pub missed: usize,
}

impl RecordingFolder {
    /// Opens a folder, which need not exist; messages show it as `display_path`.
    pub fn new(path: PathBuf, display_path: String, mode: RecordingMode, redactor: Redactor) -> Self {
        Self {
            path,
            display_path,
            mode,
            redactor,
            replayed: AtomicUsize::new(0),
            requested: AtomicUsize::new(0),
            recorded: AtomicUsize::new(0),
            missed: AtomicUsize::new(0),
            warnings: Mutex::default(),
            failures: Mutex::default(),
            index: OnceLock::new(),
        }
    }

    pub fn mode(&self) -> RecordingMode {
        self.mode
    }

    pub fn tally(&self) -> RecordingTally {
        let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        RecordingTally {
            replayed: count(&self.replayed),
            requested: count(&self.requested),
            recorded: count(&self.recorded),
            missed: count(&self.missed),
        }
    }

    /// Returns warnings about invalid recordings.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Returns errors about answers that could not be recorded.
    pub fn failures(&self) -> Vec<String> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub(super) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Returns the recorded answer to a request, if there is one.
    pub(super) fn find_answer<A: Answer>(&self, key: &Key) -> Option<A> {
        self.read(key).ok().flatten()?.ok()
    }

    /// Replays a recording, if that is allowed, or calls the agent and records its answer, depending on the mode.
    pub(super) async fn answer<'a, A: Answer>(
        &'a self,
        key: &Key,
        may_replay: bool,
        call: impl FnOnce() -> BoxFuture<'a, Result<A, AgentError>>,
    ) -> Result<A, AgentError> {
        if self.mode != RecordingMode::Record
            && may_replay
            && let Some(replayed) = self.replay(key)
        {
            return replayed;
        }
        let mut outcome = call().await;
        // The sanitised answer is also judged in this run, so that a replay has the same verdict.
        match &mut outcome {
            Ok(answer) => answer.sanitise(&self.redactor),
            Err(error) => sanitise_error(error, &self.redactor),
        }
        self.record(key, &outcome);
        outcome
    }

    /// Records an abandoned call as an error. Replaces an earlier answer, which is not the outcome of this run.
    pub(super) fn record_abandoned<A: Answer>(&self, key: &Key, error: &AgentError) {
        if self.mode == RecordingMode::Strict {
            return;
        }
        let mut error = error.clone();
        sanitise_error(&mut error, &self.redactor);
        self.record::<A>(key, &Err(error));
    }

    /// Returns `None` if the agent must be called.
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
                let index = self.index.get_or_init(|| RecordingIndex::scan(&self.path));
                let reason = index.explain_miss(key);
                let reason = reason.unwrap_or_else(|| format!("no similar recording in {}", self.display_path));
                miss(format!("no recording for this request: {reason}"))
            }
            Err(error) if is_strict => miss(format!("the recording {} {error}", self.display_file(key))),
            Err(error) => {
                let warning = format!("the recording {} {error}; it was not replayed", self.display_file(key));
                self.warnings.lock().unwrap_or_else(PoisonError::into_inner).insert(warning);
                None
            }
            // Recorded errors are retried in auto mode.
            Ok(_) => None,
        }
    }

    fn read<A: Answer>(&self, key: &Key) -> Result<Option<Result<A, AgentError>>, RecordingError> {
        // Deliberately blocking: a read takes 7 µs, and `spawn_blocking` would take 28 µs.
        match std::fs::read(self.path.join(key.file_name())) {
            Ok(bytes) => file::read(key, &bytes).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(RecordingError::Io(error.to_string())),
        }
    }

    /// Synchronous, so that cancellation cannot leave a partial recording.
    fn record<A: Answer>(&self, key: &Key, outcome: &Result<A, AgentError>) {
        // A budget error is unrelated to the request: keep an earlier recording.
        if outcome.as_ref().is_err_and(AgentError::ends_run) {
            return;
        }
        increment(&self.requested);
        let written = file::write(key, outcome)
            .and_then(|bytes| write_atomically(&self.path, key.file_name(), &bytes).map_err(|error| error.to_string()));
        match written {
            Ok(()) => increment(&self.recorded),
            Err(reason) => {
                let failure = format!("cannot write the recording {}: {reason}", self.display_file(key));
                self.failures.lock().unwrap_or_else(PoisonError::into_inner).insert(failure);
            }
        }
    }

    fn display_file(&self, key: &Key) -> String {
        Path::new(&self.display_path).join(key.file_name()).display().to_string()
    }
}

fn increment(counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Writes a temporary file and renames it. There is no fsync: a recording that a system crash damages is detected and
/// can be recorded again.
fn write_atomically(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".karat-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Temporary files are private by default; use the umask as for ordinary files.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut temporary = match builder.tempfile_in(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            std::fs::create_dir_all(folder)?;
            builder.tempfile_in(folder)?
        }
        result => result?,
    };
    temporary.write_all(bytes)?;
    temporary.persist(folder.join(name)).map_err(|error| error.error)?;
    Ok(())
}
