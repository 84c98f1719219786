//! Checks the archives of regression cases.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use karat_cases::regression::Archive;
use karat_json::{Problem, without_bom};
use karat_lints::Rule;
use karat_project::{EvalPath, archive_path, discover_archives, looks_like_eval_file, read_bytes};

use super::issue::{CheckIssue, RuleProblem, locate, problem};
use crate::error::Error;
use crate::settings::Settings;

/// The suffix of archives that are checked even without an eval file.
const ARCHIVE_SUFFIX: &str = ".regression.archived.json";

/// Checks the archives of these eval files, and archives without eval files in the folders.
pub(super) fn check(eval_files: &[EvalPath], paths: &[PathBuf], settings: &Settings) -> Result<Vec<CheckIssue>, Error> {
    let mut archives: BTreeMap<PathBuf, EvalPath> = BTreeMap::new();
    for path in eval_files {
        let archive = archive_path(&path.path);
        if archive.exists() {
            let display_path = settings.display_path(&archive);
            archives.insert(archive.clone(), EvalPath { path: archive, display_path, ..path.clone() });
        }
    }
    for path in discover_archives(paths, &settings.layout, &settings.layout.current_dir)? {
        let is_archive = path.path.to_string_lossy().ends_with(ARCHIVE_SUFFIX);
        // An eval file with such a name is checked as an eval file.
        if is_archive && !looks_like_eval_file(&path.path) {
            archives.entry(path.path.clone()).or_insert(path);
        }
    }
    let mut issues = Vec::new();
    for path in archives.values() {
        issues.extend(check_one(path)?);
    }
    Ok(issues)
}

fn check_one(path: &EvalPath) -> Result<Vec<CheckIssue>, Error> {
    let bytes = read_bytes(path)?;
    let text: Arc<str> = Arc::from(String::from_utf8_lossy(without_bom(&bytes)));
    let archive = match Archive::parse(&bytes) {
        Ok(archive) => archive,
        Err(findings) => return Ok(CheckIssue::invalid(&path.display_path, &text, findings)),
    };
    let rule = Rule::EditedRegression;
    let edited = archive.edited().into_iter().map(|edited| -> RuleProblem {
        let message = format!(
            "this case was edited after it was archived (hash {}, expected {}): restore it",
            edited.current_hash, edited.case.hash
        );
        let finding = problem(format!("/archived/{}/case", edited.index), message, None);
        let finding = Problem { case_id: Some(edited.case.id().to_owned()), ..finding };
        (finding, (rule.name(), rule.severity()))
    });
    Ok(locate(&path.display_path, &text, edited.collect()))
}
