//! Models that are driven directly, with the registry's tools: one turn to see how they route, or a loop in which
//! stubs or real tools answer.
//!
//! `provider` says who is asked, `openai` and `anthropic` speak the two wire formats, `client` makes the calls,
//! `agent` leads the conversation, `chat` asks once for an answer of a given shape.

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
