//! Drafters: templates, models, files and traces.

mod file;
mod model;
mod template;
mod traces;

use karat_cases::Case;
use karat_core::port::BoxFuture;
use karat_core::trace::Usage;

pub use self::file::{DraftFile, DraftFileError, FileDrafter};
pub use self::model::ModelDrafter;
pub use self::template::TemplateDrafter;
pub use self::traces::{InvalidLine, RejectedTrace, TraceDrafter, TraceReader, TraceReport};
pub use self::traces::{TraceTurn, find_personal_data, leak_markers, proof_values, trace_turns};
use crate::{Brief, Draft, Slot};

/// Fills the slots of a batch.
pub trait Drafter: Send + Sync {
    /// Returns the name recorded with an approval: `template`, `model`, `traces` or `file`.
    fn name(&self) -> &'static str;

    /// Returns the model that drafts, if any.
    fn model(&self) -> Option<String> {
        None
    }

    /// Returns what the model used so far, if known.
    fn usage(&self) -> Option<Usage> {
        None
    }

    /// Whether the drafter can fill a slot. Slots that it cannot fill stay open.
    fn can_fill(&self, _slot: &Slot) -> bool {
        true
    }

    /// Whether the drafter can draft another case for a slot that it filled before.
    fn can_redraft(&self) -> bool {
        true
    }

    /// Whether the drafter can revise drafts from instructions in prose.
    fn accepts_instructions(&self) -> bool {
        false
    }

    /// Returns checked drafts in the order of the slots. A slot without a draft stays open.
    fn draft<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Vec<Draft>, DraftError>>;
}

/// A request for drafts.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub brief: &'a Brief,
    pub slots: &'a [Slot],
    /// All other cases of the tool, from files and other batches, which drafts must not repeat.
    pub other_cases: &'a [Case],
    /// How often these slots were filled before; a new draft should differ.
    pub attempt: u32,
    pub revision: Option<Revision<'a>>,
}

/// A change that a person asks for.
#[derive(Clone, Copy)]
pub struct Revision<'a> {
    /// The current drafts.
    pub drafts: &'a [Draft],
    pub instructions: &'a str,
}

/// The reason why no drafts could be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DraftError {
    /// A lower-case fragment.
    pub message: String,
}
