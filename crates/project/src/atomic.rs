//! Atomic file writes.

use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

const TEMPORARY_PREFIX: &str = ".karat-";
const TEMPORARY_SUFFIX: &str = ".tmp";

/// Age after which a temporary file is abandoned: no write takes this long, so its process was killed.
const MAX_WRITE_TIME: Duration = Duration::from_mins(10);

/// Writes a file atomically: a temporary file in the same folder is renamed over it.
pub fn write_atomically(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>,
) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(folder)?;
    remove_abandoned_files(folder);
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY_PREFIX).suffix(TEMPORARY_SUFFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Leave the mode to the umask; temporary files are private to the owner by default.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut temporary = builder.tempfile_in(folder).map_err(without_temporary_path)?;
    {
        let mut writer = BufWriter::with_capacity(64 * 1024, temporary.as_file_mut());
        write(&mut writer)?;
        writer.flush()?;
    }
    // Without this, a system crash could leave an empty file under the final name.
    temporary.as_file().sync_data()?;
    temporary.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Checks that files can be created in a folder. Creates it if missing.
pub fn check_writable_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let temporary = tempfile::Builder::new().prefix(TEMPORARY_PREFIX).suffix(TEMPORARY_SUFFIX).tempfile_in(folder);
    temporary.map(drop).map_err(without_temporary_path)
}

/// Removes the path of a temporary file from an error: it means nothing to users.
fn without_temporary_path(error: io::Error) -> io::Error {
    // The error of the operating system is not accessible.
    if error.raw_os_error().is_some() { error } else { error.kind().into() }
}

/// Removes the temporary files of killed processes, where possible.
fn remove_abandoned_files(folder: &Path) {
    let now = SystemTime::now();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_abandoned = || {
            let metadata = entry.metadata().ok().filter(Metadata::is_file)?;
            now.duration_since(metadata.modified().ok()?).ok().filter(|age| *age > MAX_WRITE_TIME)
        };
        if name.starts_with(TEMPORARY_PREFIX) && name.ends_with(TEMPORARY_SUFFIX) && is_abandoned().is_some() {
            fs::remove_file(entry.path()).ok();
        }
    }
}

/// Creates a file and its parent folders. Fails if the path exists.
pub fn create_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    File::options().write(true).create_new(true).open(path)?.write_all(bytes)
}

/// Replaces the contents of a user's file: follows symlinks and preserves owner and permissions. Fails if the file is
/// read-only, even where its folder would allow a rename.
pub fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    let Ok(path) = path.canonicalize() else {
        // A dangling symlink is written through.
        return if path.is_symlink() { fs::write(path, text) } else { write_text(path, text, None) };
    };
    let metadata = fs::metadata(&path)?;
    // A rename would replace the pipe or device with a file.
    if !metadata.is_file() {
        return fs::write(path, text);
    }
    if metadata.permissions().readonly() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"));
    }
    // A rename only needs write access to the folder.
    File::options().write(true).open(&path)?;
    write_text(&path, text, Some(&metadata))
}

fn write_text(path: &Path, text: &str, previous: Option<&Metadata>) -> io::Result<()> {
    write_atomically(path, |out| {
        if let Some(previous) = previous {
            restore_owner(out.get_ref(), previous);
            out.get_ref().set_permissions(previous.permissions())?;
        }
        out.write_all(text.as_bytes())
    })
}

/// Restores the owner and group of a file where the system allows it.
#[cfg(unix)]
fn restore_owner(file: &File, previous: &Metadata) {
    use std::os::unix::fs::{MetadataExt, fchown};

    let differs = file.metadata().is_ok_and(|now| (now.uid(), now.gid()) != (previous.uid(), previous.gid()));
    if differs && fchown(file, Some(previous.uid()), Some(previous.gid())).is_err() {
        // Only root can change the owner, but members of the group can set the group.
        fchown(file, None, Some(previous.gid())).ok();
    }
}

#[cfg(not(unix))]
fn restore_owner(_: &File, _: &Metadata) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn replacing_preserves_symlink_and_permissions() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "old").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace_file(&link, "new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        replace_file(&folder.path().join("a/b"), "made").unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join("a/b")).unwrap(), "made");
    }

    #[test]
    fn errors_do_not_name_temporary_files() {
        // A file in place of a folder: root can write to all folders.
        let file = tempfile::NamedTempFile::new().unwrap();
        let failed = tempfile::Builder::new().prefix(TEMPORARY_PREFIX).tempfile_in(file.path()).unwrap_err();
        assert!(failed.to_string().contains(TEMPORARY_PREFIX), "{failed}");
        let error = without_temporary_path(failed);
        assert!(!error.to_string().contains(TEMPORARY_PREFIX), "{error}");
    }

    #[test]
    fn removes_temporary_files_of_killed_processes() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let old = SystemTime::now() - MAX_WRITE_TIME - Duration::from_mins(1);
        for name in [".karat-old.tmp", ".karat-new.tmp", "karat.tmp", ".karat-old.json"] {
            let file = File::create(path(name)).unwrap();
            if name != ".karat-new.tmp" {
                file.set_modified(old).unwrap();
            }
        }
        replace_file(&path("file"), "new").unwrap();
        let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".karat-new.tmp", ".karat-old.json", "file", "karat.tmp"]);
    }

    #[test]
    fn rejects_read_only_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "old").unwrap();
        let mut permissions = std::fs::metadata(&file).unwrap().permissions();
        permissions.set_readonly(true);
        std::fs::set_permissions(&file, permissions).unwrap();
        assert_eq!(replace_file(&file, "new").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
    }

    #[cfg(unix)]
    #[test]
    fn writes_through_dangling_symlinks() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace_file(&link, "new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
        assert!(replace_file(folder.path(), "a folder").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn replacing_preserves_the_owner_where_allowed() {
        use std::os::unix::fs::{MetadataExt, chown};

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "old").unwrap();
        // Only root can change the owner; for other users the owner is the same before and after.
        chown(&file, Some(12345), Some(12345)).ok();
        let before = std::fs::metadata(&file).unwrap();
        replace_file(&file, "new").unwrap();
        let after = std::fs::metadata(&file).unwrap();
        assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
    }
}
