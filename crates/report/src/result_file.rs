//! The `EvalSuiteResult` files, and those of rubric suites.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use karat_core::case::Tier;
use karat_core::event::RunEvent;
use karat_core::port::{ReportError, Reporter};
use karat_core::result::SuiteResult;
use serde::Serialize;

use crate::atomic::write_atomically;

/// Writes each suite's result as soon as the suite has ended.
pub struct ResultFileReporter {
    folder: PathBuf,
    taken: HashSet<String>,
}

impl ResultFileReporter {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, taken: HashSet::new() }
    }

    /// Two files of one run can be about the same tool and tier.
    fn free_name(&mut self, tool: &str, tier: Tier, run_id: &str) -> String {
        let mut number = 1;
        while !self.taken.insert(file_name(tool, tier, run_id, number)) {
            number += 1;
        }
        file_name(tool, tier, run_id, number)
    }
}

impl Reporter for ResultFileReporter {
    fn on_event(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        match event {
            RunEvent::SuiteFinished { result, .. } => {
                let name = self.free_name(&result.tool_name, result.tier, &result.run_id);
                write_result(&self.folder.join(name), result.as_ref())
            }
            RunEvent::RubricFinished { suite } => match suite.result() {
                Some(result) => {
                    let name = self.free_name(&result.tool_name, result.tier, &result.run_id);
                    write_result(&self.folder.join(name), result.as_ref())
                }
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

fn write_result(path: &Path, result: &impl Serialize) -> Result<(), ReportError> {
    write_atomically(path, |out| {
        serde_json::to_writer_pretty(&mut *out, result)?;
        out.write_all(b"\n")
    })
    .map_err(|source| ReportError { what: path.display().to_string(), source })
}

/// Returns `{toolName}-{tier}-{runId}.json`; later ones of the same name carry a number.
pub fn result_file_name(result: &SuiteResult, number: usize) -> String {
    file_name(&result.tool_name, result.tier, &result.run_id, number)
}

fn file_name(tool: &str, tier: Tier, run_id: &str, number: usize) -> String {
    // A tool's name is free text, a file's name is not: nothing may lead out of the folder.
    let tool: String = tool
        .chars()
        .map(|character| if character.is_ascii_alphanumeric() || "_-.".contains(character) { character } else { '_' })
        .take(120)
        .collect();
    let tool = tool.trim_start_matches('.');
    let suffix = if number == 1 { String::new() } else { format!("-{number}") };
    format!("{tool}-{tier}-{run_id}{suffix}.json")
}
