//! Drafts golden and labeled cases for a tool, for a person to approve.
//!
//! [`gather`] reads what cases are made of. A [`Conversation`] drafts and decides: [`Conversation::next`] returns the next
//! step, [`Conversation::apply`] does what a person wants, and the session is on disk after every change. A terminal, a
//! page and a script drive the same machine.

mod conversation;
mod description;
mod drafters;
mod material;
mod protocol;
mod report;
mod session_file;
mod traces;
mod unattended;
mod verifier;
mod writing;

pub use self::conversation::Conversation;
pub use self::description::{DescriptionDoubt, VagueDescription};
pub use self::drafters::{DrafterKind, DrafterRequest, DraftsRequest};
pub use self::material::{Gathered, Material, Tiers, ToolRequest, gather};
pub use self::protocol::{Applied, Command, ConversationRequest, Event, Mode, Refusal, Step};
pub use self::report::{
    ForgeReport, RefusedDraft, ReportedBatch, ReportedDraft, ReportedFinding, Summary, WrittenFile,
};
pub use self::session_file::kept_sessions;
pub use self::traces::TraceInput;
pub use self::verifier::Evidences;

/// How many trigger phrases a tool needs, and how many a person is asked for.
pub const MIN_TRIGGERS: usize = 3;
pub const MAX_TRIGGERS: usize = 5;
