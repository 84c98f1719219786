//! The overlap map that the settings name.

use karat_core::exit::ExitStatus;
use karat_tools::overlap::OverlapMap;

use crate::diagnostic::print_findings;
use crate::failure::Failure;
use crate::load::without_bom;
use crate::printer::Printer;
use crate::settings::PathSetting;

/// Reads the map; a default that is not there is as if it were not set.
pub(crate) fn read_overlap_map(setting: &PathSetting, printer: &Printer) -> Result<Option<OverlapMap>, Failure> {
    if !setting.given && !setting.path.exists() {
        return Ok(None);
    }
    let shown = setting.path.display().to_string();
    let bytes = std::fs::read(&setting.path)
        .map_err(|error| Failure::invalid(format!("cannot read the overlap map {shown}: {error}")))?;
    OverlapMap::read(&bytes).map(Some).map_err(|findings| {
        print_findings(&shown, &String::from_utf8_lossy(without_bom(&bytes)), &findings, printer);
        Failure::reported(ExitStatus::Invalid)
    })
}
