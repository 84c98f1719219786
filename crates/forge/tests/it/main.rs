//! Tests of drafting through the public API.

mod brief;
mod drafts;
mod check_draft;
mod file;
mod registries;
mod slots;
mod template;
mod coverage;
