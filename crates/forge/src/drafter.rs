//! Who drafts cases.

mod file;
mod model;
mod template;
mod traces;

use karat_core::case::Case;
use karat_core::port::Pending;
use karat_core::trace::Usage;

pub use self::file::{DraftFile, DraftFileError, FileDrafter};
pub use self::model::ModelDrafter;
pub use self::template::TemplateDrafter;
pub use self::traces::{LeftOutTrace, RefusedLine, TraceDrafter, TraceReader, TraceReport};
pub use self::traces::{TraceTurn, personal_data, proof_of_run, trace_turns};
use crate::{Brief, Draft, Slot};

/// Fills the slots of a batch.
pub trait Drafter: Send + Sync {
    /// Returns what is recorded with an approval: `template`, `model`, `traces` or `file`.
    fn name(&self) -> &'static str;

    /// Returns the model that drafts, if one does.
    fn model(&self) -> Option<String> {
        None
    }

    /// Returns what a model used so far, where one drafts and it is known.
    fn usage(&self) -> Option<Usage> {
        None
    }

    /// Returns whether it can make a case for a slot; one that it cannot fill stays open.
    fn can_fill(&self, _slot: &Slot) -> bool {
        true
    }

    /// Returns whether it can make another case for a slot that it filled before.
    fn can_redraft(&self) -> bool {
        true
    }

    /// Returns whether it understands a wish in words.
    fn understands_words(&self) -> bool {
        false
    }

    /// Returns drafts in the order of the slots, each examined by the rules. A slot without a draft stays open.
    fn draft<'a>(&'a self, request: Request<'a>) -> Pending<'a, Result<Vec<Draft>, DraftError>>;
}

/// What a drafter is asked for.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub brief: &'a Brief,
    pub slots: &'a [Slot],
    /// All other cases of the tool: those of the files, and those of other batches. None may be repeated.
    pub so_far: &'a [Case],
    /// How often these slots were filled before: a new draft should differ.
    pub attempt: u32,
    pub revision: Option<Revision<'a>>,
}

/// What a person wants to change.
#[derive(Clone, Copy)]
pub struct Revision<'a> {
    /// The drafts as they are.
    pub drafts: &'a [Draft],
    pub words: &'a str,
}

/// Why there are no drafts at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DraftError {
    /// A lower-case fragment.
    pub message: String,
}
