//! Writes candidates to files.

use std::path::{Path, PathBuf};

use karat_evals::agreement::Refinement;
use karat_project::replace_file;
use karat_store::create_data_dir;

use super::CandidateFolder;
use crate::error::Error;
use crate::settings::Settings;

/// Writes the candidates to a folder and sets their files.
pub(super) fn write_candidates(
    refinement: &mut Refinement,
    folder: &CandidateFolder,
    settings: &Settings,
) -> Result<(), Error> {
    let path = match folder {
        CandidateFolder::Given(folder) => settings.layout.current_dir.join(folder),
        CandidateFolder::Own => candidates_folder(&refinement.eval_id, settings),
    };
    for candidate in &mut refinement.candidates {
        candidate.file = Some(write_candidate(candidate.number, &candidate.code, &path, settings)?);
    }
    // Remove older candidates, which could be mistaken for new ones; but nothing from a folder of the user.
    if *folder == CandidateFolder::Own {
        let older = (refinement.candidates.len() + 1..).map(|number| path.join(format!("candidate_{number}.py")));
        for old in older.take_while(|old| old.exists()) {
            std::fs::remove_file(&old).map_err(|error| {
                Error::unavailable(format!("cannot remove {}: {error}", settings.display_path(&old)))
            })?;
        }
    }
    Ok(())
}

pub(super) fn candidates_folder(eval_id: &str, settings: &Settings) -> PathBuf {
    settings.layout.root.join(".karat").join("refine").join(eval_id)
}

/// Writes a candidate and returns its path for display.
pub(super) fn write_candidate(number: u64, code: &str, folder: &Path, settings: &Settings) -> Result<String, Error> {
    let path = folder.join(format!("candidate_{number}.py"));
    let display_path = settings.display_path(&path);
    create_data_dir(folder)
        .and_then(|()| replace_file(&path, code))
        .map_err(|error| Error::cannot_write(&display_path, &error))?;
    Ok(display_path)
}
