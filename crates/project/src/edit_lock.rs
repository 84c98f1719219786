//! One edit of a project's files at a time.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::layout::Layout;

/// How long another edit may take. It holds the lock for a moment only, never while it asks a server or a person.
const PATIENCE: Duration = Duration::from_secs(30);

const PAUSE: Duration = Duration::from_millis(5);

/// Held from reading a file to writing it back, so that of two edits at the same time neither undoes the other.
///
/// It is the system's own lock of the project's folder: it leaves no file behind, ends with the process, and a rename in
/// the folder does not touch it.
pub struct EditLock {
    _held: Option<File>,
    /// Why the folder could not be locked: edits must be made one at a time.
    pub unavailable: Option<io::Error>,
}

impl EditLock {
    /// Waits for the other edits of the project.
    pub fn take(layout: &Layout) -> Result<Self, Error> {
        let root = &layout.root;
        let begun = Instant::now();
        // Some network file systems have no locks. One edit at a time is right there too.
        let failed = |error: io::Error| Ok(Self { _held: None, unavailable: Some(error) });
        let file = match open(root) {
            Ok(file) => file,
            Err(error) => return failed(error),
        };
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _held: Some(file), unavailable: None }),
                Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    return Err(Error::conflict(format!("another karat is editing {}", root.display()))
                        .hint("try again when it has ended; nothing was written"));
                }
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(TryLockError::Error(error)) => return failed(error),
            }
        }
    }
}

#[cfg(unix)]
fn open(root: &Path) -> io::Result<File> {
    File::open(root)
}

/// Opens a file that stands for the folder, which cannot be locked itself.
#[cfg(not(unix))]
fn open(root: &Path) -> io::Result<File> {
    let name = karat_json::hash::short_hash(root.canonicalize()?.to_string_lossy().as_bytes());
    let path = std::env::temp_dir().join(format!("karat-{name}.lock"));
    File::options().create(true).truncate(false).write(true).open(path)
}
