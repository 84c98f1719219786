//! The guest's initial memory.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::path::Path;

/// The initial memory of every instance: the same bytes in the program's memory and, if possible, in a file.
pub(crate) struct MemoryImage {
    bytes: Cow<'static, [u8]>,
    /// A file with the bytes, and their offset.
    file: Option<(File, u64)>,
}

impl MemoryImage {
    /// Returns the image that is embedded in this program.
    pub(crate) fn embedded(bytes: &'static [u8]) -> Self {
        Self { bytes: Cow::Borrowed(bytes), file: program_file(bytes) }
    }

    /// Returns an image in a file, which must not change while it is used.
    pub(crate) fn in_file(bytes: Vec<u8>, path: &Path, offset: u64) -> io::Result<Self> {
        Ok(Self { bytes: Cow::Owned(bytes), file: Some((File::open(path)?, offset)) })
    }

    #[cfg(test)]
    pub(crate) fn without_file(bytes: Vec<u8>) -> Self {
        Self { bytes: Cow::Owned(bytes), file: None }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn file(&self) -> Option<&(File, u64)> {
        self.file.as_ref()
    }
}

/// Finds where static bytes are in the program's file, by the mapping that they were loaded with.
#[cfg(target_os = "linux")]
fn program_file(bytes: &'static [u8]) -> Option<(File, u64)> {
    let program = std::fs::read_link("/proc/self/exe").ok()?;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let start = bytes.as_ptr() as u64;
    let end = start + bytes.len() as u64;
    let offset = maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let (from, to) = (u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?);
        let offset = u64::from_str_radix(rest.split(' ').nth(1)?, 16).ok()?;
        let path = &rest[rest.find('/')?..];
        (from <= start && end <= to && Path::new(path) == program).then(|| offset + start - from)
    })?;
    // This link names the running program even if its file is replaced.
    let file = File::open("/proc/self/exe").ok()?;
    has_bytes_at(&file, offset, bytes).then_some((file, offset))
}

#[cfg(not(target_os = "linux"))]
fn program_file(_bytes: &'static [u8]) -> Option<(File, u64)> {
    None
}

/// Compares some parts of a file with the bytes that should be in it.
#[cfg(target_os = "linux")]
fn has_bytes_at(file: &File, offset: u64, bytes: &[u8]) -> bool {
    use std::os::unix::fs::FileExt as _;

    const SAMPLE_BYTES: usize = 4096;
    const SAMPLES: usize = 16;
    let mut sample = [0; SAMPLE_BYTES];
    offset.is_multiple_of(rustix::param::page_size() as u64)
        && (0..SAMPLES).all(|number| {
            let at = (bytes.len() - SAMPLE_BYTES) / SAMPLES * number;
            file.read_exact_at(&mut sample, offset + at as u64).is_ok() && bytes[at..].starts_with(&sample)
        })
}
