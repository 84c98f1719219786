//! Models called directly with the tools of the registry: one turn to check routing, or a loop in which stubs or real
//! tools answer.
//!
//! `provider` describes the endpoints, `openai` and `anthropic` implement the two wire formats, `client` makes the
//! calls, `agent` runs the conversation, and `chat` requests a single answer that fits a schema.

mod agent;
mod anthropic;
mod chat;
mod client;
mod openai;
mod provider;
mod turn;

pub use agent::{AllowedTools, ModelAgent, ModelAgentError, ToolExecution};
pub use client::{ModelClient, ModelSettings, Parameters};
pub use provider::{Api, KnownProvider, Provider, ProviderConfig};
