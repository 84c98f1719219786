//! The guest: CPython with karat's driver (`guest/app.py`), embedded by the build or read from a file.

use std::fs;
use std::io::Read as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::error::SandboxError;

/// The guest that `build.rs` embedded, or why there is none.
const EMBEDDED: Result<Embedded, &str> = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// Number of hash digits that are shown.
const SHORT_HASH_DIGITS: usize = 12;

/// Magic bytes of a WebAssembly component and of machine code.
const COMPONENT_MAGIC: &[u8] = b"\0asm";
const CODE_MAGIC: &[u8] = b"\x7fELF";

/// The end of a guest file: magic bytes and the lengths of the machine code and of the initial memory, as
/// `guest/component.py` writes them.
const TRAILER_BYTES: usize = 24;
const TRAILER_MAGIC: &[u8; 8] = b"KARATIMG";

/// The initial memory starts at a multiple of this.
const IMAGE_ALIGNMENT: usize = 64 << 10;

/// A guest takes about 36 MB.
const MAX_FILE_BYTES: u64 = 512 << 20;

struct Embedded {
    code: &'static [u8],
    /// SHA-256 of the component that the code was compiled from.
    sha256: &'static str,
    build_tools: &'static str,
}

/// Aligns code to 64 KB, the largest page size in use, so that it can be made executable in place.
#[repr(C, align(65536))]
struct PageAligned<const LENGTH: usize>([u8; LENGTH]);

/// Python as machine code, with its initial memory.
pub struct Guest {
    code: Code,
    sha256: String,
    build_tools: Option<&'static str>,
}

/// Location of the guest's file.
pub(crate) enum Code {
    Embedded(&'static [u8]),
    File(PathBuf),
}

/// The parts of a guest's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) code: Range<usize>,
    /// The initial memory of every instance.
    pub(crate) image: Range<usize>,
}

impl Layout {
    /// Reads the end of a file; `None` if it is not a guest.
    pub(crate) fn of(file: &[u8]) -> Option<Self> {
        let end = file.len().checked_sub(TRAILER_BYTES)?;
        let (magic, lengths) = file[end..].split_first_chunk::<8>()?;
        let (code, lengths) = lengths.split_first_chunk::<8>()?;
        let (image, _) = lengths.split_first_chunk::<8>()?;
        let length = |bytes: &[u8; 8]| usize::try_from(u64::from_le_bytes(*bytes)).ok();
        let (code, image) = (length(code)?, length(image)?);
        let start = code.checked_next_multiple_of(IMAGE_ALIGNMENT)?;
        let is_whole = magic == TRAILER_MAGIC && start.checked_add(image) == Some(end);
        is_whole.then_some(Self { code: 0..code, image: start..end })
    }
}

impl Guest {
    /// Returns the guest in the given file, or the embedded one.
    pub fn find(path: Option<&Path>) -> Result<Self, SandboxError> {
        match (path, EMBEDDED) {
            (Some(path), _) => Self::read(path),
            (None, Ok(Embedded { code, sha256, build_tools })) => {
                Ok(Self { code: Code::Embedded(code), sha256: sha256.to_owned(), build_tools: Some(build_tools) })
            }
            (None, Err(reason)) => Err(SandboxError::NoGuest { reason: reason.to_owned() }),
        }
    }

    fn read(path: &Path) -> Result<Self, SandboxError> {
        let invalid = |reason: &str| SandboxError::InvalidGuest { path: path.to_owned(), reason: reason.to_owned() };
        if !fs::metadata(path).map_err(|source| unreadable(path, source))?.is_file() {
            return Err(invalid("it is not a file"));
        }
        let bytes = read_file(path)?;
        if bytes.starts_with(COMPONENT_MAGIC) {
            return Err(invalid("it is WebAssembly, not machine code: compile it with guest/compile.py"));
        }
        if !bytes.starts_with(CODE_MAGIC) {
            return Err(invalid("it is not machine code"));
        }
        if Layout::of(&bytes).is_none() {
            return Err(invalid("it has no initial memory: compile it with this version's guest/compile.py"));
        }
        Ok(Self { code: Code::File(path.to_owned()), sha256: sha256(&bytes), build_tools: None })
    }

    /// Returns the first twelve hex digits of the guest's SHA-256.
    pub fn hash(&self) -> &str {
        &self.sha256[..SHORT_HASH_DIGITS]
    }

    /// Returns the guest's file; `None` if it is embedded.
    pub fn file(&self) -> Option<&Path> {
        match &self.code {
            Code::Embedded(_) => None,
            Code::File(path) => Some(path),
        }
    }

    /// Returns the tools that the build made the guest with; unknown for a file.
    pub fn build_tools(&self) -> Option<&'static str> {
        self.build_tools
    }

    /// Returns Python's version, such as `3.14.0`, found in the guest's data.
    pub fn python_version(&self) -> Option<String> {
        match &self.code {
            Code::Embedded(code) => python_version(code),
            Code::File(path) => python_version(&read_file(path).ok()?),
        }
    }

    pub(crate) fn code(&self) -> &Code {
        &self.code
    }
}

pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, SandboxError> {
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut bytes));
    read.map(|_| bytes).map_err(|source| unreadable(path, source))
}

fn unreadable(path: &Path, source: std::io::Error) -> SandboxError {
    SandboxError::Unreadable { path: path.to_owned(), source }
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// Finds the version at the start of `sys.version`: `3.14.0 (main, …`.
fn python_version(code: &[u8]) -> Option<String> {
    const SUFFIX: &[u8] = b" (main, ";
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'+');
    code.windows(SUFFIX.len()).enumerate().filter(|(_, window)| *window == SUFFIX).find_map(|(end, _)| {
        let before = &code[end.saturating_sub(16)..end];
        let start = before.iter().rposition(|byte| !is_part(byte)).map_or(0, |index| index + 1);
        let version = std::str::from_utf8(&before[start..]).ok()?;
        version.starts_with("3.").then(|| version.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_python_version() {
        assert_eq!(python_version(b"x\0 (main, y)\0\x033.14.0 (main, Sep"), Some("3.14.0".to_owned()));
        assert_eq!(python_version(b"\x003.15.0rc1+ (main, Sep"), Some("3.15.0rc1+".to_owned()));
        assert_eq!(python_version(b"3.14 is a number"), None);
    }

    #[test]
    fn finds_the_parts_of_a_guest() {
        let mut file = vec![1; IMAGE_ALIGNMENT + 10];
        file.extend(TRAILER_MAGIC);
        file.extend(5_u64.to_le_bytes());
        file.extend(10_u64.to_le_bytes());
        let image = IMAGE_ALIGNMENT..IMAGE_ALIGNMENT + 10;
        assert_eq!(Layout::of(&file), Some(Layout { code: 0..5, image }));
        assert_eq!(Layout::of(&file[1..]), None);
        assert_eq!(Layout::of(b""), None);
    }

    #[test]
    fn rejects_files_without_machine_code() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("guest.cwasm");
        for (content, expected) in [
            (&b"\0asm\x0d\0\x01\0"[..], "guest/compile.py"),
            (b"text", "it is not machine code"),
            (b"\x7fELF and more than a trailer has", "it has no initial memory"),
        ] {
            fs::write(&path, content).expect("written");
            let error = Guest::find(Some(&path)).err().expect("an invalid guest").to_string();
            assert!(error.contains(expected) && error.contains(&path.display().to_string()), "{error}");
        }
        for (path, expected) in [(folder.path(), "it is not a file"), (&folder.path().join("none"), "cannot read")] {
            let error = Guest::find(Some(path)).err().expect("an invalid guest").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn finds_the_embedded_guest() {
        match (Guest::find(None), EMBEDDED) {
            (Ok(guest), Ok(embedded)) => {
                assert_eq!((guest.file(), guest.build_tools()), (None, Some(embedded.build_tools)));
                assert!(guest.python_version().is_some_and(|version| version.starts_with("3.")));
            }
            (Err(error), Err(reason)) => assert!(error.to_string().contains(reason)),
            _ => panic!("expected to find the embedded guest"),
        }
    }
}
