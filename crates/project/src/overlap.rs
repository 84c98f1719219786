//! The overlap map on disk.

use karat_json::InvalidFile;
use karat_tools::overlap::OverlapMap;

use crate::error::Error;
use crate::layout::PathSetting;
use crate::read::read_file;

/// Reads the overlap map. Returns `None` if the default path does not exist.
pub fn read_overlap_map(setting: &PathSetting) -> Result<Option<OverlapMap>, Error> {
    if !setting.is_explicit && !setting.path.exists() {
        return Ok(None);
    }
    let display_path = setting.path.display().to_string();
    let bytes = read_file(&setting.path)
        .map_err(|error| Error::invalid(format!("cannot read the overlap map {display_path}: {error}")))?;
    OverlapMap::read(&bytes)
        .map(Some)
        .map_err(|findings| Error::invalid_files(vec![InvalidFile::new(&display_path, &bytes, findings)]))
}
