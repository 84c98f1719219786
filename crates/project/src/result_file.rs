//! Writes `EvalSuiteResult` files and the results of rubric suites.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use karat_cases::Tier;
use karat_core::event::{ReportError, Reporter};
use karat_core::event::{RunEvent, SuiteHeader};
use karat_core::result::SuiteResult;
use karat_core::rubric::RubricResult;
use karat_json::write_pretty;
use serde::Serialize;

use crate::atomic::write_atomically;

/// Writes each suite's result when the suite finishes.
pub struct ResultFileReporter {
    folder: PathBuf,
    suites: Vec<Arc<SuiteHeader>>,
    used_names: HashSet<String>,
}

impl ResultFileReporter {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, suites: Vec::new(), used_names: HashSet::new() }
    }

    /// Returns an unused file name: two eval files of a run can have the same tool and tier.
    fn unused_name(&mut self, name: &FileName<'_>) -> String {
        let mut number = 1;
        while !self.used_names.insert(name.numbered(number)) {
            number += 1;
        }
        name.numbered(number)
    }
}

impl Reporter for ResultFileReporter {
    fn on_event(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        match event {
            RunEvent::RunStarted { suites, .. } => {
                self.suites.clone_from(suites);
                Ok(())
            }
            RunEvent::SuiteFinished { suite, result } => {
                let header = self.suites.get(*suite).cloned();
                let agent = header.as_ref().and_then(|header| header.agent.as_deref());
                let SuiteResult { tool_name, tier, run_id, .. } = result.as_ref();
                let name = self.unused_name(&FileName { tool_name, tier: *tier, agent, run_id });
                write_result(&self.folder.join(name), result.as_ref())
            }
            RunEvent::RubricFinished { suite } => match suite.result() {
                Some(result) => {
                    let RubricResult { tool_name, tier, run_id, .. } = result.as_ref();
                    let name = FileName { tool_name, tier: *tier, agent: suite.agent.as_deref(), run_id };
                    let name = self.unused_name(&name);
                    write_result(&self.folder.join(name), result.as_ref())
                }
                None => Ok(()),
            },
            RunEvent::CaseFinished { .. } | RunEvent::RunFinished { .. } => Ok(()),
        }
    }
}

fn write_result(path: &Path, result: &impl Serialize) -> Result<(), ReportError> {
    write_atomically(path, |out| {
        write_pretty(&mut *out, result)?;
        out.write_all(b"\n")
    })
    .map_err(|source| ReportError { target: path.display().to_string(), source })
}

/// The parts of a result file's name.
struct FileName<'n> {
    tool_name: &'n str,
    tier: Tier,
    /// Set when a run has several agents.
    agent: Option<&'n str>,
    run_id: &'n str,
}

impl FileName<'_> {
    /// Returns `{toolName}-{tier}-[{agent}-]{runId}[-{number}].json`; the number is omitted for the first file.
    fn numbered(&self, number: usize) -> String {
        // A tool name is free text: it must not escape the folder.
        let tool: String = self
            .tool_name
            .chars()
            .map(
                |character| {
                    if character.is_ascii_alphanumeric() || "_-.".contains(character) { character } else { '_' }
                },
            )
            .take(120)
            .collect();
        let tool = tool.trim_start_matches('.');
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        let agent = self.agent.map(|agent| format!("{}-", slug(agent))).unwrap_or_default();
        format!("{tool}-{}-{agent}{}{suffix}.json", self.tier, self.run_id)
    }
}

/// Returns an agent's name in characters that are valid in file names on every platform.
fn slug(agent: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "_.".contains(character);
    let words: Vec<&str> = agent.split(|character| !is_plain(character)).filter(|word| !word.is_empty()).collect();
    let slug: String = words.join("-").chars().take(60).collect();
    let slug = slug.trim_matches(['-', '.']);
    if slug.is_empty() { "agent".to_owned() } else { slug.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_valid_file_names() {
        assert_eq!(slug("scripted:a.json"), "scripted-a.json");
        assert_eq!(slug("https://host:3000/chat?key=***"), "https-host-3000-chat-key");
        assert_eq!(slug("command:../../x 'é'"), "command-..-..-x");
        assert_eq!(slug("../"), "agent");
        assert_eq!(slug(&"x".repeat(500)).len(), 60);
    }
}
