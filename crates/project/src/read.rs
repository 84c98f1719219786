//! Reads whole files.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Maximum size of a file of the project.
const MAX_FILE_BYTES: u64 = 512 << 20;

/// Reads a file. Fails for pipes and devices, which may block or never end, and for files that are too large.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    read_limited(path, MAX_FILE_BYTES)
}

fn read_limited(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let metadata = fs::metadata(path)?;
    // Reading a folder fails with the system's own message.
    if !metadata.is_file() && !metadata.is_dir() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut bytes = Vec::new();
    // The file may grow while it is read.
    File::open(path)?.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        let message = format!("larger than {} MB", max_bytes >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_the_size() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, vec![b'x'; (1 << 20) + 1]).unwrap();
        assert_eq!(read_limited(&file, 1 << 20).unwrap_err().to_string(), "larger than 1 MB");
        fs::write(&file, vec![b'x'; 1 << 20]).unwrap();
        assert_eq!(read_limited(&file, 1 << 20).unwrap().len(), 1 << 20);
        assert_eq!(read_file(&folder.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(read_file(folder.path()).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn rejects_devices() {
        assert_eq!(read_file(Path::new("/dev/zero")).unwrap_err().to_string(), "not a regular file");
    }
}
