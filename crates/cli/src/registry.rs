//! The tool registry that the settings name.

use karat_core::registry::Registry;

use crate::failure::Failure;
use crate::load::read_setting;
use crate::printer::Printer;
use crate::settings::PathSetting;

/// Reads the registry; without one, staleness is unknown.
pub(crate) fn read_registry(setting: &PathSetting, printer: &Printer) -> Result<Option<Registry>, Failure> {
    let shown = setting.path.display();
    let is_json = setting.path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    if !is_json && setting.path.exists() {
        let message = format!("{shown} is not read: this version of karat reads tool registries as JSON only");
        printer.warn(&message);
        return Ok(None);
    }
    let Some(text) = read_setting(setting, "the tool registry")? else {
        return Ok(None);
    };
    karat_registry::read_json(&text)
        .map(Some)
        .map_err(|error| Failure::invalid(format!("cannot read the tool registry {shown}: {error}")))
}
