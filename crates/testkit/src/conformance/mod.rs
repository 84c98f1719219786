//! Runs conformance files against the real binary: scripted agents on loopback, exit codes, result files, output and
//! requests.
//!
//! A file contains `vectors` (an expectation, an agent's reply and the expected verdict), `scenarios` (files, a script,
//! and commands with their expected results), or both. `README.md` next to the files describes the format. Unknown
//! keys, operators and protocols are reported as problems, never skipped.

mod matching;
mod placeholder;
mod scenario;
mod vector;

use std::path::Path;

use serde_json::Value;

pub use matching::mismatch;
use scenario::ScenarioRunner;

/// The result of running a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunSummary {
    pub vectors: usize,
    pub scenarios: usize,
    /// Failed expectations, each with the name of its vector or scenario.
    pub problems: Vec<String>,
}

/// Runs all vectors and scenarios of a file. Panics if the file cannot be read.
pub fn run_file(file: &Path, binary: &Path) -> RunSummary {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let document = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    run_document(&document, binary)
}

/// Runs all vectors and scenarios of a parsed document.
pub fn run_document(document: &Value, binary: &Path) -> RunSummary {
    let mut summary = RunSummary::default();
    let runner = ScenarioRunner::new(binary);
    let vectors = list(document, "vectors");
    summary.vectors = vectors.len();
    for group in vector::groups(document, vectors) {
        run_group(document, &group, &runner, &mut summary.problems);
    }
    for scenario in list(document, "scenarios") {
        summary.scenarios += 1;
        let name = scenario["name"].as_str().unwrap_or("unnamed scenario");
        summary.problems.extend(runner.run(scenario).into_iter().map(|problem| format!("{name}: {problem}")));
    }
    if summary.vectors + summary.scenarios == 0 {
        summary.problems.push("no vectors or scenarios".to_owned());
    }
    summary
}

/// Runs vectors together, and one by one only if that fails, to name the failing ones.
fn run_group(document: &Value, group: &[&Value], runner: &ScenarioRunner, problems: &mut Vec<String>) {
    let together = runner.run_vectors(document, group);
    if together.is_empty() {
        return;
    }
    let known = problems.len();
    for vector in group {
        let name = vector["name"].as_str().unwrap_or("unnamed vector");
        let alone = runner.run_vectors(document, &[vector]);
        problems.extend(alone.into_iter().map(|problem| format!("{name}: {problem}")));
    }
    if problems.len() == known {
        let count = group.len();
        problems.extend(together.into_iter().map(|problem| format!("only with {count} vectors together: {problem}")));
    }
}

fn list<'d>(document: &'d Value, key: &str) -> &'d [Value] {
    document.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
