//! Connects agents: shows presets, sends test messages, and detects the preset for a running agent.

pub mod detect;
pub mod presets;
pub mod try_message;
