//! What karat knows of an agent's tools.
//!
//! Owns the reading of tool definitions, and must never run anything to get them.

mod json;

pub use json::{RegistryError, read_json};
