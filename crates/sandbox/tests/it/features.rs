//! Functions return the same verdicts in the sandbox and in CPython.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::process::Command;

use karat_core::judgement::Conclusion;
use karat_sandbox::{Isolation, validate};
use rstest::rstest;

use crate::support::{fixtures, judge, sandbox, sources, task};

/// Verdicts (passed and reason) by function name and trace number.
type Verdicts = BTreeMap<(String, u64), (bool, String)>;

/// Runs all functions in the system's Python, without those that it is too old for.
fn cpython_verdicts() -> Verdicts {
    let folder = fixtures();
    let output = Command::new("python3")
        .arg("-I")
        .arg(folder.join("cpython.py"))
        .args(sources("features").iter().map(|source| &source.path))
        .stdin(File::open(folder.join("features/traces.jsonl")).unwrap())
        .env("PYTHONIOENCODING", "utf-8")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter_map(|(name, number, passed, reason): (String, u64, Option<bool>, Option<String>)| {
            Some(((name, number), (passed?, reason?)))
        })
        .collect()
}

#[test]
fn validation_accepts_language_features() {
    for source in sources("features") {
        let function = validate(source.text.as_bytes()).unwrap_or_else(|found| panic!("{}: {found:#?}", source.name));
        assert_eq!(function.name, format!("eval_{}", source.name));
    }
}

#[rstest]
fn verdicts_match_cpython(#[values(Isolation::Fresh, Isolation::Shared)] isolation: Isolation) {
    let sandbox = sandbox();
    let traces = fs::read(fixtures().join("features/traces.jsonl")).unwrap();
    let expected = cpython_verdicts();
    let all = sources("features");
    assert!(all.len() >= 60);
    for source in all {
        // Twice, so that each trace follows others.
        let twice = [traces.as_slice(), traces.as_slice()].concat();
        let count = u64::try_from(traces.split(|byte| *byte == b'\n').count() - 1).unwrap();
        for judged in judge(sandbox, &task(&[source.function()], isolation), twice) {
            let number = (judged.key.number - 1) % count + 1;
            let Some((passed, reason)) = expected.get(&(source.name.clone(), number)) else { continue };
            let verdict = Conclusion::Verdict { passed: *passed, reason: reason.clone() };
            assert_eq!(judged.judgements[0].conclusion, verdict, "{} over trace {}", source.name, judged.key.number);
        }
    }
}
