//! What use cases work with, opened from the settings: agents, models, tools, store, sandbox, clock and ids.

pub mod agents;
pub mod chat_models;
pub mod clock;
pub mod models;
pub mod recordings;
pub mod sandbox;
pub mod snapshot;
pub mod store;
pub mod tools;
