//! The `EvalSuiteResult` files.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use karat_core::event::{RunEvent, SuiteHeader};
use karat_core::port::{ReportError, Reporter};
use karat_core::result::SuiteResult;

use crate::atomic::write_atomically;

/// Writes each suite's result as soon as the suite has ended.
pub struct ResultFileReporter {
    folder: PathBuf,
    suites: Vec<Arc<SuiteHeader>>,
    taken: HashSet<String>,
}

impl ResultFileReporter {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, suites: Vec::new(), taken: HashSet::new() }
    }

    /// Two files of one run can be about the same tool and tier.
    fn free_name(&mut self, suite: usize, result: &SuiteResult) -> String {
        let agent = self.suites.get(suite).and_then(|suite| suite.agent.as_deref());
        let mut number = 1;
        while !self.taken.insert(result_file_name(result, agent, number)) {
            number += 1;
        }
        result_file_name(result, agent, number)
    }
}

impl Reporter for ResultFileReporter {
    fn on_event(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        if let RunEvent::RunStarted { suites, .. } = event {
            self.suites.clone_from(suites);
        }
        let RunEvent::SuiteFinished { suite, result } = event else {
            return Ok(());
        };
        let name = self.free_name(*suite, result);
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

/// Returns `{toolName}-{tier}-{runId}.json`, with the agent before the run where a run asks several; later ones of the
/// same name carry a number.
pub fn result_file_name(result: &SuiteResult, agent: Option<&str>, number: usize) -> String {
    // A tool's name is free text, a file's name is not: nothing may lead out of the folder.
    let tool: String = result
        .tool_name
        .chars()
        .map(|character| if character.is_ascii_alphanumeric() || "_-.".contains(character) { character } else { '_' })
        .take(120)
        .collect();
    let tool = tool.trim_start_matches('.');
    let suffix = if number == 1 { String::new() } else { format!("-{number}") };
    let agent = agent.map(|agent| format!("{}-", slug(agent))).unwrap_or_default();
    format!("{tool}-{}-{agent}{}{suffix}.json", result.tier, result.run_id)
}

/// Returns an agent's name in letters that stand in a file's name everywhere.
fn slug(agent: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "_.".contains(character);
    let words: Vec<&str> = agent.split(|character| !is_plain(character)).filter(|word| !word.is_empty()).collect();
    let short: String = words.join("-").chars().take(60).collect();
    let short = short.trim_matches(['-', '.']);
    if short.is_empty() { "agent".to_owned() } else { short.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agents_name_stands_in_a_files_name() {
        assert_eq!(slug("scripted:a.json"), "scripted-a.json");
        assert_eq!(slug("https://host:3000/chat?key=***"), "https-host-3000-chat-key");
        assert_eq!(slug("command:../../x 'é'"), "command-..-..-x");
        assert_eq!(slug("../"), "agent");
        assert_eq!(slug(&"x".repeat(500)).len(), 60);
    }
}
