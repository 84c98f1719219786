//! Reads eval files and other JSON from disk.

use std::io;
use std::path::Path;

use karat_cases::{EvalFile, Origin, RubricFile, SuiteFile, TableFiles};
use karat_json::text::shorten;
use karat_json::{Finding, InvalidFile, parse};
use serde_json::Value;

use crate::discover::EvalPath;
use crate::error::Error;
use crate::layout::PathSetting;
use crate::read::read_file;

/// A parsed eval file.
#[derive(Clone)]
pub struct LoadedSuite {
    pub path: EvalPath,
    pub file: EvalFile,
}

/// A parsed rubric file.
pub struct LoadedRubric {
    pub path: EvalPath,
    pub file: RubricFile,
}

pub fn read_bytes(path: &EvalPath) -> Result<Vec<u8>, Error> {
    read_file(&path.path).map_err(|error| Error::invalid(format!("cannot read {}: {error}", path.display_path)))
}

pub fn parse_suite_file(path: &EvalPath, bytes: &[u8]) -> Result<SuiteFile, Vec<Finding>> {
    let file_name = path.path.file_name().unwrap_or_default().to_string_lossy();
    let tables = FolderTables { folder: path.path.parent().unwrap_or(Path::new("")) };
    let origin = Origin { file_name: &file_name, tables: Some(&tables) };
    SuiteFile::parse(bytes, origin).map_err(|invalid| invalid.findings)
}

/// Reads the tables of an eval file, relative to its folder.
#[derive(Debug)]
struct FolderTables<'f> {
    folder: &'f Path,
}

impl TableFiles for FolderTables<'_> {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        read_file(&self.folder.join(path))
    }
}

/// Reads eval files and rubric files. If any are invalid, the error has the findings of all of them.
pub fn load_all(paths: Vec<EvalPath>) -> Result<(Vec<LoadedSuite>, Vec<LoadedRubric>), Error> {
    let mut loaded = Vec::with_capacity(paths.len());
    let mut rubrics = Vec::new();
    let mut invalid = Vec::new();
    for path in paths {
        let bytes = read_bytes(&path)?;
        match parse_suite_file(&path, &bytes) {
            Ok(SuiteFile::Eval(file)) => loaded.push(LoadedSuite { path, file }),
            Ok(SuiteFile::Rubric(file)) => rubrics.push(LoadedRubric { path, file }),
            Err(findings) => invalid.push(InvalidFile::new(&path.display_path, &bytes, findings)),
        }
    }
    if invalid.is_empty() { Ok((loaded, rubrics)) } else { Err(Error::invalid_files(invalid)) }
}

/// Reads the JSON file of a setting. Returns `None` if a default path does not exist.
pub fn read_json_setting(setting: &PathSetting, label: &str) -> Result<Option<Value>, Error> {
    match read_setting(setting, label)? {
        Some(text) => parse_json(&text, &setting.path, label).map(Some),
        None => Ok(None),
    }
}

pub fn read_setting(setting: &PathSetting, label: &str) -> Result<Option<String>, Error> {
    if !setting.is_explicit && !setting.path.exists() {
        return Ok(None);
    }
    read_text(&setting.path, label).map(Some)
}

pub fn read_text(path: &Path, label: &str) -> Result<String, Error> {
    let text = read_file(path)
        .and_then(|bytes| String::from_utf8(bytes).map_err(|_| io::Error::other("not valid UTF-8")))
        .map_err(|error| Error::invalid(format!("cannot read {label} {}: {error}", path.display())))?;
    // Some editors write a byte order mark.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

pub fn parse_json(text: &str, path: &Path, label: &str) -> Result<Value, Error> {
    parse(text).map_err(|error| {
        let position = karat_json::Position::of(text, error.offset);
        let location = format!("{}:{}:{}", path.display(), position.line, position.column);
        Error::invalid(format!("{label} {location} is not valid JSON: {}", shorten(&error.message, 200)))
    })
}
