//! Requests, commands, steps and events of a conversation.

use karat_forge::session::CaseSelection;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::MIN_TRIGGERS;
use super::drafters::DraftsRequest;
use super::report::WrittenFile;
use crate::error::Error;

pub struct ConversationRequest {
    pub drafts: DraftsRequest,
    /// Run each draft against the agent before deciding on it.
    pub verify: bool,
    pub mode: Mode,
    /// Continue even if the description does not say when to use the tool.
    pub accept_description: bool,
    /// The approver to record; `None` asks for the name.
    pub approver: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Writes no files, not even a session.
    DryRun,
    /// Runs without prompts.
    Unattended { resume: bool, restart: bool },
    /// Prompts for each decision. Resumes a saved session.
    Attended { resume: bool, restart: bool },
}

/// The next step of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "step")]
pub enum Step {
    /// The description does not say when to use the tool: proceed or quit.
    ConfirmDescription,
    /// The basis of the saved session's drafts changed: proceed or quit.
    ConfirmChanges {
        changes: Vec<String>,
    },
    /// `tool` may overlap the tool of the session but is not in the overlap map.
    DeclareOverlap {
        tool: String,
        reason: String,
    },
    /// More trigger phrases are required.
    AddTriggers,
    NameApprover,
    ApprovePlan,
    /// The batch has slots without drafts.
    Draft,
    /// The batch has drafts that were not run yet.
    Verify,
    /// The batch awaits a decision.
    Decide,
    /// There are approved cases to write.
    Write,
    Done,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "command")]
pub enum Command {
    /// Continue despite the description, or with drafts whose basis changed.
    Proceed,
    DeclareOverlap {
        declare: bool,
    },
    AddTrigger {
        phrase: String,
    },
    EndTriggers,
    NameApprover {
        name: String,
    },
    ApprovePlan,
    Draft,
    Verify,
    Approve {
        #[serde(rename = "which")]
        selection: CaseSelection,
    },
    Drop {
        numbers: Vec<usize>,
    },
    /// Draft again, with optional instructions.
    Redraft {
        #[serde(rename = "which")]
        selection: CaseSelection,
        #[serde(rename = "words")]
        instructions: Option<String>,
    },
    /// Replace a draft with a case.
    Replace {
        number: usize,
        case: Value,
    },
    /// Write all approved cases.
    Write,
    Next,
    Back,
}

/// The result of a command.
#[derive(Debug)]
pub enum CommandOutcome {
    Done,
    /// The numbers of the drafts that were approved, and of those that cannot be.
    Approved {
        approved: Vec<usize>,
        refused: Vec<usize>,
    },
    /// The drafts with these ids are new.
    Changed {
        ids: Vec<String>,
    },
    Wrote {
        files: Vec<WrittenFile>,
        /// The tools that were added to the overlap map as overlaps of the tool.
        overlaps_added: Vec<String>,
    },
    /// The drafter failed; the drafts are unchanged.
    DraftingFailed(Error),
    /// The command was rejected and had no effect.
    Refused(Refusal),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{0}")]
    Command(#[from] karat_forge::session::InvalidAction),
    #[error("this command is not available in the current step")]
    UnavailableCommand,
    #[error("no other draft")]
    NoOtherDraft,
    #[error("only a model can follow instructions")]
    InstructionsNotSupported,
    #[error("at least {MIN_TRIGGERS} trigger phrases are required")]
    TooFewTriggers,
    #[error("duplicate trigger phrase")]
    DuplicateTrigger,
    #[error("the name is empty")]
    EmptyName,
}

/// The start of a long-running operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Drafting { model: String },
    Verifying { agent: String, drafts: usize },
}
