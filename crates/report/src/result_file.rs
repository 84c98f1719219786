//! The `EvalSuiteResult` files.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use karat_core::event::RunEvent;
use karat_core::port::{ReportError, Reporter};
use karat_core::result::SuiteResult;

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
    fn free_name(&mut self, result: &SuiteResult) -> String {
        let mut number = 1;
        while !self.taken.insert(result_file_name(result, number)) {
            number += 1;
        }
        result_file_name(result, number)
    }
}

impl Reporter for ResultFileReporter {
    fn on_event(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        let RunEvent::SuiteFinished { result, .. } = event else {
            return Ok(());
        };
        let name = self.free_name(result);
        let path = self.folder.join(name);
        write_result(&path, result)
    }
}

fn write_result(path: &Path, result: &SuiteResult) -> Result<(), ReportError> {
    write_atomically(path, |out| {
        serde_json::to_writer_pretty(&mut *out, result)?;
        out.write_all(b"\n")
    })
    .map_err(|source| ReportError { what: path.display().to_string(), source })
}

/// Returns `{toolName}-{tier}-{runId}.json`; later ones of the same name carry a number.
pub fn result_file_name(result: &SuiteResult, number: usize) -> String {
    // A tool's name is free text, a file's name is not: nothing may lead out of the folder.
    let tool: String = result
        .tool_name
        .chars()
        .map(|character| if character.is_ascii_alphanumeric() || "_-.".contains(character) { character } else { '_' })
        .take(120)
        .collect();
    let tool = tool.trim_start_matches('.');
    let suffix = if number == 1 { String::new() } else { format!("-{number}") };
    format!("{tool}-{}-{}{suffix}.json", result.tier, result.run_id)
}
