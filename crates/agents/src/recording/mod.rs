//! Answers on disk: what was asked before need not be asked again.
//!
//! One file for each key, named by the key's hash, so that a hit is one read. The key is all that determines the
//! answer; what a case asserts is not in it. What a run returns while it records is what a replay will return.

mod agent;
mod answer;
mod chat;
mod difference;
mod file;
mod folder;
mod key;

pub use agent::RecordingAgent;
pub use chat::RecordingChat;
pub use folder::{RecordingFolder, RecordingMode, RecordingTally};
