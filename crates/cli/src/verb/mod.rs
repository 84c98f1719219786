//! The verbs, one file each.

pub(crate) mod agent;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod contradictions;
pub(crate) mod coverage;
pub(crate) mod diff;
pub(crate) mod eval;
pub(crate) mod feedback;
pub(crate) mod forge;
pub(crate) mod init;
pub(crate) mod man;
pub(crate) mod overlap;
pub(crate) mod regress;
pub(crate) mod review;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod schema;
pub(crate) mod show;
pub(crate) mod tools;
pub(crate) mod trace;

/// Returns the limit of a list: the flag, or a default for text output; 0 stands for no limit.
fn list_limit<N: Copy + PartialEq + From<u8>>(flag: Option<N>, is_text: bool, default: N) -> Option<N> {
    flag.or(is_text.then_some(default)).filter(|limit| *limit != N::from(0))
}
