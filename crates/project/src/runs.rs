//! Lists the runs in the output folder.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use karat_core::answers::ResultHead;

use crate::read::read_file;
use crate::results::{newest_first, result_paths};

/// Number of bytes to read first. Almost always contains everything before the cases.
const HEAD_BYTES: u64 = 16 * 1024;

/// A result file with its head: everything before the cases.
#[derive(Debug, Clone)]
pub struct ResultFile {
    pub path: PathBuf,
    pub head: ResultHead,
}

/// A run: all result files with the same run id.
#[derive(Debug, Clone)]
pub struct Run {
    pub run_id: String,
    /// When the run started, ISO 8601; empty if unknown.
    pub timestamp: String,
    pub results: Vec<ResultFile>,
}

/// Lists the results in a folder, newest first, and counts the files that are not results.
pub fn list_results(folder: &Path) -> (Vec<ResultFile>, usize) {
    let mut unreadable = 0;
    let mut results = Vec::new();
    for path in result_paths(folder) {
        match read_head(&path) {
            Some(head) => results.push(ResultFile { path, head }),
            None => unreadable += 1,
        }
    }
    results.sort_by(|left, right| {
        let by_age =
            newest_first((&left.head.timestamp, &left.head.run_id), (&right.head.timestamp, &right.head.run_id));
        by_age.then_with(|| left.path.cmp(&right.path))
    });
    (results, unreadable)
}

/// Lists the runs in a folder, newest first.
pub fn list_runs(folder: &Path) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut positions: HashMap<String, usize> = HashMap::new();
    for result in list_results(folder).0 {
        let ResultHead { run_id, timestamp, .. } = &result.head;
        let position = *positions.entry(run_id.clone()).or_insert_with(|| {
            runs.push(Run { run_id: run_id.clone(), timestamp: timestamp.clone(), results: Vec::new() });
            runs.len() - 1
        });
        runs[position].results.push(result);
    }
    runs
}

/// Reads the head of a result without parsing its cases, which can be large.
pub fn read_head(path: &Path) -> Option<ResultHead> {
    // Opening a pipe would block.
    if !path.is_file() {
        return None;
    }
    let mut start = Vec::new();
    File::open(path).ok()?.take(HEAD_BYTES).read_to_end(&mut start).ok()?;
    ResultHead::read_start(&start).or_else(|| ResultHead::read(&read_file(path).ok()?))
}
