//! Files that are there whole or not at all.

use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes a file through a temporary one beside it, so that nobody ever sees half of it.
pub fn write_atomically(path: &Path, fill: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(folder)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".karat-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As for any file a program makes: the umask decides. The default is for the owner's eyes only.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut temporary = builder.tempfile_in(folder)?;
    {
        let mut writer = BufWriter::with_capacity(64 * 1024, temporary.as_file_mut());
        fill(&mut writer)?;
        writer.flush()?;
    }
    // Without this a crash of the machine could leave an empty file under the final name.
    temporary.as_file().sync_data()?;
    temporary.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Creates a file and the folders on the way to it; fails where something exists at the path.
pub fn create_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    File::options().write(true).create_new(true).open(path)?.write_all(bytes)
}

/// Puts a text in the place of a file that a person keeps: what a link leads to is written, and whose it is and who may
/// read it stays. A file that may not be written is left as it is, although its folder would let it be replaced.
pub fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    let Ok(path) = path.canonicalize() else {
        // A link that leads nowhere yet is written through.
        return if path.is_symlink() { fs::write(path, text) } else { write_whole(path, text, None) };
    };
    let metadata = fs::metadata(&path)?;
    // A rename would put a file in the place of the pipe or the device.
    if !metadata.is_file() {
        return fs::write(path, text);
    }
    if metadata.permissions().readonly() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"));
    }
    // A rename asks only whether the folder can be written.
    File::options().write(true).open(&path)?;
    write_whole(&path, text, Some(&metadata))
}

fn write_whole(path: &Path, text: &str, before: Option<&Metadata>) -> io::Result<()> {
    write_atomically(path, |out| {
        if let Some(before) = before {
            keep_owner(out.get_ref(), before);
            out.get_ref().set_permissions(before.permissions())?;
        }
        out.write_all(text.as_bytes())
    })
}

/// Gives a file to whom it belonged before, where the system allows that.
#[cfg(unix)]
fn keep_owner(file: &File, before: &Metadata) {
    use std::os::unix::fs::{MetadataExt, fchown};

    let is_other = file.metadata().is_ok_and(|now| (now.uid(), now.gid()) != (before.uid(), before.gid()));
    if is_other && fchown(file, Some(before.uid()), Some(before.gid())).is_err() {
        // Only an administrator gives files away; the group is often one's own too.
        fchown(file, None, Some(before.gid())).ok();
    }
}

#[cfg(not(unix))]
fn keep_owner(_: &File, _: &Metadata) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_replaced_file_keeps_its_link_and_its_permissions() {
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
    fn a_read_only_file_stays_as_it_was() {
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
    fn a_link_that_leads_nowhere_is_written_through() {
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
    fn a_replaced_file_keeps_its_owner_where_that_can_be() {
        use std::os::unix::fs::{MetadataExt, chown};

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "old").unwrap();
        // Only an administrator can give a file away; others see that nothing changes.
        chown(&file, Some(12345), Some(12345)).ok();
        let before = std::fs::metadata(&file).unwrap();
        replace_file(&file, "new").unwrap();
        let after = std::fs::metadata(&file).unwrap();
        assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
    }
}
