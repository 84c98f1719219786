//! Settings of recordings.

use std::path::PathBuf;

use karat_agents::RecordingMode;
use karat_project::PathSetting;
use schemars::JsonSchema;
use serde::Serialize;

/// Whether to replay recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Replay {
    /// `strict` in CI, else `auto`.
    On,
    /// Replay existing recordings; call and record what is missing.
    Auto,
    /// Make no calls; a missing recording is an error.
    Strict,
    Off,
}

impl Replay {
    pub const ALL: [Replay; 4] = [Replay::On, Replay::Auto, Replay::Strict, Replay::Off];

    pub fn name(self) -> &'static str {
        match self {
            Replay::On => "on",
            Replay::Auto => "auto",
            Replay::Strict => "strict",
            Replay::Off => "off",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|replay| replay.name() == name)
    }
}

/// The folder of recordings and the mode of this run.
#[derive(Debug)]
pub struct RecordingSetting {
    /// Set even if nothing is recorded, since the folder is excluded when eval files are discovered.
    pub folder: PathBuf,
    pub mode: Option<RecordingMode>,
}

impl RecordingSetting {
    /// Determines the mode from `record` and `replay`.
    pub fn new(record: PathSetting, replay: Option<Replay>, ci: bool) -> Self {
        let mode = match replay {
            Some(Replay::On) if ci => Some(RecordingMode::Strict),
            Some(Replay::On | Replay::Auto) => Some(RecordingMode::Auto),
            Some(Replay::Strict) => Some(RecordingMode::Strict),
            Some(Replay::Off) | None => record.is_explicit.then_some(RecordingMode::Record),
        };
        Self { folder: record.path, mode }
    }

    /// Whether every answer comes from the agent, so that nothing is replayed.
    pub fn calls_all(&self) -> bool {
        matches!(self.mode, None | Some(RecordingMode::Record))
    }

    /// Whether no calls are made.
    pub fn is_offline(&self) -> bool {
        self.mode == Some(RecordingMode::Strict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn determines_the_mode_from_record_and_replay() {
        let mode = |is_explicit, replay, ci| {
            let record = PathSetting { path: PathBuf::from("r"), is_explicit };
            RecordingSetting::new(record, replay, ci).mode
        };
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
