//! Drafting cases, through the public API.

mod brief;
mod drafts;
mod examine;
mod file;
mod registries;
mod slots;
mod template;
mod whole;
