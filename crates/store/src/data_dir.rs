//! The folder `.karat` for data that does not belong in a repository.

use std::ffi::OsStr;
use std::path::Path;

/// Creates a folder. If it is `.karat` or inside it, also writes a `.gitignore` to `.karat`, unless there is one, so
/// that its data is not committed by mistake.
pub fn create_data_dir(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let own = folder.ancestors().find(|folder| folder.file_name() == Some(OsStr::new(".karat")));
    if let Some(ignore) = own.map(|own| own.join(".gitignore")).filter(|ignore| !ignore.exists()) {
        // A folder that is not writable is reported by the code that writes to it.
        let _ = std::fs::write(ignore, "*\n");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_gitignore_only_to_the_data_folder() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let own = root.path().join(".karat");
        let ignore = own.join(".gitignore");
        std::fs::create_dir(&own).expect("created");
        create_data_dir(&own.join("forge/tool")).expect("created");
        assert_eq!(std::fs::read_to_string(&ignore).expect("a file"), "*\n");
        assert!(!own.join("forge/.gitignore").exists());
        std::fs::write(&ignore, "").expect("written by the user");
        create_data_dir(&own).expect("existing");
        assert_eq!(std::fs::read_to_string(&ignore).expect("a file"), "");
        create_data_dir(&root.path().join("data")).expect("created");
        assert!(!root.path().join("data/.gitignore").exists());
    }
}
