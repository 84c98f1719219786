//! Plays conformance files against the real binary: scripted agents on loopback, exit codes, result files, output and
//! requests.
//!
//! A file holds `vectors` (an expectation, an agent's reply and the verdict that must come of them), `scenarios` (files,
//! a script and commands with what they must show), or both. `README.md` beside the files describes the format.
//! What this player does not know (a step's key, an operator, a protocol) is a problem, never skipped.

mod matching;
mod placeholder;
mod scenario;
mod vector;

use std::path::Path;

use serde_json::Value;

pub use matching::mismatch;
use scenario::Player;

/// What came of playing a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Played {
    pub vectors: usize,
    pub scenarios: usize,
    /// One sentence for each thing that does not hold, with the name of its vector or scenario.
    pub problems: Vec<String>,
}

/// Plays all vectors and scenarios of a file. Panics where the file cannot be read.
pub fn play(file: &Path, binary: &Path) -> Played {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let document = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    play_document(&document, binary)
}

/// Plays all vectors and scenarios of a document that was read already.
pub fn play_document(document: &Value, binary: &Path) -> Played {
    let mut played = Played::default();
    let stage = Player::new(binary);
    let vectors = list(document, "vectors");
    played.vectors = vectors.len();
    for group in vector::groups(document, vectors) {
        play_group(document, &group, &stage, &mut played.problems);
    }
    for scenario in list(document, "scenarios") {
        played.scenarios += 1;
        let name = scenario["name"].as_str().unwrap_or("a scenario without a name");
        played.problems.extend(stage.play(scenario).into_iter().map(|problem| format!("{name}: {problem}")));
    }
    if played.vectors + played.scenarios == 0 {
        played.problems.push("there is nothing to play".to_owned());
    }
    played
}

/// Plays vectors that can share one run, and only where that shows a problem, one by one to name what fails.
fn play_group(document: &Value, group: &[&Value], player: &Player, problems: &mut Vec<String>) {
    let together = player.play_vectors(document, group);
    if together.is_empty() {
        return;
    }
    let known = problems.len();
    for vector in group {
        let name = vector["name"].as_str().unwrap_or("a vector without a name");
        let alone = player.play_vectors(document, &[vector]);
        problems.extend(alone.into_iter().map(|problem| format!("{name}: {problem}")));
    }
    if problems.len() == known {
        let count = group.len();
        problems.extend(together.into_iter().map(|problem| format!("{count} vectors, but none alone: {problem}")));
    }
}

fn list<'d>(document: &'d Value, key: &str) -> &'d [Value] {
    document.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
