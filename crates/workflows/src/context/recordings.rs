//! Answers that are recorded and replayed: what was asked for, and what came of it.

use std::path::Path;
use std::sync::Arc;

use karat_agents::{RecordingAgent, RecordingChat, RecordingFolder, RecordingMode};
use karat_core::chat::ChatModel;
use karat_core::port::Agent;

use crate::error::Error;
use crate::settings::{RecordingSetting, Settings};

/// How many messages of one kind are shown.
const MAX_MESSAGES: usize = 5;

/// The recordings of a run, where there are any.
pub struct Recordings {
    folder: Option<Arc<RecordingFolder>>,
    shown: String,
}

impl Recordings {
    /// Finds out before anything is sent whether the folder is there, or can be written.
    pub fn open(settings: &Settings, here: &Path) -> Result<Self, Error> {
        let RecordingSetting { folder, mode } = &settings.recording;
        let shown = folder.strip_prefix(here).unwrap_or(folder).display().to_string();
        match mode {
            Some(RecordingMode::Strict) if !folder.is_dir() => {
                return Err(Error::invalid(format!("there are no recordings: {shown} is no folder"))
                    .hint(format!("record the answers first: karat run --record {shown}")));
            }
            None | Some(RecordingMode::Strict) => {}
            Some(RecordingMode::Record | RecordingMode::Auto) => {
                let tried = std::fs::create_dir_all(folder)
                    .and_then(|()| tempfile::Builder::new().prefix(".karat-").tempfile_in(folder).map(drop));
                tried.map_err(|error| Error::invalid(format!("cannot write recordings to {shown}: {error}")))?;
            }
        }
        let open = |mode| RecordingFolder::new(folder.clone(), shown.clone(), mode, settings.redactor.clone());
        Ok(Self { folder: mode.map(|mode| Arc::new(open(mode))), shown })
    }

    pub fn wrap(&self, agent: Arc<dyn Agent>) -> Arc<dyn Agent> {
        match &self.folder {
            Some(folder) => Arc::new(RecordingAgent::new(agent, Arc::clone(folder))),
            None => agent,
        }
    }

    pub fn wrap_judge(&self, judge: Arc<dyn ChatModel>) -> Arc<dyn ChatModel> {
        match &self.folder {
            Some(folder) => Arc::new(RecordingChat::new(judge, Arc::clone(folder))),
            None => judge,
        }
    }

    /// Returns what came of the recordings, where there are any.
    pub fn close(&self) -> Option<RecordingSummary> {
        let folder = self.folder.as_ref()?;
        Some(RecordingSummary {
            warnings: first(folder.warnings(), "recordings"),
            failures: first(folder.failures(), "answers"),
            summary: self.summary(folder),
        })
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

/// What came of recording and replaying.
pub struct RecordingSummary {
    pub warnings: Vec<String>,
    /// Answers that could not be recorded, which are lost results.
    pub failures: Vec<String>,
    pub summary: String,
}

/// Returns the first few: on a full disk there is one for every case.
fn first(mut messages: Vec<String>, things: &str) -> Vec<String> {
    let more = messages.len().saturating_sub(MAX_MESSAGES);
    messages.truncate(MAX_MESSAGES);
    messages.extend((more > 0).then(|| format!("the same goes for {more} more {things}")));
    messages
}

fn answers(count: usize) -> String {
    if count == 1 { "1 answer".to_owned() } else { format!("{count} answers") }
}
