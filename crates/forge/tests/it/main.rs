//! What the forge drafts, seen from outside.

mod arrange;
mod registries;
mod template;
