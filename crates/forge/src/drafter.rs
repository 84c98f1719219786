//! Who drafts cases.

mod catalogue;
mod model;
mod template;
mod traces;

use karat_core::case::Case;
use karat_core::port::Pending;
use karat_core::trace::Usage;

pub use self::model::ModelDrafter;
pub use self::template::TemplateDrafter;
pub use self::traces::{LeftOutTrace, RefusedLine, TraceDrafter, TraceReader, TraceReport};
pub use self::traces::{TraceTurn, personal_data, trace_turns};
use crate::{Brief, Draft, Slot};

/// Fills the slots of a batch.
pub trait Drafter: Send + Sync {
    /// Returns what is recorded with an approval: `template`, `model` or `traces`.
    fn name(&self) -> &'static str;

    /// Returns the model that drafts, if one does.
    fn model(&self) -> Option<String> {
        None
    }

    /// Returns what a model used up so far, where one drafts and it is known.
    fn usage(&self) -> Option<Usage> {
        None
    }

    /// Tells whether it understands what a person asks for in words.
    fn understands_words(&self) -> bool {
        false
    }

    /// Returns a draft for each slot, in the slots' order, each examined by the rules; one that could not be made says
    /// why.
    fn draft<'a>(&'a self, request: Request<'a>) -> Pending<'a, Result<Vec<Draft>, DraftError>>;
}

/// What is asked of a drafter.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub brief: &'a Brief,
    pub slots: &'a [Slot],
    /// All other cases of the tool: those of the files, and those of other batches. None may be repeated.
    pub so_far: &'a [Case],
    /// How often these slots were filled before: what is asked for again should come out differently.
    pub attempt: u32,
    pub revision: Option<Revision<'a>>,
}

/// What a person wants to be different.
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
