//! Any bytes as an eval file: reading never panics, every finding has its place, and what reads and is written again
//! reads as the same cases.

#![no_main]

use karat_core::case::{Case, EvalFile, InvalidEvalFile, Origin};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fuzz_target!(|bytes: &[u8]| {
    match read(bytes) {
        Ok(file) => reads_the_same_again(file),
        Err(invalid) => has_its_places(bytes, &invalid),
    }
});

fn read(bytes: &[u8]) -> Result<EvalFile, InvalidEvalFile> {
    EvalFile::read(bytes, Origin { file_name: "x.golden.json" })
}

fn reads_the_same_again(file: EvalFile) {
    let written = json!({ "metadata": file.metadata, "cases": file.cases }).to_string();
    let again = match read(written.as_bytes()) {
        Ok(again) => again,
        Err(invalid) => panic!("what was written does not read: {:?}\n{written}", invalid.findings),
    };
    assert_eq!(again.metadata.unwrap_or_default(), file.metadata.unwrap_or_default());
    assert_eq!(again.tier, file.tier);
    assert_eq!(without_lines(again.cases), without_lines(file.cases));
}

/// The cases without their lines, which depend on how the file is laid out.
fn without_lines(cases: Vec<Case>) -> Vec<Case> {
    cases.into_iter().map(|case| Case { line: 0, ..case }).collect()
}

fn has_its_places(bytes: &[u8], invalid: &InvalidEvalFile) {
    assert!(!invalid.findings.is_empty());
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut last = 0;
    for finding in &invalid.findings {
        let range = finding.place.range.clone();
        assert!(text.get(range.clone()).is_some(), "{finding:?}");
        assert!(range.start >= last, "not in the order of the text: {:?}", invalid.findings);
        last = range.start;
        assert!(finding.place.position.line >= 1 && finding.place.position.column >= 1);
        assert!(!finding.message.is_empty());
    }
}
