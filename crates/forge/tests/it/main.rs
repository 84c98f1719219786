//! Tests of drafting through the public API.

mod brief;
mod check_draft;
mod coverage;
mod drafts;
mod file;
mod registries;
mod slots;
mod template;
