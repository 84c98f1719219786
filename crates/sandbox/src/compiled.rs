//! Python as this machine's code: compiled once, kept in the user's cache.
//!
//! What is kept is run as it is. So it is taken only from where nobody else can have put it: the folder and the file
//! belong to the user (or to root) and nobody else may write them. That is what stands against people. Against damage
//! stands a digest, which is part of the file's name: so both change in one step, and whatever is cut off, flipped or
//! renamed is found before it is loaded. The digest is a fast one, since it is made at each start: 5 ms for 32 MB, where
//! SHA-256 takes 26 with and 100 without the processor's help.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};
use twox_hash::XxHash3_128;
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::engine::{self, Stage};
use crate::error::SandboxError;
use crate::guest::Guest;

/// Raised when files of the same name would mean something else.
const FORMAT: &str = "karat machine code 1";

/// The folder's name within karat's cache.
const FOLDER: &str = "python";

const SUFFIX: &str = ".code";

/// What a file is called while it is written.
const UNFINISHED: &str = ".unfinished-";

/// How many files stay when another is written: who goes to and fro between versions shall not compile each time.
const MOST_KEPT: usize = 3;

/// After this time an unfinished file is nobody's any more, and a file's last use is noted again.
const DAY: Duration = Duration::from_hours(24);

/// Machine code that is ready to be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub path: PathBuf,
    pub bytes: u64,
}

/// Looks for a guest's machine code in karat's cache, without making any.
pub fn kept(guest: &Guest, cache: &Path) -> Result<Option<Kept>, SandboxError> {
    let engine = Engine::new(&engine::config())?;
    let shelf = Shelf::new(&engine, guest, cache);
    if fs::symlink_metadata(&shelf.folder).is_err() {
        return Ok(None);
    }
    shelf.check()?;
    for path in shelf.files()? {
        if let Digested::Whole(bytes) = shelf.verify(&path)? {
            return Ok(Some(Kept { path, bytes }));
        }
    }
    Ok(None)
}

/// Loads a guest's machine code from karat's cache, and makes it first where it is missing or damaged.
pub(crate) fn load(
    engine: &Engine,
    guest: &Guest,
    cache: &Path,
    told: &mut dyn FnMut(Stage),
) -> Result<Component, SandboxError> {
    let shelf = Shelf::new(engine, guest, cache);
    shelf.set_up()?;
    let mut stage = Stage::Compiling;
    for path in shelf.files()? {
        if let Digested::Whole(_) = shelf.verify(&path)?
            && let Ok(component) = shelf.load(engine, &path)
        {
            return Ok(component);
        }
        stage = Stage::Renewing;
        // Somebody may have been faster.
        let _ = fs::remove_file(&path);
    }
    told(stage);
    let code = engine.precompile_component(&guest.wasm()?)?;
    let path = shelf.put(&code)?;
    drop(code);
    shelf.tidy(&path);
    shelf.load(engine, &path)
}

/// The place of one guest's machine code, as one engine runs it.
struct Shelf {
    folder: PathBuf,
    /// What the names of its files begin with.
    prefix: String,
}

/// What a look at a file's bytes says.
enum Digested {
    /// They are what its name says; so many.
    Whole(u64),
    Damaged,
}

impl Shelf {
    fn new(engine: &Engine, guest: &Guest, cache: &Path) -> Self {
        // Knows wasmtime's version, the processor's features, and all settings that matter to the code.
        let mut settings = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut settings);
        let what = format!("{FORMAT}\n{}\n{:016x}", guest.sha256(), settings.finish());
        let key = Sha256::digest(what).iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        Self { folder: cache.join(FOLDER), prefix: format!("{}-{key:016x}-", guest.hash()) }
    }

    /// Makes the folder, for the user alone, and checks the one that is there.
    fn set_up(&self) -> Result<(), SandboxError> {
        if fs::symlink_metadata(&self.folder).is_err() {
            let cache = self.folder.parent().unwrap_or(&self.folder);
            let made = fs::create_dir_all(cache).and_then(|()| make_private(&self.folder));
            made.map_err(|source| SandboxError::Unwritable { path: self.folder.clone(), source })?;
        }
        self.check()
    }

    fn check(&self) -> Result<(), SandboxError> {
        only_the_user_writes(&self.folder, Kind::Folder)
    }

    /// Lists the guest's files; there is one, unless something went wrong.
    fn files(&self) -> Result<Vec<PathBuf>, SandboxError> {
        let mut files: Vec<PathBuf> = self.listing()?.filter(|path| self.digest_in(path).is_some()).collect();
        files.sort();
        Ok(files)
    }

    fn listing(&self) -> Result<impl Iterator<Item = PathBuf>, SandboxError> {
        let entries = fs::read_dir(&self.folder)
            .map_err(|source| SandboxError::Unreadable { path: self.folder.clone(), source })?;
        Ok(entries.filter_map(|entry| entry.ok().map(|entry| entry.path())))
    }

    /// Returns the digest that a name of this guest's holds.
    fn digest_in<'p>(&self, path: &'p Path) -> Option<&'p str> {
        path.file_name()?.to_str()?.strip_prefix(&self.prefix)?.strip_suffix(SUFFIX)
    }

    /// Tells whether a file is what its name says; an error where somebody else could have written it.
    fn verify(&self, path: &Path) -> Result<Digested, SandboxError> {
        match only_the_user_writes(path, Kind::File) {
            // Gone since it was listed.
            Err(SandboxError::Unreadable { .. }) => return Ok(Digested::Damaged),
            checked => checked?,
        }
        let digested = File::open(path).and_then(|mut file| {
            let digest = self.digest(&mut file)?;
            note_use(&file);
            Ok(digest)
        });
        Ok(match digested {
            Ok((digest, bytes)) if self.digest_in(path) == Some(&digest) => Digested::Whole(bytes),
            _ => Digested::Damaged,
        })
    }

    /// Digests a file together with what it is for, so that another's file under this one's name does not pass.
    fn digest(&self, file: &mut impl io::Read) -> io::Result<(String, u64)> {
        let mut digest = XxHash3_128::new();
        digest.write(self.prefix.as_bytes());
        let mut buffer = vec![0; 256 << 10];
        let mut bytes = 0;
        loop {
            let count = match file.read(&mut buffer) {
                Ok(0) => return Ok((format!("{:032x}", digest.finish_128()), bytes)),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            digest.write(&buffer[..count]);
            bytes += count as u64;
        }
    }

    /// Loads a file that was verified.
    fn load(&self, engine: &Engine, path: &Path) -> Result<Component, SandboxError> {
        debug_assert!(path.starts_with(&self.folder), "only what was verified is loaded");
        // SAFETY: the file holds what `precompile_component` returned to this user: its digest says that it is whole, and
        // its permissions and its folder's that nobody else wrote it. It is never written again, only renamed into
        // place and removed.
        #[expect(unsafe_code, reason = "machine code can only be trusted, see above")]
        let component = unsafe { Component::deserialize_file(engine, path) };
        Ok(component?)
    }

    /// Keeps machine code: whole or not at all, whoever does the same at the same time.
    fn put(&self, code: &[u8]) -> Result<PathBuf, SandboxError> {
        let unwritable = |source| SandboxError::Unwritable { path: self.folder.clone(), source };
        let (digest, _) = self.digest(&mut &*code).map_err(unwritable)?;
        let path = self.folder.join(format!("{}{digest}{SUFFIX}", self.prefix));
        let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(&self.folder).map_err(unwritable)?;
        file.write_all(code).and_then(|()| file.as_file().sync_all()).map_err(unwritable)?;
        match file.persist(&path) {
            Ok(_) => Ok(path),
            // Where files in use cannot be replaced: the same was written by somebody who was faster.
            Err(_) if path.is_file() => Ok(path),
            Err(error) => Err(unwritable(error.error)),
        }
    }

    /// Removes what was not used for the longest time, and what was never finished.
    fn tidy(&self, newest: &Path) {
        let Ok(listing) = self.listing() else { return };
        let mut others = Vec::new();
        for path in listing.filter(|path| path != newest) {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let Ok(used) = fs::symlink_metadata(&path).and_then(|about| about.modified()) else { continue };
            if name.ends_with(SUFFIX) {
                others.push((used, path));
            } else if name.starts_with(UNFINISHED) && used.elapsed().is_ok_and(|age| age > DAY) {
                let _ = fs::remove_file(&path);
            }
        }
        others.sort();
        let too_many = others.len().saturating_sub(MOST_KEPT - 1);
        for (_, path) in others.into_iter().take(too_many) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Remembers that a file is in use, so that it is not the next to go. Not important enough to fail.
fn note_use(file: &File) {
    let used = file.metadata().and_then(|about| about.modified());
    if used.is_ok_and(|used| used.elapsed().is_ok_and(|age| age > DAY)) {
        let _ = file.set_modified(SystemTime::now());
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Folder,
    File,
}

/// Refuses what somebody else than the user and root could have written. A link could lead anywhere, so it is none of
/// ours.
fn only_the_user_writes(path: &Path, kind: Kind) -> Result<(), SandboxError> {
    let about =
        fs::symlink_metadata(path).map_err(|source| SandboxError::Unreadable { path: path.to_owned(), source })?;
    let refused = |why: String| Err(SandboxError::Untrusted { path: path.to_owned(), why });
    match kind {
        Kind::Folder if !about.is_dir() => return refused("it is not a folder".to_owned()),
        Kind::File if !about.is_file() => return refused("it is not a regular file".to_owned()),
        Kind::Folder | Kind::File => {}
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let (user, owner, mode) = (rustix::process::geteuid().as_raw(), about.uid(), about.mode() & 0o7777);
        if owner != user && owner != 0 {
            return refused(format!("it belongs to user {owner}, and you are user {user}"));
        }
        if mode & 0o022 != 0 {
            return refused(format!("others may write it (its mode is {mode:04o})"));
        }
    }
    Ok(())
}

/// Makes a folder that is the user's alone. Elsewhere than on Unix the user's cache folder already is.
fn make_private(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(path) {
        // Somebody was faster, and the folder is checked next.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}
