//! Agents under test: HTTP endpoints, models, programs, functions and scripts.
//!
//! This crate sends requests and parses replies. It never judges them.

mod budget;
mod budgeted;
mod command;
mod command_chat;
mod detect;
mod exchange;
mod function;
mod headers;
mod history;
mod http;
mod http_config;
mod http_conversation;
mod http_reply;
mod json_template;
mod model;
mod placeholder;
mod preset;
mod price;
mod process_pool;
mod program;
mod recording;
mod reply;
mod reply_error;
mod request_map;
mod request_template;
mod response_map;
mod retry;
mod rule;
mod scripted;
mod scripted_chat;
mod selector;
mod source_files;
mod stream;
mod telemetry;
mod telemetry_config;
mod template;

pub use budget::Budget;
pub use budgeted::BudgetedAgent;
pub use command::CommandAgent;
pub use command_chat::CommandChatModel;
pub use detect::{DetectedAgent, DetectionAttempt, Evidence, detect_by_replies, discover, recognise};
pub use exchange::{Exchange, ExchangeObserver, ExchangeReply, Purpose};
pub use function::{FunctionAgent, FunctionError, Language};
pub use headers::{MissingVariable, expand_variables};
pub use http::{HttpAgent, HttpAgentError};
pub use http_config::{Decision, ExtraRequest, HttpConfig, Method, PollConfig, ResumeConfig, SessionConfig};
pub use karat_http::{ClientError, Throttle};
pub use model::{
    AllowedTools, Api, KnownProvider, ModelAgent, ModelAgentError, ModelClient, ModelSettings, Parameters, Provider,
    ProviderConfig, ToolExecution,
};
pub use preset::{Discovery, Preset, PresetEndpoint, PresetError, Reads, Reported};
pub use price::Price;
pub use program::CommandError;
pub use recording::{RecordingAgent, RecordingChat, RecordingFolder, RecordingMode, RecordingTally};
pub use request_map::{MessageForm, RequestMap};
pub use response_map::{ApprovalMap, Format, ResponseMap, SelectorOrDefault, ToolCallMap};
pub use rule::Rule;
pub use scripted::{Script, ScriptError, ScriptedAgent, ScriptedReply};
pub use scripted_chat::{ChatScript, ScriptedChatModel};
pub use selector::Selector;
pub use source_files::source_files;
pub use telemetry::TelemetryAgent;
pub use telemetry_config::TelemetryConfig;
