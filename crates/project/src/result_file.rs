//! The `EvalSuiteResult` files, and those of rubric suites.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use karat_core::case::Tier;
use karat_core::event::{ReportError, Reporter};
use karat_core::event::{RunEvent, SuiteHeader};
use karat_core::result::SuiteResult;
use karat_core::rubric::RubricResult;
use serde::Serialize;

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
    fn free_name(&mut self, name: &FileName<'_>) -> String {
        let mut number = 1;
        while !self.taken.insert(name.numbered(number)) {
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
                let name = self.free_name(&FileName { tool_name, tier: *tier, agent, run_id });
                write_result(&self.folder.join(name), result.as_ref())
            }
            RunEvent::RubricFinished { suite } => match suite.result() {
                Some(result) => {
                    let RubricResult { tool_name, tier, run_id, .. } = result.as_ref();
                    let name = FileName { tool_name, tier: *tier, agent: suite.agent.as_deref(), run_id };
                    let name = self.free_name(&name);
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
        serde_json::to_writer_pretty(&mut *out, result)?;
        out.write_all(b"\n")
    })
    .map_err(|source| ReportError { what: path.display().to_string(), source })
}

/// What a result's file is called after.
struct FileName<'n> {
    tool_name: &'n str,
    tier: Tier,
    /// Where a run asks several.
    agent: Option<&'n str>,
    run_id: &'n str,
}

impl FileName<'_> {
    /// Returns `{toolName}-{tier}-{runId}.json`, with the agent before the run where a run asks several; later ones of
    /// the same name carry a number.
    fn numbered(&self, number: usize) -> String {
        // A tool's name is free text, a file's name is not: nothing may lead out of the folder.
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
