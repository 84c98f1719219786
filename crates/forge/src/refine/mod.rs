//! Rewrites an eval function with a model.
//!
//! The model sees the code and traces of the training part only. The caller, which owns the sandbox, checks the
//! proposed code; rejected code goes back to the model once, with the reasons. The caller also decides what is adopted.

mod answer;
mod instructions;
mod prompt;
mod rewrite;
mod shorten_trace;
mod split;

pub use self::prompt::{Example, RewriteRequest, TriedCode};
pub use self::rewrite::{ProposedCode, Rewrite, rewrite};
pub use self::split::{is_held_out, trace_group};
