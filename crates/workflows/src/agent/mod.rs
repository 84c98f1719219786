//! Connects agents: shows presets, tries an agent with a message, and finds the preset for a running agent.

pub mod detect;
pub mod presets;
pub mod try_message;
