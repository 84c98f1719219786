//! Parses any bytes as an eval file: parsing never panics, every finding has a valid position, and cases survive a
//! round trip.

#![no_main]

use karat_cases::{Case, CaseLocation, EvalFile, InvalidEvalFile, Origin};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fuzz_target!(|bytes: &[u8]| {
    match parse(bytes) {
        Ok(file) => assert_round_trip(file),
        Err(invalid) => assert_valid_positions(bytes, &invalid),
    }
});

fn parse(bytes: &[u8]) -> Result<EvalFile, InvalidEvalFile> {
    EvalFile::parse(bytes, Origin::new("x.golden.json"))
}

fn assert_round_trip(file: EvalFile) {
    let written = json!({ "metadata": file.metadata, "cases": file.cases }).to_string();
    let again = match parse(written.as_bytes()) {
        Ok(again) => again,
        Err(invalid) => panic!("the written file is invalid: {:?}\n{written}", invalid.findings),
    };
    assert_eq!(again.metadata.unwrap_or_default(), file.metadata.unwrap_or_default());
    assert_eq!(again.tier, file.tier);
    assert_eq!(without_locations(again.cases), without_locations(file.cases));
}

/// Returns the cases without their locations, which depend on the layout of the file.
fn without_locations(cases: Vec<Case>) -> Vec<Case> {
    cases.into_iter().map(|case| Case { location: CaseLocation::default(), ..case }).collect()
}

fn assert_valid_positions(bytes: &[u8], invalid: &InvalidEvalFile) {
    assert!(!invalid.findings.is_empty());
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut last = 0;
    for finding in &invalid.findings {
        let range = finding.location.range.clone();
        assert!(text.get(range.clone()).is_some(), "{finding:?}");
        assert!(range.start >= last, "findings are not in text order: {:?}", invalid.findings);
        last = range.start;
        assert!(finding.location.position.line >= 1 && finding.location.position.column >= 1);
        assert!(!finding.message.is_empty());
    }
}
