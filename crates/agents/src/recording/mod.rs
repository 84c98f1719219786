//! Records answers on disk and replays them.
//!
//! There is one file per key, named by the key's hash, so that a hit takes one read. The key contains everything that
//! determines the answer, but not the assertions of the case. A recording run returns exactly what a replay returns.

mod agent;
mod answer;
mod chat;
mod difference;
mod file;
mod folder;
mod key;
mod state;

pub use agent::RecordingAgent;
pub use chat::RecordingChat;
pub use folder::{RecordingFolder, RecordingMode, RecordingTally};
