//! Failure messages.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use karat_core::assertion::{Failure, Field, Strictness};
use rstest::rstest;
use serde_json::{Value, json};

use super::{ALL, STRICT, Scenario};

#[expect(clippy::disallowed_methods, reason = "the test reads fixture files")]
fn load_examples(path: &Path) -> Vec<Scenario> {
    let document: Value = serde_json::from_slice(&std::fs::read(path).expect("corpus file")).expect("valid JSON");
    document["examples"].as_array().expect("list of examples").iter().cloned().map(Scenario).collect()
}

#[rstest]
fn failure_messages_match_the_corpus(#[files("tests/it/corpus/fails/*.json")] path: PathBuf) {
    for scenario in load_examples(&path) {
        let name = &scenario.0["name"];
        let strict = scenario.0.get("strict").is_some();
        let verdict = scenario.judge(if strict { STRICT } else { ALL });
        let failures: Value =
            verdict.failures.iter().map(|failure| json!([failure.pointer, failure.message])).collect();
        assert_eq!(failures, scenario.0["failures"], "{name}");
        for Failure { assertion, message, pointer } in &verdict.failures {
            assert!(message.starts_with(&format!("{assertion}: ")), "{name}: {message}");
            let case = json!({ "expect": scenario.0["expect"] });
            assert!(case.pointer(pointer).is_some(), "{name}: nothing at {pointer}");
        }
        let first = scenario.judge(Strictness { all_failures: false, strict });
        assert_eq!(first.failures, verdict.failures[..1], "{name}");
    }
}

#[test]
fn every_field_has_a_failing_example() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/corpus/fails");
    let failing: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .flat_map(|entry| load_examples(&entry.unwrap().path()))
        .flat_map(|scenario| scenario.judge(ALL).failures)
        .map(|failure| failure.assertion)
        .collect();
    let fields: BTreeSet<String> = Field::ALL.into_iter().map(|field| field.name().to_owned()).collect();
    assert_eq!(failing, fields);
}
