//! Answers that are recorded and replayed: what was asked for, and what came of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use karat_agents::{RecordingAgent, RecordingChat, RecordingFolder, RecordingMode};
use karat_core::chat::ChatModel;
use karat_core::exit::ExitStatus;
use karat_core::port::Agent;
use schemars::JsonSchema;
use serde::Serialize;

use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::{PathSetting, Settings};

/// How many messages of one kind are shown.
const MOST_MESSAGES: usize = 5;

/// Whether recorded answers are replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Replay {
    /// As `auto`, but in CI as `strict`.
    On,
    /// Where there are any; what is missing is asked and recorded.
    Auto,
    /// Nobody is asked; what is missing is an error.
    Strict,
    Off,
}

impl Replay {
    pub(crate) const ALL: [Replay; 4] = [Replay::On, Replay::Auto, Replay::Strict, Replay::Off];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Replay::On => "on",
            Replay::Auto => "auto",
            Replay::Strict => "strict",
            Replay::Off => "off",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|replay| replay.name() == name)
    }
}

/// Where recordings are, and what they are for in this run.
#[derive(Debug)]
pub(crate) struct RecordingSetting {
    /// Also where nothing is recorded: there are no eval files in it.
    pub(crate) folder: PathBuf,
    pub(crate) mode: Option<RecordingMode>,
}

impl RecordingSetting {
    /// Decides what `record` and `replay` mean together.
    pub(crate) fn new(record: PathSetting, replay: Option<Replay>, ci: bool) -> Self {
        let mode = match replay {
            Some(Replay::On) if ci => Some(RecordingMode::Strict),
            Some(Replay::On | Replay::Auto) => Some(RecordingMode::Auto),
            Some(Replay::Strict) => Some(RecordingMode::Strict),
            Some(Replay::Off) | None => record.given.then_some(RecordingMode::Record),
        };
        Self { folder: record.path, mode }
    }

    pub(crate) fn asks_nobody(&self) -> bool {
        self.mode == Some(RecordingMode::Strict)
    }
}

/// The recordings of a run, where there are any.
pub(crate) struct Recordings {
    folder: Option<Arc<RecordingFolder>>,
    shown: String,
}

impl Recordings {
    /// Finds out before anything is sent whether the folder is there, or can be written.
    pub(crate) fn open(settings: &Settings, here: &Path) -> Result<Self, Failure> {
        let RecordingSetting { folder, mode } = &settings.recording;
        let shown = folder.strip_prefix(here).unwrap_or(folder).display().to_string();
        match mode {
            Some(RecordingMode::Strict) if !folder.is_dir() => {
                return Err(Failure::invalid(format!("there are no recordings: {shown} is no folder"))
                    .hint(format!("record the answers first: karat run --record {shown}")));
            }
            None | Some(RecordingMode::Strict) => {}
            Some(RecordingMode::Record | RecordingMode::Auto) => {
                let tried = std::fs::create_dir_all(folder)
                    .and_then(|()| tempfile::Builder::new().prefix(".karat-").tempfile_in(folder).map(drop));
                tried.map_err(|error| Failure::invalid(format!("cannot write recordings to {shown}: {error}")))?;
            }
        }
        let open = |mode| RecordingFolder::new(folder.clone(), shown.clone(), mode, settings.redactor.clone());
        Ok(Self { folder: mode.map(|mode| Arc::new(open(mode))), shown })
    }

    pub(crate) fn wrap(&self, agent: Arc<dyn Agent>) -> Arc<dyn Agent> {
        match &self.folder {
            Some(folder) => Arc::new(RecordingAgent::new(agent, Arc::clone(folder))),
            None => agent,
        }
    }

    pub(crate) fn wrap_judge(&self, judge: Arc<dyn ChatModel>) -> Arc<dyn ChatModel> {
        match &self.folder {
            Some(folder) => Arc::new(RecordingChat::new(judge, Arc::clone(folder))),
            None => judge,
        }
    }

    /// Tells what the recordings were good for; an answer that could not be recorded is a lost result.
    pub(crate) fn close(&self, status: ExitStatus, printer: &Printer) -> ExitStatus {
        let Some(folder) = &self.folder else {
            return status;
        };
        let failures = folder.failures();
        for warning in first(folder.warnings(), "recordings") {
            printer.warn(&warning);
        }
        for failure in first(failures.clone(), "answers") {
            printer.failure(&Failure::errored(failure));
        }
        printer.note(&self.summary(folder));
        if failures.is_empty() || status == ExitStatus::Interrupted { status } else { ExitStatus::Errored }
    }

    fn summary(&self, folder: &RecordingFolder) -> String {
        let tally = folder.tally();
        let shown = &self.shown;
        match folder.mode() {
            RecordingMode::Record => format!("recorded {} in {shown}", answers(tally.recorded)),
            RecordingMode::Auto if tally.asked > 0 => {
                format!("replayed {}, asked {} anew (recorded in {shown})", answers(tally.replayed), tally.asked)
            }
            RecordingMode::Strict if tally.missed > 0 => {
                let missed = tally.missed;
                let of = answers(tally.replayed);
                format!("replayed {of}, {missed} not recorded (to record: karat run --replay=auto --record {shown})")
            }
            RecordingMode::Auto | RecordingMode::Strict => {
                format!("replayed {} from {shown}", answers(tally.replayed))
            }
        }
    }
}

/// Returns the first few: on a full disk there is one for every case.
fn first(mut messages: Vec<String>, things: &str) -> Vec<String> {
    let more = messages.len().saturating_sub(MOST_MESSAGES);
    messages.truncate(MOST_MESSAGES);
    messages.extend((more > 0).then(|| format!("the same goes for {more} more {things}")));
    messages
}

fn answers(count: usize) -> String {
    if count == 1 { "1 answer".to_owned() } else { format!("{count} answers") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_record_and_replay_mean_together() {
        let mode =
            |given, replay, ci| RecordingSetting::new(PathSetting { path: PathBuf::from("r"), given }, replay, ci).mode;
        assert_eq!(mode(false, None, true), None);
        assert_eq!(mode(true, None, true), Some(RecordingMode::Record));
        assert_eq!(mode(true, Some(Replay::Off), false), Some(RecordingMode::Record));
        assert_eq!(mode(false, Some(Replay::Off), false), None);
        assert_eq!(mode(false, Some(Replay::On), false), Some(RecordingMode::Auto));
        assert_eq!(mode(true, Some(Replay::On), true), Some(RecordingMode::Strict));
        assert_eq!(mode(true, Some(Replay::Auto), true), Some(RecordingMode::Auto));
        assert_eq!(mode(false, Some(Replay::Strict), false), Some(RecordingMode::Strict));
    }
}
