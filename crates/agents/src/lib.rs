//! Who answers a case: HTTP endpoints and scripts.
//!
//! Owns the wire to the agent and the reading of its replies, and must never judge them.

mod headers;
mod http;
mod http_config;
mod reply;
mod scripted;
mod wire;

pub use headers::{MissingVariable, expand_variables};
pub use http::{HttpAgent, fetch};
pub use http_config::{HttpConfig, Method, RequestMap, read_headers};
pub use reply::{ResponseMap, ToolCallMap};
pub use scripted::{Script, ScriptError, ScriptedAgent, ScriptedReply};
pub use wire::ClientError;
