//! Serialises edits of a project's files across processes.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::layout::Layout;

/// The lock is held only briefly, never while waiting for a server or for input.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// Held from reading a file to writing it back, so that concurrent edits do not overwrite each other.
///
/// An advisory lock on the project's folder: it leaves no file behind, ends with the process, and is not affected by
/// renames in the folder.
pub struct EditLock {
    _file: Option<File>,
    /// Why the folder could not be locked; concurrent edits are not prevented then.
    pub unavailable: Option<io::Error>,
}

impl EditLock {
    /// Waits until other processes have finished editing the project.
    pub fn acquire(layout: &Layout) -> Result<Self, Error> {
        let root = &layout.root;
        let started = Instant::now();
        // Some network file systems do not support locks; go on without one.
        let unlocked = |error: io::Error| Ok(Self { _file: None, unavailable: Some(error) });
        let file = match open(root) {
            Ok(file) => file,
            Err(error) => return unlocked(error),
        };
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: Some(file), unavailable: None }),
                Err(TryLockError::WouldBlock) if started.elapsed() < LOCK_TIMEOUT => sleep(RETRY_INTERVAL),
                Err(TryLockError::WouldBlock) => {
                    return Err(Error::conflict(format!("another karat process is editing {}", root.display()))
                        .hint("nothing was written; try again when it has finished"));
                }
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(TryLockError::Error(error)) => return unlocked(error),
            }
        }
    }
}

#[cfg(unix)]
fn open(root: &Path) -> io::Result<File> {
    File::open(root)
}

/// Opens a lock file for the folder, since folders cannot be locked on this platform.
#[cfg(not(unix))]
fn open(root: &Path) -> io::Result<File> {
    let name = karat_json::hash::short_hash(root.canonicalize()?.to_string_lossy().as_bytes());
    let path = std::env::temp_dir().join(format!("karat-{name}.lock"));
    File::options().create(true).truncate(false).write(true).open(path)
}
