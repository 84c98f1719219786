//! Python as a WebAssembly component: the one that the build made, or a file.

use std::borrow::Cow;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::error::SandboxError;

/// What `build.rs` put in, or why it had nothing.
const EMBEDDED: Result<Embedded, &str> = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// How many digits of a hash are shown.
const SHORT: usize = 12;

/// How a component begins.
const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

/// A guest is about 20 MB; what is much larger is something else.
const LARGEST: u64 = 256 << 20;

struct Embedded {
    /// Compressed: most runs find machine code and never look at it.
    packed: &'static [u8],
    sha256: &'static str,
    made_by: &'static str,
}

/// The guest: Python with our side of the conversation in it.
pub struct Guest {
    origin: Origin,
    sha256: String,
}

enum Origin {
    Embedded(Embedded),
    File { path: PathBuf, wasm: Vec<u8> },
}

impl Guest {
    /// Takes the file that is named, or else what the build put into the program.
    pub fn find(named: Option<&Path>) -> Result<Self, SandboxError> {
        match (named, EMBEDDED) {
            (Some(path), _) => Self::read(path),
            (None, Ok(embedded)) => Ok(Self { sha256: embedded.sha256.to_owned(), origin: Origin::Embedded(embedded) }),
            (None, Err(why)) => Err(SandboxError::NoGuest { why: why.to_owned() }),
        }
    }

    fn read(path: &Path) -> Result<Self, SandboxError> {
        let unreadable = |source| SandboxError::Unreadable { path: path.to_owned(), source };
        let no_guest = |why: &str| SandboxError::NotAGuest { path: path.to_owned(), why: why.to_owned() };
        let mut wasm = Vec::new();
        let mut file = fs::File::open(path).map_err(unreadable)?;
        let is_file = file.metadata().map_err(unreadable)?.is_file();
        if !is_file {
            return Err(no_guest("it is not a file"));
        }
        file.by_ref().take(LARGEST).read_to_end(&mut wasm).map_err(unreadable)?;
        if !wasm.starts_with(COMPONENT) {
            return Err(no_guest("it is not a WebAssembly component"));
        }
        Ok(Self { sha256: sha256(&wasm), origin: Origin::File { path: path.to_owned(), wasm } })
    }

    /// Returns the first twelve hex digits of the component's SHA-256.
    pub fn hash(&self) -> &str {
        &self.sha256[..SHORT]
    }

    pub(crate) fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Returns the file that it was read from; none when it is part of the program.
    pub fn file(&self) -> Option<&Path> {
        match &self.origin {
            Origin::Embedded(_) => None,
            Origin::File { path, .. } => Some(path),
        }
    }

    /// Returns what the build made it with; nobody knows that of a file.
    pub fn made_by(&self) -> Option<&'static str> {
        match &self.origin {
            Origin::Embedded(embedded) => Some(embedded.made_by),
            Origin::File { .. } => None,
        }
    }

    /// Returns Python's version, such as `3.14.0`. It stands in the component, which is not run for it, only unpacked.
    pub fn python_version(&self) -> Option<String> {
        python_version(&self.wasm().ok()?)
    }

    /// Returns the component.
    pub fn wasm(&self) -> Result<Cow<'_, [u8]>, SandboxError> {
        match &self.origin {
            Origin::Embedded(embedded) => {
                let mut wasm = Vec::new();
                let damaged = |error: &dyn std::fmt::Display| {
                    SandboxError::Engine(format!("the Python in this program is damaged: {error}"))
                };
                ruzstd::decoding::StreamingDecoder::new(embedded.packed)
                    .map_err(|error| damaged(&error))?
                    .read_to_end(&mut wasm)
                    .map_err(|error| damaged(&error))?;
                Ok(Cow::Owned(wasm))
            }
            Origin::File { wasm, .. } => Ok(Cow::Borrowed(wasm)),
        }
    }
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Finds what `sys.version` begins with: `3.14.0 (main, …`.
fn python_version(wasm: &[u8]) -> Option<String> {
    const AFTER: &[u8] = b" (main, ";
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'+');
    wasm.windows(AFTER.len()).enumerate().filter(|(_, window)| *window == AFTER).find_map(|(end, _)| {
        let before = &wasm[end.saturating_sub(16)..end];
        let start = before.iter().rposition(|byte| !is_part(byte)).map_or(0, |place| place + 1);
        let version = std::str::from_utf8(&before[start..]).ok()?;
        version.starts_with("3.").then(|| version.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_off() {
        assert_eq!(python_version(b"x\0 (main, y)\0\x033.14.0 (main, Sep"), Some("3.14.0".to_owned()));
        assert_eq!(python_version(b"\03.15.0rc1+ (main, Sep"), Some("3.15.0rc1+".to_owned()));
        assert_eq!(python_version(b"3.14 is a number"), None);
    }

    #[test]
    fn what_is_no_component_is_no_guest() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("guest.wasm");
        fs::write(&path, b"\0asm\x01\0\0\0").expect("written");
        for (named, said) in [(&path, "no guest"), (&folder.path().to_owned(), ""), (&path.join("x"), "cannot read")] {
            let error = Guest::find(Some(named)).err().expect("no guest").to_string();
            assert!(error.contains(said) && error.contains(&folder.path().display().to_string()), "{error}");
        }
    }

    #[test]
    fn what_is_embedded_is_what_its_hash_says() {
        match (Guest::find(None), EMBEDDED) {
            (Ok(guest), Ok(embedded)) => {
                assert_eq!(sha256(&guest.wasm().expect("whole")), guest.sha256());
                assert_eq!((guest.file(), guest.made_by()), (None, Some(embedded.made_by)));
                assert!(guest.python_version().is_some_and(|version| version.starts_with("3.")));
            }
            (Err(error), Err(why)) => assert!(error.to_string().contains(why)),
            _ => panic!("a guest that is there is found"),
        }
    }
}
