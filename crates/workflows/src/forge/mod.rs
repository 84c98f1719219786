//! Drafts golden and labeled cases for a tool, for a person to approve.
//!
//! [`load_inputs`] reads the inputs. A [`Conversation`] is a state machine: [`Conversation::next`] returns the next
//! step, [`Conversation::apply`] applies a command, and the session is saved after every change. A terminal, a page or
//! a script can drive it.

mod conversation;
mod description;
mod drafters;
mod inputs;
mod protocol;
mod report;
mod session_file;
mod traces;
mod unattended;
mod verifier;
mod writing;

pub use self::conversation::Conversation;
pub use self::description::{DescriptionWarning, VagueDescription};
pub use self::drafters::{DrafterKind, DrafterRequest, DraftsRequest};
pub use self::inputs::{ForgeInputs, LoadedInputs, Tiers, ToolRequest, load_inputs};
pub use self::protocol::{Command, CommandOutcome, ConversationRequest, Event, Mode, Refusal, Step};
pub use self::report::{
    ForgeReport, RefusedDraft, ReportedBatch, ReportedDraft, ReportedFinding, Summary, WrittenFile,
};
pub use self::session_file::saved_sessions;
pub use self::traces::TraceInput;
pub use self::verifier::EvidenceMap;

/// Number of trigger phrases: required for a tool, and maximum to ask for.
pub const MIN_TRIGGERS: usize = 3;
pub const MAX_TRIGGERS: usize = 5;
