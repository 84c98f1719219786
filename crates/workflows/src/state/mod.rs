//! The state sources and hooks of a run.

mod check;
mod prepare;

pub(crate) use check::{check_sources, unknown_in};
pub(crate) use prepare::prepare_state;
