//! Plays every file of the project's `conformance/` folder against the real binary.

use std::path::{Path, PathBuf};

use karat_testkit::conformance::{Played, play};

use crate::support::prepared;

#[test]
fn routing() {
    holds("routing.json", 27, 0);
}

#[test]
fn params() {
    holds("params.json", 31, 0);
}

#[test]
fn response() {
    holds("response.json", 27, 0);
}

#[test]
fn tokens() {
    holds("tokens.json", 31, 0);
}

#[test]
fn suite() {
    holds("suite.json", 0, 26);
}

#[test]
fn model_openai() {
    holds("model-openai.json", 13, 0);
}

#[test]
fn model_anthropic() {
    holds("model-anthropic.json", 13, 0);
}

#[test]
fn model_suite() {
    holds("model-suite.json", 0, 2);
}

#[test]
fn model_own() {
    holds("model-own.json", 44, 35);
}

#[test]
fn evalfn() {
    prepared();
    holds("evalfn.json", 0, 51);
}

#[test]
fn every_file_is_played() {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    let models = ["model-anthropic.json", "model-openai.json", "model-own.json", "model-suite.json"];
    let others = ["evalfn.json", "params.json", "response.json", "routing.json", "suite.json", "tokens.json"];
    assert_eq!(names, [&others[..1], &models, &others[1..]].concat());
}

#[track_caller]
fn holds(file: &str, vectors: usize, scenarios: usize) {
    let played = play(&folder().join(file), Path::new(env!("CARGO_BIN_EXE_karat")));
    assert_eq!(played, Played { vectors, scenarios, problems: Vec::new() }, "{}", played.problems.join("\n"));
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance")
}
