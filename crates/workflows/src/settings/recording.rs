//! Whether answers are recorded and replayed.

use std::path::PathBuf;

use karat_agents::RecordingMode;
use karat_project::PathSetting;
use schemars::JsonSchema;
use serde::Serialize;

/// Whether recorded answers are replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Replay {
    /// As `auto`, but in CI as `strict`.
    On,
    /// Where there are any; what is missing is asked and recorded.
    Auto,
    /// Nobody is asked; what is missing is an error.
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

/// Where recordings are, and what they are for in this run.
#[derive(Debug)]
pub struct RecordingSetting {
    /// Also where nothing is recorded: there are no eval files in it.
    pub folder: PathBuf,
    pub mode: Option<RecordingMode>,
}

impl RecordingSetting {
    /// Decides what `record` and `replay` mean together.
    pub fn new(record: PathSetting, replay: Option<Replay>, ci: bool) -> Self {
        let mode = match replay {
            Some(Replay::On) if ci => Some(RecordingMode::Strict),
            Some(Replay::On | Replay::Auto) => Some(RecordingMode::Auto),
            Some(Replay::Strict) => Some(RecordingMode::Strict),
            Some(Replay::Off) | None => record.given.then_some(RecordingMode::Record),
        };
        Self { folder: record.path, mode }
    }

    pub fn asks_nobody(&self) -> bool {
        self.mode == Some(RecordingMode::Strict)
    }
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
