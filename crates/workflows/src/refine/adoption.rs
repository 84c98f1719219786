//! Adoption of a candidate as a new version, and writing it to the eval's file.

use karat_core::judgement::EvalOptions;
use karat_evals::agreement::{Candidate, Refinement};
use karat_evals::port::EvalStore;
use karat_evals::version::{AddedVersion, NewVersion, RefinedNote};
use karat_project::replace_file;
use serde::{Deserialize, Serialize};

use super::baseline::Baseline;
use super::candidate_files::{candidates_folder, write_candidate};
use crate::context::Context;
use crate::error::Error;
use crate::functions::{LoadedFunction, find_functions};
use crate::hint::Hint;
use crate::judge_stored::validate_with_options;
use crate::settings::Settings;

/// The decision on the candidates of a refinement. This is the complete, serialisable state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Adoption {
    pub eval_id: String,
    /// The version that the candidates were measured against.
    pub version: u64,
    /// The code of that version.
    pub code: String,
    /// Not empty.
    pub candidates: Vec<AdoptableCode>,
    code_hash: String,
    /// The optional features of the replaced code.
    #[serde(default)]
    options: EvalOptions,
    guest_hash: String,
    model: String,
    step: Step,
}

/// The code of a candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdoptableCode {
    /// From 1.
    pub number: u64,
    pub code: String,
    code_hash: String,
    #[serde(rename = "why")]
    explanation: String,
}

/// The next step of an adoption.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "step")]
pub enum Step {
    /// Adopt a candidate or decline.
    Choose,
    /// The eval's file still has the replaced code: adding it again would undo the adoption.
    WriteFile {
        candidate: u64,
        file: String,
    },
    Done,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "command")]
pub enum Command {
    Adopt { candidate: u64, approver: String },
    Decline,
    WriteFile { write: bool },
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandOutcome {
    Adopted {
        candidate: u64,
        version: u64,
        file: EvalFile,
    },
    Declined,
    /// The eval's file has the adopted code.
    Wrote {
        file: String,
    },
    /// The eval's file is unchanged.
    Kept {
        file: String,
    },
    /// Nothing was done.
    Refused(Refusal),
}

/// The file of an eval that was adopted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EvalFile {
    /// No file of the project defines the eval.
    Missing,
    /// The file has the replaced code; [`Step::WriteFile`] follows.
    Outdated(String),
    /// The file has other code and is not written.
    Changed(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("this command is not available in the current step")]
    UnavailableCommand,
    #[error("no such candidate")]
    UnknownCandidate,
}

impl Adoption {
    pub(super) fn new(refinement: &Refinement, baseline: &Baseline) -> Self {
        let candidate = |candidate: &Candidate| AdoptableCode {
            number: candidate.number,
            code: candidate.code.clone(),
            code_hash: candidate.code_hash.clone(),
            explanation: candidate.explanation.clone(),
        };
        Self {
            eval_id: refinement.eval_id.clone(),
            version: refinement.version,
            code: baseline.version.code.clone(),
            candidates: refinement.candidates.iter().map(candidate).collect(),
            code_hash: baseline.version.code_hash.clone(),
            options: baseline.version.options.clone(),
            guest_hash: baseline.runner.guest_hash().to_owned(),
            model: refinement.model.clone(),
            step: Step::Choose,
        }
    }

    pub fn next(&self) -> &Step {
        &self.step
    }

    pub fn candidate(&self, number: u64) -> Option<&AdoptableCode> {
        self.candidates.iter().find(|candidate| candidate.number == number)
    }

    pub async fn apply(&mut self, command: Command, context: &Context<'_>) -> Result<CommandOutcome, Error> {
        match (&self.step, command) {
            (Step::Choose, Command::Adopt { candidate, approver }) => self.adopt(candidate, &approver, context).await,
            (Step::Choose, Command::Decline) => {
                self.step = Step::Done;
                Ok(CommandOutcome::Declined)
            }
            (Step::WriteFile { candidate, file }, Command::WriteFile { write }) => {
                let applied = match self.candidate(*candidate).filter(|_| write) {
                    Some(candidate) => self.write_file(&candidate.code, &context.settings)?,
                    None => None,
                };
                let applied = applied.unwrap_or_else(|| CommandOutcome::Kept { file: file.clone() });
                self.step = Step::Done;
                Ok(applied)
            }
            _ => Ok(CommandOutcome::Refused(Refusal::UnavailableCommand)),
        }
    }

    async fn adopt(&mut self, number: u64, approver: &str, context: &Context<'_>) -> Result<CommandOutcome, Error> {
        let Some(candidate) = self.candidate(number) else {
            return Ok(CommandOutcome::Refused(Refusal::UnknownCandidate));
        };
        let options = validate_with_options(&candidate.code, &self.options).map(|function| function.options);
        let version = NewVersion {
            eval_id: self.eval_id.clone(),
            code: candidate.code.clone(),
            // The candidate was valid when it was measured.
            options: options.unwrap_or_else(|_| self.options.clone()),
            code_hash: candidate.code_hash.clone(),
            guest_hash: self.guest_hash.clone(),
            note: Some(RefinedNote { model: &self.model, approver, explanation: &candidate.explanation }.to_string()),
            created_at: context.clock.now(),
            // The candidate was measured against this version only.
            after: Some(self.version),
        };
        let added = context.read_store(async |store| Ok(store.add_version(&version).await?)).await?;
        let version = match added {
            AddedVersion::Added(number) | AddedVersion::Unchanged(number) => number,
            AddedVersion::Conflict(newest) => return Err(self.conflict(candidate, newest, &context.settings)?),
        };
        let file = match self.find_file(&context.settings) {
            None => EvalFile::Missing,
            Some(file) if file.function.code_hash == self.code_hash => EvalFile::Outdated(file.display_path),
            Some(file) => EvalFile::Changed(file.display_path),
        };
        self.step = match &file {
            EvalFile::Outdated(file) => Step::WriteFile { candidate: number, file: file.clone() },
            _ => Step::Done,
        };
        Ok(CommandOutcome::Adopted { candidate: number, version, file })
    }

    /// Writes the candidate to a file, so that it is not lost, and returns the conflict error.
    fn conflict(&self, candidate: &AdoptableCode, newest: Option<u64>, settings: &Settings) -> Result<Error, Error> {
        let eval = &self.eval_id;
        let file = write_candidate(candidate.number, &candidate.code, &candidates_folder(eval, settings), settings)?;
        let message = match newest {
            Some(newest) => format!("nothing was adopted: version {newest} of {eval} was added in the meantime"),
            None => format!("nothing was adopted: {eval} is no longer in the store"),
        };
        Ok(Error::conflict(message).hint(Hint::RefineNewest { eval: eval.clone(), file }))
    }

    /// Writes code to the eval's file, unless it was changed in the meantime.
    fn write_file(&self, code: &str, settings: &Settings) -> Result<Option<CommandOutcome>, Error> {
        let outdated = self.find_file(settings).filter(|file| file.function.code_hash == self.code_hash);
        let Some(LoadedFunction { path, display_path, .. }) = outdated else { return Ok(None) };
        replace_file(&path, code).map_err(|error| Error::cannot_write(&display_path, &error))?;
        Ok(Some(CommandOutcome::Wrote { file: display_path }))
    }

    /// Returns the project's file that defines the eval.
    fn find_file(&self, settings: &Settings) -> Option<LoadedFunction> {
        find_functions(settings).ok()?.files.into_iter().find_map(|file| {
            let function = file.function.ok()?;
            (function.name == self.eval_id).then_some(LoadedFunction {
                path: file.path,
                display_path: file.display_path,
                function,
            })
        })
    }
}
