//! Records and replays answers of agents and models.

use std::path::Path;
use std::sync::Arc;

use karat_agents::{RecordingAgent, RecordingChat, RecordingFolder, RecordingMode};
use karat_core::chat::ChatModel;
use karat_core::port::Agent;
use karat_project::check_writable_folder;

use crate::error::Error;
use crate::settings::{RecordingSetting, Settings};

/// Maximum number of messages of a kind.
const MAX_MESSAGES: usize = 5;

/// The recordings of a run, if enabled.
pub struct Recordings {
    folder: Option<Arc<RecordingFolder>>,
    display_path: String,
}

impl Recordings {
    /// Opens the folder of recordings. Checks that it exists or is writable before any call is made.
    pub fn open(settings: &Settings, current_dir: &Path) -> Result<Self, Error> {
        let RecordingSetting { folder, mode } = &settings.recording;
        let display_path = folder.strip_prefix(current_dir).unwrap_or(folder).display().to_string();
        match mode {
            Some(RecordingMode::Strict) if !folder.is_dir() => {
                return Err(Error::invalid(format!("no recordings: {display_path} is not a folder"))
                    .hint(format!("record answers first: karat run --record {display_path}")));
            }
            None | Some(RecordingMode::Strict) => {}
            Some(RecordingMode::Record | RecordingMode::Auto) => {
                check_writable_folder(folder).map_err(|error| {
                    Error::unusable_folder(&format!("cannot write recordings to {display_path}"), &error)
                })?;
            }
        }
        let open = |mode| RecordingFolder::new(folder.clone(), display_path.clone(), mode, settings.redactor.clone());
        Ok(Self { folder: mode.map(|mode| Arc::new(open(mode))), display_path })
    }

    pub fn wrap(&self, agent: Arc<dyn Agent>) -> Arc<dyn Agent> {
        match &self.folder {
            Some(folder) => Arc::new(RecordingAgent::new(agent, Arc::clone(folder))),
            None => agent,
        }
    }

    pub fn wrap_chat(&self, model: Arc<dyn ChatModel>) -> Arc<dyn ChatModel> {
        match &self.folder {
            Some(folder) => Arc::new(RecordingChat::new(model, Arc::clone(folder))),
            None => model,
        }
    }

    /// Returns the summary of the recordings, if enabled.
    pub fn close(&self) -> Option<RecordingSummary> {
        let folder = self.folder.as_ref()?;
        Some(RecordingSummary {
            warnings: truncate_messages(folder.warnings(), "recordings"),
            failures: truncate_messages(folder.failures(), "answers"),
            summary: self.summary(folder),
        })
    }

    fn summary(&self, folder: &RecordingFolder) -> String {
        let tally = folder.tally();
        let display_path = &self.display_path;
        match folder.mode() {
            RecordingMode::Record => format!("recorded {} in {display_path}", answers(tally.recorded)),
            RecordingMode::Auto if tally.requested > 0 => {
                format!(
                    "replayed {}, requested {} (recorded in {display_path})",
                    answers(tally.replayed),
                    tally.requested
                )
            }
            RecordingMode::Strict if tally.missed > 0 => {
                let missed = tally.missed;
                let replayed = answers(tally.replayed);
                format!(
                    "replayed {replayed}, {missed} missing (to record: karat run --replay=auto --record {display_path})"
                )
            }
            RecordingMode::Auto | RecordingMode::Strict => {
                format!("replayed {} from {display_path}", answers(tally.replayed))
            }
        }
    }
}

/// The summary of recording and replaying.
pub struct RecordingSummary {
    pub warnings: Vec<String>,
    /// Answers that could not be recorded.
    pub failures: Vec<String>,
    pub summary: String,
}

/// Truncates a list of messages: a full disk gives one for every case.
fn truncate_messages(mut messages: Vec<String>, noun: &str) -> Vec<String> {
    let more = messages.len().saturating_sub(MAX_MESSAGES);
    messages.truncate(MAX_MESSAGES);
    messages.extend((more > 0).then(|| format!("and the same for {more} more {noun}")));
    messages
}

fn answers(count: usize) -> String {
    if count == 1 { "1 answer".to_owned() } else { format!("{count} answers") }
}
