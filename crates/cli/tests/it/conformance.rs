//! Runs every file of the `conformance/` folder against the binary.

use std::path::{Path, PathBuf};

use karat_testkit::conformance::{RunSummary, run_file};

use crate::support::project_with_python;

#[test]
fn routing() {
    assert_conforms("routing.json", 33, 0);
}

#[test]
fn calls() {
    assert_conforms("calls.json", 213, 0);
}

#[test]
fn trajectories() {
    assert_conforms("trajectories.json", 108, 0);
}

#[test]
fn params() {
    assert_conforms("params.json", 31, 0);
}

#[test]
fn response() {
    assert_conforms("response.json", 27, 0);
}

#[test]
fn tokens() {
    assert_conforms("tokens.json", 31, 0);
}

#[test]
fn values() {
    assert_conforms("values.json", 115, 0);
}

#[test]
fn security() {
    assert_conforms("security.json", 0, 24);
}

#[test]
fn suite() {
    assert_conforms("suite.json", 0, 26);
}

#[test]
fn conversations() {
    assert_conforms("conversations.json", 0, 39);
}

#[test]
fn state() {
    assert_conforms("state.json", 68, 38);
}

#[test]
fn selection() {
    assert_conforms("selection.json", 0, 42);
}

#[test]
fn model_openai() {
    assert_conforms("model-openai.json", 13, 0);
}

#[test]
fn model_anthropic() {
    assert_conforms("model-anthropic.json", 13, 0);
}

#[test]
fn model_suite() {
    assert_conforms("model-suite.json", 0, 2);
}

#[test]
fn model_own() {
    assert_conforms("model-own.json", 44, 38);
}

#[test]
fn evalfn() {
    project_with_python();
    assert_conforms("evalfn.json", 0, 51);
}

#[test]
fn every_file_is_run() {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    let models = ["model-anthropic.json", "model-openai.json", "model-own.json", "model-suite.json"];
    let others = ["params.json", "response.json", "routing.json", "security.json", "selection.json"];
    let last = ["state.json", "suite.json", "tokens.json", "trajectories.json", "values.json"];
    let first = ["calls.json", "conversations.json", "evalfn.json"];
    assert_eq!(names, [&first[..], &models, &others, &last].concat());
}

#[track_caller]
fn assert_conforms(file: &str, vectors: usize, scenarios: usize) {
    let summary = run_file(&folder().join(file), Path::new(env!("CARGO_BIN_EXE_karat")));
    assert_eq!(summary, RunSummary { vectors, scenarios, problems: Vec::new() }, "{}", summary.problems.join("\n"));
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance")
}
