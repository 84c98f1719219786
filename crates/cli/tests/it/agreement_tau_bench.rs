//! Compares the agreement figures of real conversations and their rewards with those of an independent Python script.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use karat_testkit::project::{Output, TempProject};
use serde_json::Value;

use crate::support::project_with_python;

/// The allowed difference, due to rounding.
const TOLERANCE: f64 = 1e-9;

fn fixtures() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/tau-bench")
}

fn run(project: &TempProject, arguments: &[&str]) -> Output {
    project.command(arguments.to_vec()).timeout(Duration::from_mins(5)).run()
}

/// Returns the figures that the script computes from the published file.
fn independent_figures() -> Value {
    let script = fixtures().join("agreement.py");
    let output = Command::new("python3")
        .arg(script)
        .arg(fixtures().join("gpt-4o-airline.json.gz"))
        .output()
        .expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn figures_match_an_independent_implementation() {
    let project = project_with_python();
    let file = fixtures().join("gpt-4o-airline.json.gz");
    let imported = run(&project, &["trace", "import", file.to_str().unwrap(), "--feedback", "--format", "json"]);
    assert_eq!(imported.code, Some(0), "{}", imported.both());
    let functions = fixtures().join("functions");
    let added = run(&project, &["eval", "add", functions.to_str().unwrap()]);
    assert_eq!(added.code, Some(0), "{}", added.both());
    let judged = run(&project, &["eval", "run", "--stored"]);
    // One function raises an exception where nothing was changed.
    assert_eq!(judged.code, Some(3), "{}", judged.both());
    let agreement = run(&project, &["eval", "agreement", "--all", "--format", "json"]);
    // All three evals miss the thresholds.
    assert_eq!(agreement.code, Some(1), "{}", agreement.both());
    let report: Value = serde_json::from_str(&agreement.stdout).unwrap();
    let expected = independent_figures();
    let evals = report["evals"].as_array().unwrap();
    assert_eq!(evals.len(), 3);
    for eval in evals {
        let name = eval["eval_id"].as_str().unwrap();
        let expected = &expected[name];
        assert_eq!(eval["counts"], expected["counts"], "{name}");
        assert_eq!(eval["compared"], expected["compared"], "{name}");
        let counts = eval["counts"].as_object().unwrap();
        assert_eq!(counts.values().filter_map(Value::as_u64).sum::<u64>(), 200, "{name}");
        let figures = eval["figures"].as_object().unwrap();
        assert_eq!(figures.len(), 7);
        for (figure, actual) in figures {
            for end in ["value", "low", "high"] {
                let number =
                    |value: &Value| value[figure][end].as_f64().unwrap_or_else(|| panic!("{name} {figure} {end}"));
                let (actual, target) = (actual[end].as_f64().unwrap(), number(&expected["figures"]));
                assert!(
                    (actual - target).abs() <= TOLERANCE,
                    "{name} {figure} {end}: expected {target}, found {actual}"
                );
            }
        }
    }
    let list = run(&project, &["contradictions", "--format", "json"]);
    let list: Value = serde_json::from_str(&list.stdout).unwrap();
    let contradictions = |eval: &Value| {
        eval["counts"]["passed_negative"].as_u64().unwrap() + eval["counts"]["failed_positive"].as_u64().unwrap()
    };
    assert_eq!(list["total"].as_u64(), Some(evals.iter().map(contradictions).sum()));
}
