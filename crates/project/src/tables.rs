//! Finds the table files of eval files.

use std::path::{Path, PathBuf};

use karat_json::{Finding, parse};

use crate::read::read_file;

/// Returns the table files that an eval file references in `each`; none if it cannot be read.
pub fn table_files(eval_file: &Path) -> Vec<PathBuf> {
    let Ok(bytes) = read_file(eval_file) else { return Vec::new() };
    let Some(document) = Finding::text_of(&bytes).ok().and_then(|text| parse(text).ok()) else { return Vec::new() };
    let folder = eval_file.parent().unwrap_or(Path::new(""));
    let cases = document.get("cases").unwrap_or(&document).as_array();
    let names = cases.into_iter().flatten().filter_map(|case| case.get("each")?.get("file")?.as_str());
    names.map(|name| folder.join(name)).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(r#"[{"each": {"file": "../a.csv"}}, {"each": [{}]}, {"id": "x"}, {"each": {"file": "b.jsonl"}}]"#, &["../a.csv", "b.jsonl"])]
    #[case(r#"{"cases": [{"each": {"file": "a.csv"}}]}"#, &["a.csv"])]
    #[case("[{", &[])]
    fn finds_tables(#[case] text: &str, #[case] expected: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.golden.json");
        std::fs::write(&file, text).unwrap();
        let expected: Vec<PathBuf> = expected.iter().map(|name| folder.path().join(name)).collect();
        assert_eq!(table_files(&file), expected);
    }
}
