//! Agents under test: HTTP endpoints, models, commands and scripts.
//!
//! This crate sends requests and parses replies. It never judges them.

mod budget;
mod budgeted;
mod command;
mod command_chat;
mod headers;
mod http;
mod http_config;
mod model;
mod price;
mod program;
mod recording;
mod reply;
mod retry;
mod rule;
mod scripted;
mod scripted_chat;
mod selector;
mod stream;
mod telemetry;
mod template;

pub use budget::Budget;
pub use budgeted::BudgetedAgent;
pub use command::CommandAgent;
pub use command_chat::CommandChatModel;
pub use headers::{MissingVariable, expand_variables};
pub use http::HttpAgent;
pub use http_config::{HttpConfig, Method, RequestMap};
pub use karat_http::{ClientError, Throttle};
pub use model::{
    AllowedTools, Api, KnownProvider, ModelAgent, ModelAgentError, ModelClient, ModelSettings, Parameters, Provider,
    ProviderConfig, ToolExecution,
};
pub use price::Price;
pub use program::CommandError;
pub use recording::{RecordingAgent, RecordingChat, RecordingFolder, RecordingMode, RecordingTally};
pub use reply::{ResponseMap, ToolCallMap};
pub use rule::Rule;
pub use scripted::{Script, ScriptError, ScriptedAgent, ScriptedReply};
pub use scripted_chat::{ChatScript, ScriptedChatModel};
pub use selector::Selector;
pub use telemetry::ObservedAgent;
