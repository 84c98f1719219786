//! Reads messages in the shapes that model APIs and agent frameworks write, and splits conversations into steps.
//!
//! The crate is pure: it builds trace documents (`karat_core::document`) and does not know where messages come from.
//! Parsing is lenient: a message is recognised by its fields. Calls without a tool name are reported, not dropped.

mod call;
mod conversation;
pub mod lenient;
mod message;
mod messages;
mod part;
mod reply;

pub use call::parse_arguments;
pub use conversation::{Conversation, ConversationSteps};
pub use messages::{
    ParsedMessages, collect_text, first_choice, parse_result, plain_message, read, read_literal, read_or_text,
};
pub use reply::{Approval, LateResult, Reply, ReplyCall, ReplyError, ReplyStep, read_reply};
