//! The folder `.karat`, in which karat keeps what belongs into no repository.

use std::ffi::OsStr;
use std::path::Path;

/// Makes a folder. Where it is `.karat` or within it, that gets a `.gitignore` unless it has one: whoever comes first, the
/// store or something else that is kept there, nobody commits it by mistake.
pub fn make_folder(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let own = folder.ancestors().find(|folder| folder.file_name() == Some(OsStr::new(".karat")));
    if let Some(ignore) = own.map(|own| own.join(".gitignore")).filter(|ignore| !ignore.exists()) {
        // A folder that cannot be written to is told of by whoever needs to write there.
        let _ = std::fs::write(ignore, "*\n");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn karats_folder_is_ignored_whoever_makes_it() {
        let root = tempfile::tempdir().expect("a folder");
        let own = root.path().join(".karat");
        let ignore = own.join(".gitignore");
        std::fs::create_dir(&own).expect("made by something else");
        make_folder(&own.join("forge/tool")).expect("made");
        assert_eq!(std::fs::read_to_string(&ignore).expect("a file"), "*\n");
        assert!(!own.join("forge/.gitignore").exists());
        std::fs::write(&ignore, "").expect("somebody wants it in the repository");
        make_folder(&own).expect("there");
        assert_eq!(std::fs::read_to_string(&ignore).expect("a file"), "");
        make_folder(&root.path().join("data")).expect("made");
        assert!(!root.path().join("data/.gitignore").exists());
    }
}
