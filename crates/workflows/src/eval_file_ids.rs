//! Checks whether a case without a result is still in its eval file.

use std::collections::BTreeSet;

use karat_cases::SuiteFile;
use karat_project::{parse_suite_file, read_bytes};

use crate::regress::project_file;
use crate::settings::Settings;

/// Returns the ids of the cases in an eval file as it is now; none if it was deleted. `None` if they are unknown, because
/// the file is not named or invalid.
pub(crate) fn current_ids(eval_file: &str, settings: &Settings) -> Option<BTreeSet<String>> {
    read_ids(eval_file, None, settings)
}

/// Returns the ids of the cases in an eval file if it has this hash, so that it is unchanged since a result.
pub(crate) fn unchanged_ids(eval_file: &str, hash: &str, settings: &Settings) -> Option<BTreeSet<String>> {
    read_ids(eval_file, Some(hash), settings)
}

fn read_ids(eval_file: &str, hash: Option<&str>, settings: &Settings) -> Option<BTreeSet<String>> {
    if eval_file.is_empty() {
        return None;
    }
    let path = settings.layout.root.join(eval_file);
    if hash.is_none() && !path.exists() {
        return Some(BTreeSet::new());
    }
    let path = project_file(path, settings);
    let bytes = read_bytes(&path).ok()?;
    let Ok(SuiteFile::Eval(file)) = parse_suite_file(&path, &bytes) else { return None };
    if hash.is_some_and(|hash| hash != file.hash) {
        return None;
    }
    // Results have redacted ids.
    Some(file.cases.iter().map(|case| settings.redactor.text(&case.id).into_owned()).collect())
}
