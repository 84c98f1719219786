//! What a conversation is asked for and what it answers.

use karat_forge::session::Which;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::MIN_TRIGGERS;
use super::drafters::DraftsRequest;
use super::report::WrittenFile;
use crate::error::Error;

pub struct ConversationRequest {
    pub drafts: DraftsRequest,
    /// Run each draft against the agent before it is decided.
    pub verify: bool,
    pub mode: Mode,
    /// Go on although the description does not say when to use the tool.
    pub accept_description: bool,
    /// The name that is recorded with an approval; a person is asked for it where it is not known.
    pub approver: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Nothing is written, not even a session.
    DryRun,
    /// No person is asked.
    Unattended { resume: bool, restart: bool },
    /// A person decides. A session that was left is resumed.
    Attended { resume: bool, restart: bool },
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "step")]
pub enum Step {
    /// The description does not say when to use the tool: proceed, or leave.
    ConfirmDescription,
    /// This changed since the drafts of the kept session were made: proceed, or leave.
    ConfirmChanges {
        changes: Vec<String>,
    },
    /// The overlap map says nothing of the tool, which may be taken for this one.
    DeclareOverlap {
        tool: String,
        reason: String,
    },
    /// There are too few trigger phrases.
    AddTriggers,
    NameApprover,
    ApprovePlan,
    /// Slots of the batch have no drafts.
    Draft,
    /// Drafts of the batch were not run yet.
    Verify,
    /// The batch is to be decided.
    Decide,
    /// Approved cases are to be written.
    Write,
    Done,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "command")]
pub enum Command {
    /// Go on with the description, or with drafts whose basis changed.
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
        which: Which,
    },
    Drop {
        numbers: Vec<usize>,
    },
    /// Draft again, as these words say if there are any.
    Redraft {
        which: Which,
        words: Option<String>,
    },
    /// Put a case in the place of a draft.
    Replace {
        number: usize,
        case: Value,
    },
    /// Write all approved cases now.
    Write,
    Next,
    Back,
}

/// What a command did.
#[derive(Debug)]
pub enum Applied {
    Done,
    /// These cannot be approved.
    Approved {
        refused: Vec<usize>,
    },
    /// The drafts of these ids are new.
    Changed {
        ids: Vec<String>,
    },
    Wrote {
        files: Vec<WrittenFile>,
    },
    /// The drafter failed; the drafts are as they were.
    NotDrafted(Error),
    /// Nothing was done.
    Refused(Refusal),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{0}")]
    Command(#[from] karat_forge::session::Refusal),
    #[error("it is not the time for this command")]
    OutOfTurn,
    #[error("there is no other draft")]
    NoOtherDraft,
    #[error("only a model understands words")]
    WordsNotUnderstood,
    #[error("at least {MIN_TRIGGERS} are needed")]
    TooFewTriggers,
    #[error("that one is there already")]
    KnownTrigger,
    #[error("the name is empty")]
    EmptyName,
}

/// Work that takes its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Drafting { model: String },
    Verifying { agent: String, drafts: usize },
}
