//! Files that are there whole or not at all.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes a file through a temporary one beside it, so that nobody ever sees half of it.
pub(crate) fn write_atomically(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<&mut File>) -> io::Result<()>,
) -> io::Result<()> {
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

/// Puts a text in the place of a file that a person keeps: what a link leads to is written, and who may read it stays.
pub fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let permissions = std::fs::metadata(&path).ok().map(|metadata| metadata.permissions());
    write_atomically(&path, |out| {
        if let Some(permissions) = permissions {
            out.get_ref().set_permissions(permissions)?;
        }
        out.write_all(text.as_bytes())
    })
}

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
}
