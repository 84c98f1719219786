//! Reads eval files and other JSON from disk.

use std::path::Path;

use karat_core::case::{EvalFile, Origin, RubricFile, SuiteFile};
use karat_core::exit::ExitStatus;
use karat_json::text::shorten;
use karat_json::{Finding, parse};
use serde_json::Value;

use crate::diagnostic::print_findings;
use crate::discover::EvalPath;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::PathSetting;

/// An eval file as it was read.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub(crate) path: EvalPath,
    pub(crate) file: EvalFile,
}

/// A rubric file as it was read.
pub(crate) struct LoadedRubric {
    pub(crate) path: EvalPath,
    pub(crate) file: RubricFile,
}

/// Reads one eval file's bytes.
pub(crate) fn read_bytes(path: &EvalPath) -> Result<Vec<u8>, Failure> {
    std::fs::read(&path.path).map_err(|error| Failure::invalid(format!("cannot read {}: {error}", path.shown)))
}

pub(crate) fn parse_suite_file(path: &EvalPath, bytes: &[u8]) -> Result<SuiteFile, Vec<Finding>> {
    let file_name = path.path.file_name().unwrap_or_default().to_string_lossy();
    SuiteFile::read(bytes, Origin { file_name: &file_name }).map_err(|invalid| invalid.findings)
}

/// Reads all files, rubric files apart; when any is invalid, the findings of all are shown and nothing is run.
pub(crate) fn load_all(paths: Vec<EvalPath>, printer: &Printer) -> Result<(Vec<Loaded>, Vec<LoadedRubric>), Failure> {
    let mut loaded = Vec::with_capacity(paths.len());
    let mut rubrics = Vec::new();
    let mut is_valid = true;
    for path in paths {
        let bytes = read_bytes(&path)?;
        match parse_suite_file(&path, &bytes) {
            Ok(SuiteFile::Eval(file)) => loaded.push(Loaded { path, file }),
            Ok(SuiteFile::Rubric(file)) => rubrics.push(LoadedRubric { path, file }),
            Err(findings) => {
                is_valid = false;
                print_findings(&path.shown, &String::from_utf8_lossy(without_bom(&bytes)), &findings, printer);
            }
        }
    }
    if is_valid { Ok((loaded, rubrics)) } else { Err(Failure::reported(ExitStatus::Invalid)) }
}

/// Places are counted in the text without its byte order mark.
pub(crate) fn without_bom(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes)
}

/// Reads a JSON file that a setting names; a default that is not there is as if it were not set.
pub(crate) fn read_json_setting(setting: &PathSetting, what: &str) -> Result<Option<Value>, Failure> {
    match read_setting(setting, what)? {
        Some(text) => parse_json(&text, &setting.path, what).map(Some),
        None => Ok(None),
    }
}

pub(crate) fn read_setting(setting: &PathSetting, what: &str) -> Result<Option<String>, Failure> {
    if !setting.given && !setting.path.exists() {
        return Ok(None);
    }
    read_text(&setting.path, what).map(Some)
}

pub(crate) fn read_text(path: &Path, what: &str) -> Result<String, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::invalid(format!("cannot read {what} {}: {error}", path.display())))?;
    // A byte order mark says nothing in UTF-8, but some editors write one.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

pub(crate) fn parse_json(text: &str, path: &Path, what: &str) -> Result<Value, Failure> {
    parse(text).map_err(|error| {
        let position = karat_json::Position::of(text, error.offset);
        let place = format!("{}:{}:{}", path.display(), position.line, position.column);
        Failure::invalid(format!("{what} {place} is not JSON: {}", shorten(&error.message, 200)))
    })
}
