//! What is wrong with the archives of regression cases.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use karat_core::lint::{Rule, Severity};
use karat_core::regression::Archive;
use karat_json::Problem;

use super::issue::{Issue, Marked, locate, problem};
use super::report::INVALID;
use crate::failure::Failure;
use karat_json::without_bom;
use karat_project::archive_path;
use karat_project::read_bytes;
use karat_project::{EvalPath, discover_archives, looks_like_eval_file};
use karat_workflows::settings::Settings;

/// What an archive is called whose eval file may be gone; other names may be of anything.
const REGRESSION_ARCHIVE: &str = ".regression.archived.json";

/// Checks the archives of these eval files, and those that stand alone in the folders that are meant.
pub(super) fn check(eval_files: &[EvalPath], paths: &[PathBuf], settings: &Settings) -> Result<Vec<Issue>, Failure> {
    let mut archives: BTreeMap<PathBuf, EvalPath> = BTreeMap::new();
    for path in eval_files {
        let archive = archive_path(&path.path);
        if archive.exists() {
            let shown = settings.shown(&archive);
            archives.insert(archive.clone(), EvalPath { path: archive, shown, ..path.clone() });
        }
    }
    for path in discover_archives(paths, &settings.layout, &settings.layout.here)? {
        let is_archive = path.path.to_string_lossy().ends_with(REGRESSION_ARCHIVE);
        // Somebody may have renamed an eval file, which is then checked as one.
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

fn check_one(path: &EvalPath) -> Result<Vec<Issue>, Failure> {
    let bytes = read_bytes(path)?;
    let text: Arc<str> = Arc::from(String::from_utf8_lossy(without_bom(&bytes)));
    let archive = match Archive::read(&bytes) {
        Ok(archive) => archive,
        Err(findings) => {
            let issue = |finding| Issue::in_text(&path.shown, &text, finding, INVALID, Severity::Error);
            return Ok(findings.into_iter().map(issue).collect());
        }
    };
    let rule = Rule::EditedRegression;
    let edited = archive.edited().into_iter().map(|edited| -> Marked {
        let message = format!(
            "this case was edited after it was archived (hash {}, 'hash' says {}): restore it",
            edited.found, edited.case.hash
        );
        let place = problem(format!("/archived/{}/case", edited.index), message, None);
        let place = Problem { case_id: Some(edited.case.id().to_owned()), ..place };
        (place, (rule.name(), rule.severity()))
    });
    Ok(locate(&path.shown, &text, edited.collect()))
}
