//! The rewriting of an eval function by a model.
//!
//! The model sees the code and traces of the training part only. What it writes is checked by the caller, who owns the
//! sandbox; what does not hold goes back to it once, with the reasons. Nothing here decides what is adopted.

mod answer;
mod instructions;
mod prompt;
mod rewriting;
mod shortened;
mod split;

pub use self::prompt::{Example, Rewriting, Tried};
pub use self::rewriting::{Proposed, Rewritten, rewrite};
pub use self::split::{group_of, is_held_out};
